"""A bar on standard error while something large goes on; nothing when that is no terminal."""

import sys
from types import TracebackType
from typing import Final, Self

import click

_WIDTH: Final = 30


class Bar:
    """How far something has come. Standard output stays free for results."""

    def __init__(self, label: str, total: int = 0) -> None:
        self._label = label
        self._total = total
        self._is_shown = sys.stderr.isatty()
        self._length = 0

    def show(self, done: int, total: int | None = None) -> None:
        """Draw the bar anew."""
        if total is not None:
            self._total = total
        if not self._is_shown:
            return
        share = min(1.0, done / self._total) if self._total else 0.0
        filled = round(share * _WIDTH)
        text = f"{self._label}  [{'#' * filled}{'-' * (_WIDTH - filled)}] {done}/{self._total}"
        click.echo("\r" + text.ljust(self._length), err=True, nl=False)
        self._length = len(text)

    def close(self) -> None:
        """Take the bar away."""
        if self._length:
            click.echo("\r" + " " * self._length + "\r", err=True, nl=False)
            self._length = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def confirm(question: str, *, is_sure: bool) -> None:
    """Ask a person before something is destroyed; a script is never asked."""
    if is_sure or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    click.confirm(question, abort=True, err=True)
