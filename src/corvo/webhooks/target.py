"""Where a webhook points: a URL taken apart once, strictly."""

import re
from urllib.parse import urlsplit

from msgspec import Struct

from corvo.model import limits

_PORTS = {"http": 80, "https": 443}
_VISIBLE = re.compile(r"[!-~]+")
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?\.?|\[[0-9a-f:.]+\]")
_HOST_BYTES_MAX = 253


class Target(Struct, frozen=True):
    """A place to post to."""

    is_secure: bool
    host: str  # a name or an address, without brackets
    port: int
    path: str  # with the query
    authority: str  # for the Host header


def parse_target(url: str) -> Target:
    """Take a URL apart. Raises ValueError with the end of a sentence."""
    if len(url) > limits.WEBHOOK_URL_BYTES_MAX:
        raise ValueError(f"is longer than {limits.WEBHOOK_URL_BYTES_MAX} bytes")
    if not _VISIBLE.fullmatch(url):
        raise ValueError("must be ASCII without spaces: encode names with xn-- and the rest with %")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError("is no URL") from error
    if parts.scheme not in _PORTS:
        raise ValueError("must begin with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise ValueError(
            "must not hold a name or password: anybody who lists webhooks would see it"
        )
    host = (parts.hostname or "").lower()
    shown = f"[{host}]" if ":" in host else host
    if len(host) > _HOST_BYTES_MAX or not _HOST.fullmatch(shown):
        raise ValueError("names no host")
    if port == 0:
        raise ValueError("has a port that does not exist")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    standard = _PORTS[parts.scheme]
    authority = shown if port in (None, standard) else f"{shown}:{port}"
    return Target(parts.scheme == "https", host, port or standard, path, authority)
