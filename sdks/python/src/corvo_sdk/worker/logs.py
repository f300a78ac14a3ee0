"""The log of a worker: lines for people or for machines, on standard error."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal

LogFormat = Literal["text", "json"]

_PLAIN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """One JSON object a line: at, level, logger, message, what was added, and the traceback."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "at": _instant(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name, value in record.__dict__.items():
            if name not in _PLAIN and name not in fields:
                fields[name] = value
        if record.exc_info:
            fields["backtrace"] = self.formatException(record.exc_info)
        # Whatever somebody adds to a line must not make the line fail.
        return json.dumps(fields, default=str, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """Time, level, message, and what was added as name=value."""

    def format(self, record: logging.LogRecord) -> str:
        added = " ".join(
            f"{name}={value}" for name, value in record.__dict__.items() if name not in _PLAIN
        )
        line = f"{_instant(record)} {record.levelname:<7} {record.getMessage()}"
        line = f"{line}  {added}" if added else line
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


_chosen: list[tuple[LogFormat, str]] = []  # the last one is in force


def chosen() -> tuple[LogFormat, str] | None:
    """Give what `set_up` was called with, for processes that log on behalf of this one."""
    return _chosen[-1] if _chosen else None


def set_up(form: LogFormat, level: str) -> None:
    """Send every log line of the process to standard error in one form."""
    _chosen[:] = [(form, level)]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _instant(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
