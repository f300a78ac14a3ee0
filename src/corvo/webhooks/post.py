"""One POST over one connection: small, bounded, to an address that was checked before.

A general client would follow redirects, honour proxy variables, keep cookies and resolve names by
itself; each of these is a way around the guard. What is left to do is little.
"""

import asyncio
import contextlib
import ssl
from functools import cache

import httptools
from msgspec import Struct

from corvo.webhooks.target import Target

READ_BYTES = 16_384
ANSWER_BYTES_MAX = 65_536  # head and body together; what follows is not read
EXCERPT_BYTES_MAX = 512


class Answer(Struct, frozen=True):
    """What an endpoint said."""

    status: int
    excerpt: str  # the beginning of the body, for a person to read


class PostError(Exception):
    """There was no usable answer."""


class _Parser:
    """Collects status and the beginning of the body."""

    def __init__(self) -> None:
        self.status = 0
        self.is_headed = False
        self.is_complete = False
        self.excerpt = b""
        self.parser = httptools.HttpResponseParser(self)

    def on_headers_complete(self) -> None:
        status = self.parser.get_status_code()
        if status >= 200:
            self.status = status
            self.is_headed = True

    def on_body(self, body: bytes) -> None:
        self.excerpt += body[: EXCERPT_BYTES_MAX - len(self.excerpt)]

    def on_message_complete(self) -> None:
        if self.is_headed:
            self.is_complete = True


async def post(target: Target, addresses: list[str], head: dict[str, str], body: bytes) -> Answer:
    """Send and read the answer. Raises PostError; the caller bounds the time."""
    reader, writer = await _connect(target, addresses)
    try:
        writer.write(_request(target, head, body))
        await writer.drain()
        return await _read(reader)
    except OSError as error:
        raise PostError(f"the connection broke: {error}") from error
    finally:
        # Cost: closing politely would wait for the other side; nothing more is wanted from it.
        writer.transport.abort()


async def _connect(
    target: Target, addresses: list[str]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = _context() if target.is_secure else None
    name = target.host if target.is_secure else None
    failure: OSError = OSError("there is no address")
    for address in addresses:
        try:
            return await asyncio.open_connection(
                address, target.port, ssl=context, server_hostname=name
            )
        except OSError as error:
            failure = error
    raise PostError(f"no connection: {failure}") from failure


@cache
def _context() -> ssl.SSLContext:
    # Cost: reading the certificates of the system takes tens of milliseconds; once is enough.
    return ssl.create_default_context()


def _request(target: Target, head: dict[str, str], body: bytes) -> bytes:
    lines = [f"POST {target.path} HTTP/1.1", f"Host: {target.authority}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in head.items()]
    lines += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode("ascii") + body


async def _read(reader: asyncio.StreamReader) -> Answer:
    parser = _Parser()
    size = 0
    while not parser.is_complete and size < ANSWER_BYTES_MAX:
        data = await reader.read(READ_BYTES)
        if not data:
            break
        size += len(data)
        try:
            parser.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            break
        except httptools.HttpParserError as error:
            if parser.is_headed:
                break
            raise PostError(f"the answer is not HTTP: {error}") from error
    if not parser.is_headed:
        raise PostError("the connection was closed without an answer")
    excerpt = ""
    with contextlib.suppress(UnicodeDecodeError):
        excerpt = parser.excerpt.decode(errors="replace")
    return Answer(parser.status, excerpt)
