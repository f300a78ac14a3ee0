"""A small private HTTP client: one kept-alive connection, JSON both ways, coded errors."""

import http.client
from typing import IO, Any, cast
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from corvo.cli.failure import CallError, UnreachableError

DEFAULT_URL = "http://127.0.0.1:8080"
API = "/api/v1"
DOWNLOAD_BYTES = 256 * 1024
TIMEOUT_SECONDS = 70  # a long poll lasts at most sixty


class Answer(msgspec.Struct, frozen=True):
    """What the server said: status, decoded body (None when empty), the log index it speaks of."""

    status: int
    body: Any
    index: int = 0


class Client:
    """Calls of one server, one after the other. Not safe for use from two threads."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        retries: int = 0,
    ) -> None:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise UnreachableError(f"{url!r} is not the address of a server", hint=DEFAULT_URL)
        self.url = f"{parts.scheme}://{parts.netloc}"
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        self._connection = kind(parts.hostname, parts.port, timeout=timeout_seconds)
        self._prefix = parts.path.rstrip("/")

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        """Send one request; an error answer is raised as CallError. Bytes are sent as they are."""
        target = self._prefix + path + (f"?{urlencode(query)}" if query else "")
        encoded = body
        if body is not None and not isinstance(body, bytes):
            encoded = msgspec.json.encode(body)
        assert encoded is None or isinstance(encoded, bytes)
        named = {} if body is None else {"content-type": content_type}
        answer = self._exchange(method, target, encoded, named | (headers or {}))
        if answer.status >= 400:
            raise _error_of(answer)
        return answer

    def close(self) -> None:
        self._connection.close()

    def _exchange(
        self, method: str, target: str, body: bytes | None, headers: dict[str, str]
    ) -> Answer:
        try:
            self._connection.request(method, target, body, headers)
            response = self._connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error
        index = response.headers.get("x-corvo-index", "0")
        return Answer(response.status, _decode(content), int(index) if index.isdigit() else 0)

    def download(self, method: str, path: str, file: IO[bytes]) -> None:
        """Send one request and write the answer into a file, piece by piece."""
        try:
            self._connection.request(method, self._prefix + path)
            response = self._connection.getresponse()
            if response.status >= 400:
                raise _error_of(Answer(response.status, _decode(response.read())))
            while chunk := response.read(DOWNLOAD_BYTES):
                file.write(chunk)
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
        except http.client.HTTPException as error:
            raise self._unreachable(error) from error
        except ConnectionError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> UnreachableError:
        self._connection.close()
        return UnreachableError(
            f"no answer from {self.url}: {error or type(error).__name__}",
            hint="start one with: corvo server, or name another with --url or CORVO_URL",
        )


def segment(text: str) -> str:
    """Quote one segment of a path."""
    return quote(text, safe="")


def _decode(content: bytes) -> Any:
    if not content:
        return None
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError:
        return content.decode("utf-8", "replace")


def _error_of(answer: Answer) -> CallError:
    body = cast("dict[str, Any] | str | None", answer.body)
    if not isinstance(body, dict):
        body = {}
    hint = body.get("hint")
    return CallError(
        str(body.get("error", f"the server answered {answer.status}")),
        code=str(body.get("code", f"HTTP_{answer.status}")),
        status=answer.status,
        hint=str(hint) if hint else None,
    )
