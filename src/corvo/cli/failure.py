"""How a command fails: one sentence with its code and hint, and an exit code a script can test."""

import sys
from typing import NoReturn

from corvo.errors import CorvoError

EXIT_OK = 0
EXIT_REFUSED = 1  # the server said no, or a check found something wrong
EXIT_USAGE = 2  # the command or a setting is wrong
EXIT_UNREACHABLE = 3  # no server answers at the address, or it can not take requests now
EXIT_LOCKED = 4  # another process has the data directory open
EXIT_CORRUPT = 5  # bytes on disk are not what was written
EXIT_STORAGE = 6  # the disk failed


class CallError(CorvoError):
    """The server answered with an error."""

    def __init__(self, message: str, *, code: str, status: int, hint: str | None) -> None:
        super().__init__(message, code=code, hint=hint)
        self.status = status


class UnreachableError(CorvoError):
    """No server answers."""

    code = "UNREACHABLE"


def fail(error: CorvoError, exit_code: int) -> NoReturn:
    """Print an error the way every command does, and end."""
    complain(error)
    sys.exit(exit_code)


def complain(error: CorvoError) -> None:
    """Print an error on standard error."""
    print(f"error: {error.message} [{error.code}]", file=sys.stderr)
    if error.field and error.field not in error.message:
        print(f"field: {error.field}", file=sys.stderr)
    if error.hint:
        print(f"hint: {error.hint}", file=sys.stderr)


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
    }
    return by_code.get(error.code, EXIT_REFUSED)
