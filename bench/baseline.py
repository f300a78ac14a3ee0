"""The floor: the least a Python server can do for the same requests.

A bare httptools protocol on uvloop decodes the same structs as Corvo and answers with bodies of the
same size. It keeps nothing, checks nothing and knows no routes beyond the three of the scripts.
"""

import asyncio
from typing import cast

import httptools
import msgspec
import uvloop

from corvo.api.wire import AckRequest, EnqueueRequest, FetchRequest

_decode_enqueue = msgspec.json.Decoder(EnqueueRequest).decode
_decode_fetch = msgspec.json.Decoder(FetchRequest).decode
_decode_ack = msgspec.json.Decoder(AckRequest).decode

_JOB_ID = b"job_01JZZZZZZZZZZZZZZZZZZZZZZZ"
_ENQUEUED = b'{"job_id":"%b","status":"pending","unique_existing":false,"index":1234567}' % _JOB_ID
_CLAIMED = (
    b'{"job_id":"%b","queue":"bench","payload":{"to":"user@example.com","template":"welcome",'
    b'"locale":"en","n":12345},"attempt":1,"max_retries":3,"lease_duration":3,'
    b'"lease_token":1294967296000123,"priority":"normal","checkpoint":null,"tags":{},'
    b'"group":null,"created_at":"2026-01-01T00:00:00.000Z","scheduled_at":null,"trace":null}'
    % _JOB_ID
)
_ACKED = b'{"status":"completed","index":1234567}'


def _reply(status: bytes, body: bytes) -> bytes:
    return (
        b"HTTP/1.1 %b\r\ncontent-type: application/json\r\nx-corvo-index: 1234567\r\n"
        b"content-length: %d\r\n\r\n%b" % (status, len(body), body)
    )


class Bare(asyncio.Protocol):
    """One connection; one request at a time."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Safety: uvloop's transports have the interface and not the base class.
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._body = b""

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url = url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header: without them no server can tell a body's type or when to close."""

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        body, self._body = self._body, b""
        if self._url == b"/api/v1/enqueue":
            _decode_enqueue(body)
            self._transport.write(_reply(b"201 Created", _ENQUEUED))
        elif self._url == b"/api/v1/fetch":
            _decode_fetch(body)
            self._transport.write(_reply(b"200 OK", _CLAIMED))
        else:
            _decode_ack(body)
            self._transport.write(_reply(b"200 OK", _ACKED))


async def main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Bare, "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
