"""A client that knows the description of the API and holds every answer against it."""

import http.client
from typing import Any

import jsonschema_rs
import msgspec

from corvo.api.openapi import document, shapes
from corvo.api.openapi.catalog import CATALOG


def closed() -> dict[str, Any]:
    """The document, its answers closed: a member that is sent and not described is an error."""
    made = document.build(CATALOG)
    for name, schema in made["components"]["schemas"].items():
        if hasattr(shapes, name) and name not in shapes.OPEN:
            schema["additionalProperties"] = False
    return made


class Walk:
    """Calls operations of the description one by one; `walked` says which were."""

    def __init__(self, port: int) -> None:
        self.document = closed()
        self.walked: set[tuple[str, str]] = set()
        self.index = 0
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._validators: dict[str, Any] = {}

    def close(self) -> None:
        """Let go of the server."""
        self._connection.close()

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        status: int = 200,
        query: str = "",
        headers: dict[str, str] | None = None,
        **arguments: str,
    ) -> Any:
        """Call an operation by its described path, and check status, type and body."""
        described = path if path.startswith(("/healthz", "/livez", "/openapi", "/docs")) else ""
        described = described or "/api/v1" + path
        target = described.format(**arguments) + (f"?{query}" if query else "")
        sent = {"x-corvo-after": str(self.index)} | (headers or {})
        if body is not None and not isinstance(body, bytes):
            body = msgspec.json.encode(body)
            sent = {"content-type": "application/json"} | sent
        self._connection.request(method, target, body, sent)
        response = self._connection.getresponse()
        content = response.read()
        assert response.status == status, (method, target, content)
        self.index = max(self.index, int(response.headers.get("x-corvo-index", 0)))
        self.check(method, described, response, content)
        if (response.headers["content-type"] or "").startswith("application/json"):
            return msgspec.json.decode(content)
        return content

    def check(
        self, method: str, path: str, response: http.client.HTTPResponse, content: bytes
    ) -> None:
        """Hold an answer against its description."""
        self.walked.add((method, path))
        operation = self.document["paths"][path][method.lower()]
        answer = operation["responses"][str(response.status)]
        if "$ref" in answer:
            answer = self.document["components"]["responses"][answer["$ref"].rsplit("/", 1)[1]]
        kinds = answer.get("content")
        if kinds is None:
            assert content == b"", (method, path)
            return
        kind = (response.headers["content-type"] or "").partition(";")[0]
        assert kind in kinds, (method, path, kind)
        if kind == "application/json":
            found = self._validator(kinds[kind]["schema"])
            errors = list(found.iter_errors(msgspec.json.decode(content)))
            assert not errors, (method, path, [error.message for error in errors])

    def _validator(self, schema: dict[str, Any]) -> Any:
        key = msgspec.json.encode(schema).decode()
        if key not in self._validators:
            whole = schema | {"components": self.document["components"]}
            kind = jsonschema_rs.Draft202012Validator
            self._validators[key] = kind(whole, validate_formats=True)
        return self._validators[key]
