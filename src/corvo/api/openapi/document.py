"""From the catalog to an OpenAPI 3.1 document."""

import re
from collections.abc import Iterable
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, UNSET, Raw, Struct, defstruct

from corvo import __version__
from corvo.api.errors import CODES
from corvo.api.openapi import shapes
from corvo.api.openapi.catalog import JSON, QUERY, Op

_REFERENCE: Final = "#/components/schemas/{name}"
_PARAMETER: Final = re.compile(r"{(\w+)}")
_TITLE: Final = "Corvo"
_INTRODUCTION: Final = (
    "A job-processing server. Bodies are JSON; every answer carries `X-Corvo-Index`, the log index "
    "it reflects. Requests the transport itself refuses are answered 400, 408, 413, 417 or 431 in "
    "the same envelope."
)
_INDEX: Final = {
    "description": "The log index the answer reflects.",
    "schema": {"type": "integer", "minimum": 0},
}
# What any operation may refuse, by what it has.
_ALWAYS: Final = ("PARSE_ERROR", "OVERLOADED", "DRAINING", "DISK_FULL")
_WITH_ANY_BODY: Final = ("UNSUPPORTED_MEDIA_TYPE", "PAYLOAD_TOO_LARGE")
_WITH_FIELDS: Final = ("VALIDATION_ERROR",)


def plain_path(pattern: str) -> str:
    """The path of a route as a reader writes it: without converters."""
    return re.sub(r"{(\w+):\w+}", r"{\1}", pattern)


def build(catalog: Iterable[Op]) -> dict[str, Any]:
    """Make the document."""
    operations = list(catalog)
    kinds: list[Any] = [shapes.Error]
    for item in operations:
        kinds += [kind for kind in (item.takes, *item.gives.values()) if kind is not None]
    described = [_described(kind) for kind in kinds]
    schemas, components = msgspec.json.schema_components(described, ref_template=_REFERENCE)
    found = {_identity(kind): schema for kind, schema in zip(kinds, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    refusals: dict[str, Any] = {}
    for item in operations:
        described_path = paths.setdefault(item.path, {})
        described_path[item.method.lower()] = _operation(item, found, refusals)
    return {
        "openapi": "3.1.0",
        "info": {"title": _TITLE, "version": __version__, "description": _INTRODUCTION},
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(item.tag for item in operations)],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "responses": dict(sorted(refusals.items())),
            "headers": {"Index": _INDEX},
        },
    }


def encode(document: dict[str, Any]) -> bytes:
    """Render the document for reading and comparing: indented, ending in a newline."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


_twins: dict[type[Struct], type[Struct]] = {}


def _described(kind: Any) -> Any:
    """Replace every struct inside a type by a twin that can be described.

    A document that was not sent is an empty `Raw` to the decoder, and the schema has no word for
    such a default.
    """
    if _is_struct(kind):
        return _twin(kind)
    origin: Any = get_origin(kind)
    if origin is Annotated:
        return kind.copy_with((_described(get_args(kind)[0]),))
    if origin is Union or origin is UnionType:
        return Union[tuple(_described(part) for part in get_args(kind))]  # noqa: UP007
    if _is_container(origin):
        return origin[tuple(_described(part) for part in get_args(kind))]
    return kind


def _is_struct(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _is_container(origin: object) -> bool:
    return origin is list or origin is dict


def _twin(kind: type[Struct]) -> type[Struct]:
    known = _twins.get(kind)
    if known is None:
        members: list[Any] = []
        for member in msgspec.structs.fields(kind):
            of = _described(member.type)
            if member.default_factory is not NODEFAULT:
                members.append((member.encode_name, of, member.default_factory()))
            elif isinstance(member.default, Raw):
                members.append((member.encode_name, of, UNSET))
            elif member.default is not NODEFAULT:
                members.append((member.encode_name, of, member.default))
            else:
                members.append((member.encode_name, of))
        text = {"__doc__": kind.__doc__}
        known = defstruct(kind.__name__, members, kw_only=True, namespace=text)
        _twins[kind] = known
    return known


def _identity(kind: Any) -> str:
    return str(kind)


def _operation(item: Op, schemas: dict[str, Any], refusals: dict[str, Any]) -> dict[str, Any]:
    members: dict[str, Any] = {
        "operationId": _operation_id(item),
        "summary": item.summary,
        "tags": [item.tag],
    }
    parameters = _parameters(item)
    if parameters:
        members["parameters"] = parameters
    if item.takes is not None:
        schema = schemas[_identity(item.takes)]
        is_needed = _needs_body(item.takes)
        content = {item.takes_media: {"schema": schema}}
        members["requestBody"] = {"required": is_needed, "content": content}
    members["responses"] = _responses(item, schemas, refusals)
    return members


def _operation_id(item: Op) -> str:
    words = re.findall(r"\w+", item.path.removeprefix("/api/v1").replace("-", "_"))
    # Two spellings of one path (with and without the prefix) are two operations.
    prefix = [] if item.path.startswith("/api/v1") else ["root"]
    return "_".join([item.method.lower(), *prefix, *words])


def _needs_body(kind: Any) -> bool:
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return True
    return any(field.required for field in msgspec.structs.fields(kind))


def _parameters(item: Op) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAMETER.findall(item.path)
    ]
    has_fields = item.takes is not None and item.takes_media == JSON
    for name in (*item.query, *(("strict",) if has_fields else ())):
        known = QUERY[name]
        parameter = {"name": name, "in": "query", "description": known.description}
        found.append({**parameter, "schema": known.schema})
    return found


def _responses(item: Op, schemas: dict[str, Any], refusals: dict[str, Any]) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for status, kind in item.gives.items():
        answer: dict[str, Any] = {"description": "Done." if status < 300 else "Not now."}
        if kind is None:
            answer["description"] = "Nothing within the time-out."
        else:
            media = item.media.partition(";")[0] if status < 300 else JSON
            answer["content"] = {media: {"schema": schemas[_identity(kind)]}}
        if item.path.startswith("/api/"):
            answer["headers"] = {"X-Corvo-Index": {"$ref": "#/components/headers/Index"}}
        answers[str(status)] = answer
    for status, codes in _refusals(item).items():
        if str(status) not in answers:
            name = "-".join(codes)
            content = {JSON: {"schema": schemas[_identity(shapes.Error)]}}
            refusals[name] = {"description": _meaning(codes), "content": content}
            answers[str(status)] = {"$ref": f"#/components/responses/{name}"}
    return dict(sorted(answers.items()))


def _refusals(item: Op) -> dict[int, list[str]]:
    """The codes an operation may answer, by status."""
    codes = [*item.refuses, *_ALWAYS, *_WITH_ANY_BODY]
    if item.takes is not None or item.query or "{" in item.path:
        codes += _WITH_FIELDS
    found: dict[int, list[str]] = {}
    for code in dict.fromkeys(codes):
        found.setdefault(CODES[code].status, []).append(code)
    return found


def _meaning(codes: list[str]) -> str:
    return "\n".join(f"`{code}`: {CODES[code].meaning}" for code in codes)
