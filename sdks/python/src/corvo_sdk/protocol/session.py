"""What all calls of one client share: addresses, headers, patience. No sockets."""

import platform
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from corvo_sdk.errors import ValidationError
from corvo_sdk.protocol.call import Call, Repeat, Reply, Request
from corvo_sdk.protocol.exchange import Policy, Servers
from corvo_sdk.values import with_query
from corvo_sdk.version import VERSION

DEFAULT_URL: Final = "http://127.0.0.1:8080"
JSON: Final = "application/json"
_REPEATABLE_METHODS: Final = frozenset({"GET", "HEAD", "PUT", "PATCH"})


class Answer(Struct, frozen=True):
    """An answer as it came: the body decoded when it is JSON, else as text, None when empty."""

    status: int
    body: Any
    index: int  # the log index it reflects; 0 when it names none
    headers: dict[str, str]  # names in lower case


class Session(Struct, frozen=True):
    """The settings of a client, checked."""

    servers: Servers
    policy: Policy
    headers: dict[str, str]
    has_token_provider: bool = False

    def headers_of(self, call_headers: Mapping[str, str], token: str | None) -> dict[str, str]:
        """All headers of one request."""
        headers = {**self.headers, **call_headers}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        return headers


def session_of(
    url: str | Sequence[str] | None,
    environment: Mapping[str, str],
    *,
    api_key: str | None,
    bearer_token: str | None,
    has_token_provider: bool,
    headers: Mapping[str, str] | None,
    user_agent: str | None,
    policy: Policy,
) -> Session:
    """Check the settings of a client. Raises ValidationError."""
    if bearer_token is not None and has_token_provider:
        raise ValidationError("a bearer token and a token provider exclude each other")
    if policy.timeout_s <= 0 or policy.deadline_s <= 0 or policy.retries < 0:
        raise ValidationError("time-outs are positive, and retries are not negative")
    sent = {"user-agent": user_agent or _user_agent()}
    key = api_key or environment.get("CORVO_API_KEY")
    if key:
        sent["x-api-key"] = key
    if bearer_token is not None:
        sent["authorization"] = f"Bearer {bearer_token}"
    sent.update({name.lower(): value for name, value in (headers or {}).items()})
    for name, value in sent.items():
        if any(sign in text for text in (name, value) for sign in "\r\n\0"):
            raise ValidationError(f"the header {name!r} has a line break", field="headers")
    urls = url or environment.get("CORVO_URL") or DEFAULT_URL
    return Session(Servers(addresses_of(urls)), policy, sent, has_token_provider)


def addresses_of(url: str | Sequence[str]) -> tuple[str, ...]:
    """The addresses in a text with commas, or in a list; a scheme left out is http."""
    parts = url.split(",") if isinstance(url, str) else url
    found = [_address(part.strip()) for part in parts if part.strip()]
    if not found:
        raise ValidationError("there is no address of a server", hint=f"such as {DEFAULT_URL}")
    return tuple(dict.fromkeys(found))


def _address(text: str) -> str:
    parts = urlsplit(text if "//" in text else f"http://{text}")
    try:
        is_fit = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # the port is not a number
        is_fit = False
    if not is_fit or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValidationError(
            f"{text!r} is not the address of a server", field="url", hint=f"such as {DEFAULT_URL}"
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def raw_call(
    method: str,
    path: str,
    *,
    query: Mapping[str, Any] | None = None,
    body: object = None,
    headers: Mapping[str, str] | None = None,
    content_type: str = JSON,
    timeout_s: float = 10.0,
    is_repeatable: bool | None = None,
) -> Call[Answer]:
    """A call of anything: bytes are sent as they are, any other body as JSON."""
    sent = {name.lower(): value for name, value in (headers or {}).items()}
    encoded: bytes | None = None
    if body is not None:
        encoded = body if isinstance(body, bytes) else msgspec.json.encode(body)
        sent.setdefault("content-type", content_type)
    if is_repeatable is None:
        is_repeatable = method in _REPEATABLE_METHODS or "idempotency-key" in sent
    repeat = Repeat.ALWAYS if is_repeatable else Repeat.UNLESS_SENT
    if not path.startswith("/"):
        raise ValidationError(f"the path {path!r} does not begin with a slash")
    if not path.isascii() or any(ord(sign) <= 32 or sign == "\x7f" for sign in path):
        # What a transport does with such a path differs; a line break could start a second request.
        raise ValidationError(f"the path {path!r} has to be quoted", hint="urllib.parse.quote")
    request = Request(method, with_query(path, query or {}), sent, encoded, timeout_s)
    return Call(request, answer_of, repeat)


def stream_call(request: Request, headers: Mapping[str, str]) -> Call[Answer]:
    """A call whose answer is read piece by piece; it is not repeated once it has begun."""
    repeat = Repeat.ALWAYS if request.method == "GET" else Repeat.UNLESS_SENT
    return Call(replace(request, headers={**request.headers, **headers}), answer_of, repeat)


def answer_of(reply: Reply) -> Answer:
    index = reply.headers.get("x-corvo-index", "")
    return Answer(
        reply.status,
        _value(reply.body, reply.headers.get("content-type", "")),
        int(index) if index.isdecimal() else 0,
        reply.headers,
    )


def _value(body: bytes, media: str) -> Any:
    if not body:
        return None
    if media.startswith(JSON):
        try:
            return msgspec.json.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            pass  # said to be JSON and is not: shown as it is
    return body.decode("utf-8", "replace")


def _user_agent() -> str:
    return f"corvo-sdk/{VERSION} python/{platform.python_version()}"
