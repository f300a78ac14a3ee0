"""Nothing of the server is missing in the SDK, and the two clients are the same."""

import asyncio
import inspect
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from io import BytesIO
from typing import Any

import msgspec
import pytest

from corvo.api.errors import CODES
from corvo.api.openapi.catalog import CATALOG
from corvo_sdk import AsyncClient, Client
from corvo_sdk.errors import CLASS_OF_CODE, ConnectionFailedError, CorvoError, ProtocolError
from corvo_sdk.protocol.call import Reply, Request
from corvo_sdk.shell import generate
from corvo_sdk.transport.ports import AsyncStreamReply, StreamReply
from corvo_sdk.types import Ack, NewJob
from tests.tidy.source import ROOT

# Operations that are no calls of a program, or the same one under a second name.
NOT_CALLED = {
    ("GET", "/healthz"),  # the one below the prefix is used
    ("GET", "/livez"),
    ("GET", "/openapi.json"),
    ("GET", "/docs"),  # pages for people
    ("GET", "/docs/page.js"),
    ("GET", "/docs/page.css"),
    ("POST", "/api/v1/jobs/{id}/priority"),  # PUT is used
    ("GET", "/api/v1/stream"),  # a protocol of its own
}
OWN = {"close", "headers", "open", "request", "urls"}  # not one operation each

SAMPLES: dict[str, Any] = {
    "ack": {"job_id": "x"},
    "ack_many": {"acks": [Ack(job_id="x", lease_token=1)]},
    "backup": {"file": BytesIO()},
    "bulk": {"action": "retry", "job_ids": ["x"]},
    "bulk_progress": {"bulk_id": "x", "patience_s": 0},
    "enqueue_many": {"jobs": [NewJob("q")]},
    "events": {"patience_s": 0},
    "export": {"file": BytesIO()},
    "fetch": {"queues": "q", "worker_id": "w"},
    "fetch_many": {"queues": "q", "count": 2, "worker_id": "w"},
    "get_jobs": {"job_ids": ["x"]},
    "import_lines": {"lines": b"{}"},
    "post_webhook": {"queue": "x", "body": {}},
    "throttle": {"name": "x", "rate": 1},
    "set_concurrency": {"name": "x", "maximum": 1},
}


def public(kind: type) -> dict[str, Any]:
    found = inspect.getmembers(kind, callable)
    return {name: member for name, member in found if not name.startswith("_")}


def sample(name: str, method: Any) -> dict[str, Any]:
    if name in SAMPLES:
        return SAMPLES[name]
    parameters = list(inspect.signature(method).parameters.values())[1:]
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    needed = [p for p in parameters if p.default is p.empty and p.kind not in kinds]
    return {parameter.name: "x" for parameter in needed}


class Recorder:
    """A transport that answers everything alike and remembers what was asked."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    def send(self, base_url: str, request: Request) -> Reply:
        assert base_url == "http://nowhere"
        self.asked.append(request)
        return Reply(200, {}, b"[]")

    @contextmanager
    def stream(self, base_url: str, request: Request) -> Generator[StreamReply, None, None]:
        assert base_url == "http://nowhere"
        self.asked.append(request)
        yield StreamReply(200, {}, iter(()))

    def close(self) -> None:
        pass


class AsyncRecorder:
    """The same for a loop."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    async def send(self, base_url: str, request: Request) -> Reply:
        assert base_url == "http://nowhere"
        self.asked.append(request)
        return Reply(200, {}, b"[]")

    @asynccontextmanager
    async def stream(
        self, base_url: str, request: Request
    ) -> AsyncGenerator[AsyncStreamReply, None]:
        assert base_url == "http://nowhere"
        self.asked.append(request)

        async def nothing() -> AsyncGenerator[bytes, None]:
            for chunk in ():
                yield chunk

        yield AsyncStreamReply(200, {}, nothing())

    async def close(self) -> None:
        pass


def _asked_of_client() -> dict[str, Request]:
    found: dict[str, Request] = {}
    for name, method in public(Client).items():
        if name in OWN:
            continue
        recorder = Recorder()
        client = Client("http://nowhere", transport=recorder)
        try:
            result = getattr(client, name)(**sample(name, method))
            if inspect.isgenerator(result):
                next(result, None)
        except (ProtocolError, ConnectionFailedError):
            pass  # the answer is not that of this call
        assert len(recorder.asked) == 1, name
        found[name] = recorder.asked[0]
    return found


