"""Reading the values of settings: a bad one raises ValueError with the end of a sentence."""

import ipaddress
import re

from corvo.model.limits import DURATION_MS_MAX
from corvo.webhooks.guard import parse_networks as networks

_DURATION_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION_PART = re.compile(r"(\d+)(ms|s|m|h|d)")
_DURATION = re.compile(r"(?:\d+(?:ms|s|m|h|d))+")
_BYTES = re.compile(r"(\d+)\s*([A-Za-z]*)")
_BYTES_UNITS = {
    "": 1, "b": 1,
    "k": 1 << 10, "kb": 1 << 10, "kib": 1 << 10,
    "m": 1 << 20, "mb": 1 << 20, "mib": 1 << 20,
    "g": 1 << 30, "gb": 1 << 30, "gib": 1 << 30,
}  # fmt: skip
_BYTES_MAX = 1 << 50
_COUNT_MAX = 1_000_000_000
PORT_MAX = 65_535


def parse_text(text: str) -> str:
    """Take any text that is not empty."""
    if not text.strip():
        raise ValueError("must not be empty")
    return text


def parse_count(text: str) -> int:
    """Read a positive whole number."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _COUNT_MAX:
        raise ValueError(f"must be a whole number from 1 to {_COUNT_MAX}")
    return int(text)


def parse_duration_ms(text: str) -> int:
    """Read `250ms`, `5s`, `1h30m`, or whole seconds."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        text += "s"
    if not _DURATION.fullmatch(text):
        raise ValueError("must be a duration such as 500ms, 30s, 10m, 1h30m or 7d")
    total_ms = sum(int(n) * _DURATION_UNITS_MS[unit] for n, unit in _DURATION_PART.findall(text))
    if total_ms > DURATION_MS_MAX:
        raise ValueError("must not be longer than ten years")
    return total_ms


def parse_bytes(text: str) -> int:
    """Read a size: bytes, or with a unit of 1024 (`256KiB`, `64M`, `1g`)."""
    match = _BYTES.fullmatch(text.strip())
    unit = _BYTES_UNITS.get(match.group(2).lower()) if match else None
    if match is None or unit is None or int(match.group(1)) * unit > _BYTES_MAX:
        raise ValueError("must be a size such as 65536, 256KiB or 64MiB")
    return int(match.group(1)) * unit


def parse_fsync(text: str) -> str:
    """Check the spelling of a sync policy; the log itself gives it a meaning."""
    name, _, interval = text.partition("=")
    if text in {"always", "off"}:
        return text
    if name == "interval" and interval and parse_duration_ms(interval) > 0:
        return text
    raise ValueError("must be always, off or interval=DURATION such as interval=200ms")


def parse_networks(text: str) -> str:
    """Check a list of networks; it stays text, the guard of webhooks takes it apart."""
    try:
        networks(text)
    except ValueError as error:
        raise ValueError("must be none, or networks such as 10.0.0.0/8,127.0.0.1") from error
    return text


def parse_address(text: str) -> str:
    """Check an address; it stays text, `split_address` takes it apart."""
    split_address(text)
    return text


def parse_optional_address(text: str) -> str:
    """Check an address, or one of the words that stand for one or for none."""
    if text not in {"auto", "off"}:
        try:
            split_address(text)
        except ValueError as error:
            raise ValueError(f"{error}; or auto, or off") from error
    return text


def split_address(text: str) -> tuple[str, int]:
    """Split `host:port`; an empty host means every interface, `[::1]:80` is IPv6."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > PORT_MAX:
        raise ValueError("must be HOST:PORT such as 127.0.0.1:8080")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("an IPv6 address needs brackets: [::1]:8080")
    return host or "0.0.0.0", int(port)  # noqa: S104 - refused later unless --insecure is given


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address; a name might resolve to anything."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
