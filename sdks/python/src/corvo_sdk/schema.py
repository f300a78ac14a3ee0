"""Types of parameters: which of them are an object of their own, and how JSON describes them.

Everything msgspec knows can be a parameter; Pydantic models are added by hooks, and Pydantic is
never imported here: a model only exists where the user has imported it.
"""

import dataclasses
import sys
from typing import Any, Final, cast, get_origin, is_typeddict

import msgspec

JsonSchema = dict[str, Any]

_REFERENCE: Final = "#/$defs/{model}"
_REFERENCE_MSGSPEC: Final = "#/$defs/{name}"


def is_pydantic(kind: object) -> bool:
    """Say whether a type is a Pydantic model."""
    pydantic: Any = sys.modules.get("pydantic")
    if pydantic is None or not isinstance(kind, type):
        return False
    return issubclass(kind, cast("type[Any]", pydantic.BaseModel))


def is_struct_kind(annotation: object) -> bool:
    """Say whether values of a type are objects with named fields, so one can be a whole payload."""
    named: object = get_origin(annotation) or annotation
    if not isinstance(named, type):
        return False
    kind = cast("type[object]", named)
    return (
        issubclass(kind, msgspec.Struct)
        or dataclasses.is_dataclass(kind)
        or is_typeddict(kind)
        or hasattr(kind, "__attrs_attrs__")
        or is_pydantic(kind)
    )


def encode_hook(value: object) -> object:
    """Turn what msgspec does not know into what it knows."""
    if is_pydantic(type(value)):
        return cast("Any", value).model_dump(mode="json")
    raise NotImplementedError(f"a value of type {type(value).__name__} cannot travel as JSON")


def decode_hook(kind: type, value: object) -> object:
    """Make an object of a type msgspec does not know; a ValueError gets its path by msgspec."""
    if kind is object:
        return value  # a careful way to write Any
    if is_pydantic(kind):
        try:
            return cast("Any", kind).model_validate(value)
        except ValueError as error:
            raise ValueError(_first_problem(error)) from error
    raise NotImplementedError(f"a value of type {kind.__name__} cannot be read from JSON")


def _first_problem(error: ValueError) -> str:
    # Pydantic tells every problem on several lines with an address; one line says enough.
    found: list[Any] = getattr(error, "errors", list)()
    if not found:
        return str(error)
    place = ".".join(str(part) for part in found[0]["loc"])
    return f"{place}: {found[0]['msg']}" if place else str(found[0]["msg"])


def json_schema(annotation: object) -> JsonSchema:
    """Describe a type as JSON Schema 2020-12; a TypeError names what cannot be described."""
    shared: dict[str, Any] = {}

    def hook(kind: type) -> JsonSchema:
        if kind is object:
            return {"description": "any value"}  # an empty one counts as no answer
        if not is_pydantic(kind):
            raise NotImplementedError
        found = cast("Any", kind).model_json_schema(ref_template=_REFERENCE)
        # References of a model point to the root of the document, so its parts move there.
        shared.update(found.pop("$defs", {}))
        return cast("JsonSchema", found)

    kinds = cast("Any", [annotation])
    (described,), parts = msgspec.json.schema_components(
        kinds, schema_hook=hook, ref_template=_REFERENCE_MSGSPEC
    )
    shared = parts | shared
    name = str(described.get("$ref", "")).removeprefix("#/$defs/")
    if name in shared and len(described) == 1:
        described = shared.pop(name) if _count(shared, name) == 0 else described
    return described | ({"$defs": shared} if shared else {})


def _count(shared: dict[str, Any], name: str) -> int:
    # A type that names itself has to stay where the reference points.
    return msgspec.json.encode(shared).count(f'"#/$defs/{name}"'.encode())