async def _asked_of_async_client() -> dict[str, Request]:
    found: dict[str, Request] = {}
    for name, method in public(AsyncClient).items():
        if name in OWN:
            continue
        recorder = AsyncRecorder()
        client = AsyncClient("http://nowhere", transport=recorder)
        try:
            result = getattr(client, name)(**sample(name, method))
            if inspect.isasyncgen(result):
                await anext(result, None)
            else:
                await result
        except (ProtocolError, ConnectionFailedError):
            pass  # the answer is not that of this call
        assert len(recorder.asked) == 1, name
        found[name] = recorder.asked[0]
    return found


def operation(request: Request) -> tuple[str, str]:
    path = request.path.partition("?")[0]
    exact = {(op.method, op.path) for op in CATALOG}
    if (request.method, path) in exact:
        return request.method, path
    matches = [
        (op.method, op.path)
        for op in CATALOG
        if op.method == request.method and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", op.path), path)
    ]
    assert matches, f"{request.method} {path} is no operation of the server"
    return matches[0]


def test_every_operation_of_the_server_is_a_method() -> None:
    """What the server's own description lists can be called, and nothing else is."""
    made = {operation(request) for request in _asked_of_client().values()}
    # Told apart by what is in the path: POST /webhooks/{name} takes any name.
    assert {(op.method, op.path) for op in CATALOG} - made - NOT_CALLED == set()


def test_both_clients_ask_the_same() -> None:
    """Each method sends the same request from either client."""
    one, other = _asked_of_client(), asyncio.run(_asked_of_async_client())
    assert one.keys() == other.keys()
    for name, request in one.items():
        assert (request.method, request.path) == (other[name].method, other[name].path), name
        assert _without_key(request.body) == _without_key(other[name].body), name


def _without_key(body: bytes | None) -> Any:
    try:
        value = msgspec.json.decode(body or b"null")
    except msgspec.DecodeError:
        return body
    if isinstance(value, dict):
        value.pop("idempotency_key", None)
    return value


def test_both_clients_have_the_same_signatures() -> None:
    """Names, parameters, defaults and answers are equal, but for being awaited."""
    one, other = public(Client), public(AsyncClient)
    assert one.keys() == other.keys()
    for name in one:
        assert _plain(inspect.signature(one[name])) == _plain(inspect.signature(other[name])), name
        if name != "open":
            is_iterator = inspect.isgeneratorfunction(one[name])
            assert inspect.isasyncgenfunction(other[name]) == is_iterator, name
            assert inspect.iscoroutinefunction(other[name]) != is_iterator, name


def _plain(signature: inspect.Signature) -> str:
    text = re.sub(r"\bAsync(?=Iterator|Stream|Generator)", "", str(signature))
    return text.replace("StreamReply, None, None]", "StreamReply, None]")


def test_methods_of_the_asynchronous_client_are_made_anew() -> None:
    """What `make sdk` would write is what is there."""
    for path, text in generate.modules().items():
        formatted = subprocess.run(
            [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(path), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        ).stdout
        assert path.read_text(encoding="utf-8") == formatted, path.name


def test_every_code_of_the_server_has_a_class() -> None:
    """No code falls back to the class of its status, and the page of errors can be relied on."""
    assert CODES.keys() - CLASS_OF_CODE.keys() == set()


@pytest.mark.parametrize("name", sorted(public(Client)))
def test_every_method_says_what_it_does(name: str) -> None:
    """Each public method has a docstring, except the one that only closes."""
    assert name == "close" or inspect.getdoc(getattr(Client, name))


def test_an_unknown_code_has_the_class_of_its_status() -> None:
    """A newer server's refusal is still caught as what it is."""
    from corvo_sdk import errors  # noqa: PLC0415 - beside what it is about

    def kind(status: int) -> type[CorvoError]:
        return type(errors.error_of(status, {}, b'{"error":"x","code":"BRAND_NEW"}'))

    assert kind(409) is errors.ConflictError
    assert kind(422) is errors.ValidationError
    assert kind(429) is errors.OverloadedError
    assert kind(503) is errors.UnavailableError
    assert kind(599) is errors.InternalError
    assert kind(302) is errors.ProtocolError
    assert errors.error_of(404, {}, b"\xff<html>").code == "HTTP_404"
