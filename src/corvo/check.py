"""Checks that must never be compiled away, and the refusal to run without assertions."""

from typing import NoReturn

from corvo.errors import CorruptionError

if not __debug__:  # pragma: no cover - the refusal itself is tested in a subprocess
    raise SystemExit("corvo refuses to run under python -O: assertions are part of its safety")


def corrupt(what: str, *, hint: str | None = None) -> NoReturn:
    """Refuse data from disk or wire that cannot have been written by this program."""
    raise CorruptionError(what, hint=hint)
