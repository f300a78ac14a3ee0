"""The small client against endpoints that misbehave."""

import asyncio

import pytest

from corvo.webhooks.post import ANSWER_BYTES_MAX, Answer, PostError, post
from corvo.webhooks.target import Target, parse_target


def talk(answer: bytes, *, is_secure: bool = False) -> tuple[Answer | PostError, bytes]:
    """Post to a server that says this whatever it is asked; return the outcome and the head."""

    async def body() -> tuple[Answer | PostError, bytes]:
        heard = bytearray()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.extend(await reader.readuntil(b"\r\n\r\n") if not is_secure else b"")
            writer.write(answer)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        target = Target(is_secure, "example.test", port, "/p?q", f"example.test:{port}")
        try:
            async with asyncio.timeout(10):
                return await post(target, ["127.0.0.1"], {"X-A": "1"}, b"{}"), bytes(heard)
        except PostError as error:
            return error, bytes(heard)
        finally:
            server.close()
            await server.wait_closed()

    return asyncio.run(body())


def test_request_is_plain_and_complete():
    """Method, path, host, length; nothing a proxy or a cookie jar would add."""
    found, head = talk(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
    assert found == Answer(200, "hi")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /p?q HTTP/1.1"
    assert lines[1].startswith("Host: example.test:")
    assert {"Connection: close", "X-A: 1", "Content-Length: 2"} < set(lines)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", 200),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", 200),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n", 201),
        (b"HTTP/1.1 500 Oh\r\ncontent-length: 5\r\n\r\nsorry", 500),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\ncut off", 200),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (ANSWER_BYTES_MAX * 4), 200),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnonsense", 200),
    ],
)
def test_answer_is_understood(answer: bytes, status: int):
    """What matters is the status; the body is read within bounds and may be broken."""
    found, _ = talk(answer)
    assert isinstance(found, Answer)
    assert found.status == status
    assert len(found.excerpt) <= 512


@pytest.mark.parametrize(
    "answer",
    [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\nx: " + b"y" * (ANSWER_BYTES_MAX * 2)],
)
def test_what_is_no_answer_is_an_error(answer: bytes):
    """Silence, another protocol, an endless header: a sentence, not a crash."""
    found, _ = talk(answer)
    assert isinstance(found, PostError)


def test_endpoint_without_tls_fails_politely():
    """An https URL to a port that speaks something else is a failed try."""
    found, _ = talk(b"HTTP/1.1 200 OK\r\n\r\n", is_secure=True)
    assert isinstance(found, PostError)
    assert "no connection" in str(found)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://Example.COM", Target(False, "example.com", 80, "/", "example.com")),
        ("https://a.b:8443/x?y=1#z", Target(True, "a.b", 8443, "/x?y=1", "a.b:8443")),
        ("http://[::1]:80/", Target(False, "::1", 80, "/", "[::1]")),
        ("https://a.b:443", Target(True, "a.b", 443, "/", "a.b")),
    ],
)
def test_url_is_taken_apart(url: str, expected: Target):
    """Host in lower case, default ports left out of the Host header, fragments dropped."""
    assert parse_target(url) == expected
