"""How a command fails: one sentence with its code and hint, and an exit code a script can test."""

import sys
from typing import Final, NoReturn

from corvo.cli.visible import visible
from corvo.errors import CorvoError

EXIT_OK: Final = 0
EXIT_REFUSED: Final = 1  # the server said no, or a check found something wrong
EXIT_USAGE: Final = 2  # the command or a setting is wrong
EXIT_UNREACHABLE: Final = 3  # no server answers at the address, or it can not take requests now
EXIT_LOCKED: Final = 4  # another process has the data directory open
EXIT_CORRUPT: Final = 5  # bytes on disk are not what was written
EXIT_STORAGE: Final = 6  # the disk failed
EXIT_TIMEOUT: Final = 7  # what was waited for did not happen within --timeout
EXIT_BUG: Final = 70  # a part of the server failed
EXIT_INTERRUPTED: Final = 130  # Ctrl-C

# What scripts may rely on; `--help` and the reference print it.
EXIT_CODES: Final[dict[str, str]] = {
    "0": "done",
    "1": "the server refused, a check found something wrong, or a job waited for did not complete",
    "2": "the command or a setting is wrong",
    "3": "no server answers, or it can not take requests now",
    "4": "another process has the data directory open",
    "5": "bytes on disk are not what was written",
    "6": "the disk failed",
    "7": "what was waited for did not happen within `--timeout`",
    "70": "a bug: a part of the server failed",
    "128 + n": "stopped at once by signal n; 130 is Ctrl-C",
}


class CallError(CorvoError):
    """The server answered with an error."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int,
        hint: str | None,
        field: str | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint, field=field)
        self.status = status


class UnreachableError(CorvoError):
    """No server answers."""

    code = "UNREACHABLE"


class SetupError(CorvoError):
    """A profile, a variable or an installed part can not be used."""

    code = "CONFIG_INVALID"


class PatienceError(CorvoError):
    """What was waited for did not happen in time."""

    code = "TIMED_OUT"


def fail(error: CorvoError, exit_code: int) -> NoReturn:
    """Print an error the way every command does, and end."""
    complain(error)
    sys.exit(exit_code)


def complain(error: CorvoError) -> None:
    """Print an error on standard error."""
    place = f" ({error.field})" if error.field and error.field not in error.message else ""
    print(f"error: {_one_line(error.message)}{place} [{error.code}]", file=sys.stderr)
    if error.hint:
        print(f"hint: {_one_line(error.hint)}", file=sys.stderr)


def _one_line(text: str) -> str:
    return visible(" ".join(text.split()))


def exit_code_of(error: CorvoError) -> int:
    """Choose the exit code for an error that reached the command line."""
    if isinstance(error, UnreachableError):
        return EXIT_UNREACHABLE
    if isinstance(error, CallError):
        return EXIT_UNREACHABLE if error.status in {429, 503} else EXIT_REFUSED
    by_code = {
        "CONFIG_INVALID": EXIT_USAGE,
        "DIRECTORY_LOCKED": EXIT_LOCKED,
        "CORRUPTION": EXIT_CORRUPT,
        "STORAGE_FAILED": EXIT_STORAGE,
        "DISK_FULL": EXIT_STORAGE,
        "ADDRESS_UNAVAILABLE": EXIT_USAGE,
        "TIMED_OUT": EXIT_TIMEOUT,
    }
    return by_code.get(error.code, EXIT_REFUSED)
