"""From body bytes to a struct of `wire`, or to a refusal that names the field.

Two decoders per shape: the ordinary one ignores unknown fields, the strict one (`?strict=true`)
refuses them. The strict shapes are derived from the ordinary ones, so they cannot drift apart.
"""

import re
from types import UnionType
from typing import Annotated, Any, Final, Generic, TypeVar, Union, cast, get_args, get_origin

from msgspec import NODEFAULT, DecodeError, Struct, ValidationError, defstruct, field
from msgspec.json import Decoder
from msgspec.structs import fields

from corvo.api import diagnosis, wire
from corvo.errors import RequestError
from corvo.model import limits

Shape = TypeVar("Shape", bound=Struct)

_PATH: Final = re.compile(r" - at `\$\.?(.*)`$", re.DOTALL)
_KEY_PATH: Final = re.compile(r" - at `key in \$\.?(.*)`$", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(.*)`$", re.DOTALL)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`$", re.DOTALL)
_TRUE: Final = (b"strict=true", b"strict=1", b"strict")

# What a closed set of words allows, for the hint.
_WORDS: Final[dict[str, str]] = {
    name: ", ".join(get_args(words))
    for name, words in {
        "priority": wire.Priority,
        "retry_backoff": wire.Backoff,
        "unique_mode": wire.UniqueMode,
        "on_dependency_failure": wire.DependencyPolicy,
        "timeout_action": wire.HoldAction,
        "step_status": wire.StepStatus,
        "priority_mode": wire.PriorityMode,
        "overlap": wire.Overlap,
        "catch_up": wire.CatchUp,
        "action": wire.BulkAction,
    }.items()
}

_strict_shapes: dict[type[Struct], type[Struct]] = {}


def _is_shape(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Struct)


def _strict_type(annotation: Any) -> Any:
    """Replace every struct inside an annotation by its strict twin."""
    if _is_shape(annotation):
        return strict_shape(annotation)
    origin: Any = get_origin(annotation)
    if origin is Annotated:
        # Only the first argument is a type, the rest are constraints.
        return annotation.copy_with((_strict_type(get_args(annotation)[0]),))
    if origin is Union or origin is UnionType:
        return Union[tuple(_strict_type(part) for part in get_args(annotation))]  # noqa: UP007
    if _is_container(origin):
        return origin[tuple(_strict_type(part) for part in get_args(annotation))]
    return annotation


def _is_container(origin: object) -> bool:
    return origin is list or origin is dict


def strict_shape(shape: type[Shape]) -> type[Shape]:
    """Derive the twin of a shape that refuses unknown fields, at any depth."""
    known = _strict_shapes.get(shape)
    if known is None:
        members: list[Any] = []
        for member in fields(shape):
            kind = _strict_type(member.type)
            if member.encode_name != member.name:
                kept = field(default=member.default, name=member.encode_name)
                members.append((member.name, kind, kept))
            elif member.default_factory is not NODEFAULT:
                members.append((member.name, kind, member.default_factory()))
            elif member.default is not NODEFAULT:
                members.append((member.name, kind, member.default))
            else:
                members.append((member.name, kind))
        known = defstruct(
            shape.__name__,
            members,
            bases=(shape,),
            kw_only=True,
            forbid_unknown_fields=True,
            rename={member.name: member.encode_name for member in fields(shape)},
        )
        _strict_shapes[shape] = known
    return cast("type[Shape]", known)


class Reader(Generic[Shape]):
    """Decodes one kind of request body."""

    __slots__ = ("_loose", "_strict")

    def __init__(self, shape: type[Shape]) -> None:
        self._loose = Decoder(shape)
        self._strict = Decoder(strict_shape(shape))

    def read(self, body: bytes, query: bytes) -> Shape:
        """Decode a body; the query says whether strictly. Raises `RequestError`."""
        decoder = self._strict if query and is_strict(query) else self._loose
        try:
            # Safety: documents stay undecoded bytes, so the decoder does not see whether they are
            # UTF-8. Python's codec refuses encoded surrogates too.
            if not body.isascii():
                body.decode()
            return decoder.decode(body or b"{}")
        except ValidationError as error:
            raise invalid(str(error)) from error
        except (DecodeError, UnicodeDecodeError) as error:
            raise diagnosis.explain(body, error) from error
        except RecursionError as error:
            raise diagnosis.too_deep(body) from error


def is_strict(query: bytes) -> bool:
    """Say whether a query string asks for strict decoding."""
    return query == _TRUE[0] or any(part in _TRUE for part in query.split(b"&"))


def invalid(message: str) -> RequestError:
    """Make a refusal of the decoder's message; the path in it becomes the field."""
    path = ""
    for pattern in (_PATH, _KEY_PATH):
        found = pattern.search(message)
        if found is not None:
            message, path = message[: found.start()], found.group(1)
            break
    for pattern in (_MISSING, _UNKNOWN):
        found = pattern.match(message)
        if found is not None:
            name = found.group(1)
            path = f"{path}.{name}" if path else name
    if "length <=" in message or "length >=" in message:
        message = message.replace("`array` of ", "a list of ").replace(
            "`object` of ", "an object of "
        )
    name = path.rpartition(".")[2]
    words = _WORDS.get(name)
    hint = f"one of: {words}" if words is not None else None
    return RequestError(message, field=path[: limits.REASON_BYTES_MAX] or None, hint=hint)


def under(path: str, error: RequestError) -> RequestError:
    """Put the path of an item in front of the field an error is about."""
    error.field = f"{path}.{error.field}" if error.field else path
    return error
