"""The door to a server: the client of the SDK, with errors as the command line prints them."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import IO, Any, Final
from urllib.parse import quote

import msgspec

import corvo_sdk
from corvo.cli.failure import CallError, UnreachableError
from corvo_sdk.protocol.session import DEFAULT_URL, Answer

API: Final = "/api/v1"
TIMEOUT_SECONDS: Final = 70  # a long poll lasts at most sixty
_HINT: Final = "start one with: corvo server, or name another with --url or CORVO_URL"


class Client:
    """Calls of one server, or of several that stand for each other."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        retries: int = 0,
    ) -> None:
        with _translated():
            self.sdk = corvo_sdk.Client(
                url,
                api_key=api_key,
                timeout_s=timeout_seconds,
                deadline_s=timeout_seconds,
                retries=retries,
                user_agent="corvo-cli",
            )

    @property
    def url(self) -> str:
        """The address in use."""
        return self.sdk.urls[0]

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        content_type: str = "application/json",
        is_repeatable: bool | None = None,
    ) -> Answer:
        """Send one request; an error answer is raised as CallError. Bytes are sent as they are."""
        with _translated():
            return self.sdk.request(
                method,
                path,
                query=query,
                body=body,
                headers=headers,
                content_type=content_type,
                is_repeatable=is_repeatable,
            )

    def download(self, method: str, path: str, file: IO[bytes]) -> None:
        """Send one request and write the answer into a file, piece by piece."""
        with _translated(), self.sdk.open(method, path) as answer:
            for chunk in answer.chunks:
                file.write(chunk)

    def events(
        self, query: dict[str, str], after: int | None, *, patience_seconds: float
    ) -> Iterator[dict[str, Any]]:
        """What happens, without end; a connection that breaks is made again where it was."""
        # A server that was never there is told at once; the patience is for one that went away.
        self.call("GET", f"{API}/livez")
        with _translated():
            for event in self.sdk.events(
                queue=query.get("queue"),
                job_id=query.get("job_id"),
                event_type=query.get("type"),
                last_event_id=after,
                patience_s=patience_seconds,
            ):
                found: dict[str, Any] = msgspec.to_builtins(event)
                if event.at is not None:
                    at = event.at.isoformat(timespec="milliseconds")
                    found["at"] = at.replace("+00:00", "Z")
                yield found

    def close(self) -> None:
        self.sdk.close()


def segment(text: str) -> str:
    """Quote one segment of a path."""
    return quote(text, safe="")


@contextmanager
def _translated() -> Generator[None]:
    """Turn what the SDK raises into what the command line prints and ends with."""
    try:
        yield
    except corvo_sdk.ConnectionFailedError as error:
        raise UnreachableError(error.message, hint=_HINT) from error
    except corvo_sdk.CorvoError as error:
        if error.status == 0:
            raise UnreachableError(error.message, hint=error.hint or DEFAULT_URL) from error
        raise CallError(
            error.message,
            code=error.code,
            status=error.status,
            hint=error.hint,
            field=error.field,
        ) from error


__all__ = ["API", "DEFAULT_URL", "Answer", "Client", "segment"]
