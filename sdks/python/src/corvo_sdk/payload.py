"""Between the arguments of a function and the JSON of a job: one `PayloadCodec` per task.

Exactly one parameter with named fields (dataclass, TypedDict, Struct, Pydantic model): the object
is the payload. Otherwise the payload is an object of the parameters by name. Arguments the caller
left out are left out of the payload; their defaults are filled in where the job runs.

Invariant: what `encode` lets through, `decode` accepts. It is kept by doing it: every payload is
read back before it leaves, so that a wrong argument is an error of the caller and not of a worker.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, NotRequired, Required, TypedDict, cast, get_type_hints

import msgspec

from corvo_sdk import schema

_UNBOUND: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
CONTEXT_NAME: Final = "ctx"
# How msgspec ends a message: where in the document, or at which key there.
_PLACE: Final = re.compile(r" - at (?:`key` in )?`\$\.?([^`]*)`$")


class PayloadError(ValueError):
    """Arguments that do not fit a task, or a payload that does not; nothing was sent."""

    def __init__(self, task: str, problem: str, parameter: str | None = None) -> None:
        super().__init__(task, problem, parameter)
        self.task = task
        self.problem = problem
        self.parameter = parameter

    def __str__(self) -> str:
        place = f"{self.task}: " if self.parameter is None else f"{self.task}({self.parameter}): "
        return place + self.problem


class TaskDefinitionError(TypeError):
    """A function that cannot be a task; raised where it is decorated."""


class Arguments(NamedTuple):
    """What a function is called with."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Encoded(NamedTuple):
    """A payload, and the arguments it was made of."""

    payload: bytes
    arguments: dict[str, Any]  # with defaults filled in
    left_out: dict[str, Any]  # defaults that are not part of the payload


class _Shape(NamedTuple):
    """What is known once annotations can be resolved."""

    context: str | None  # the parameter that gets the context
    signature: inspect.Signature  # of an enqueue: without the context
    single: str | None  # the parameter that is the whole payload
    fields: dict[str, Any]  # the types of all parameters but the context
    kind: Any  # the type of the payload
    result: Any  # the type of the result, as far as it can be read from JSON
    decoder: msgspec.json.Decoder[Any]


class PayloadCodec:
    """Encodes and decodes the arguments of one function."""

    def __init__(self, task: str, function: Callable[..., Any], context_type: type) -> None:
        self._task = task
        self._function = function
        self._context_type = context_type
        self._signature = _signature(task, function)
        self._shape: _Shape | None = None
        self._encoder = msgspec.json.Encoder(enc_hook=schema.encode_hook)
        # Positional-only parameters are the rare case in which names are not enough.
        self._positional = [
            name
            for name, parameter in self._signature.parameters.items()
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY
        ]
        try:
            self.shape()
        except NameError:
            # Safety: an annotation may name a class defined further down; the first use asks again.
            self._shape = None

    @property
    def context_parameter(self) -> str | None:
        """The parameter that gets the context instead of an argument."""
        return self.shape().context

    def shape(self) -> _Shape:
        """Resolve annotations, once."""
        if self._shape is None:
            self._shape = self._resolve()
        return self._shape

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Encoded:
        """Check arguments against the annotations and make the payload."""
        shape = self.shape()
        given = self._bind(args, kwargs)
        left_out = {
            name: self._as_sent(parameter.default, shape.fields[name])
            for name, parameter in self._signature.parameters.items()
            if name not in given and name != shape.context
        }
        bound = given | left_out
        if shape.single is not None:
            # A default of the only parameter is the payload: there is no name to leave out.
            return Encoded(self._checked(bound[shape.single], shape), bound, {})
        return Encoded(self._checked(given, shape), bound, left_out)

    def decode(self, payload: bytes, context: object = None) -> Arguments:
        """Make the arguments of a payload; the context goes where the function wants it."""
        shape = self.shape()
        try:
            found = shape.decoder.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._error(error, shape) from error
        kwargs = cast("dict[str, Any]", found) if shape.single is None else {shape.single: found}
        if shape.context is not None:
            kwargs[shape.context] = context
        if not self._positional:
            return Arguments((), kwargs)
        # A positional-only parameter left out ends the row; those after it have defaults as well.
        args = tuple(kwargs.pop(name) for name in self._positional if name in kwargs)
        return Arguments(args, kwargs)

    def encode_result(self, value: object) -> bytes:
        """Make the JSON of a result."""
        try:
            return self._encoder.encode(value)
        except (TypeError, ValueError, RecursionError, NotImplementedError) as error:
            raise PayloadError(self._task, f"the result: {error}") from error

    def decode_result(self, result: bytes) -> Any:
        """Read a result as the type the function declares."""
        try:
            return msgspec.json.decode(
                result, type=self.shape().result, dec_hook=schema.decode_hook
            )
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise PayloadError(self._task, f"the result: {error}") from error

    def json_schema(self) -> schema.JsonSchema:
        """Describe the payload."""
        described = schema.json_schema(self.shape().kind)
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **described}

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return dict(self.shape().signature.bind(*args, **kwargs).arguments)
        except TypeError as error:
            raise PayloadError(self._task, str(error), _quoted(str(error))) from error

    def _checked(self, value: Any, shape: _Shape) -> bytes:
        try:
            # Text is told from bytes and numbers from text here, which JSON alone would hide; what
            # lies inside an object of the user is looked at by reading the result back.
            fitting = msgspec.convert(value, shape.kind, dec_hook=schema.decode_hook)
            payload = self._encoder.encode(fitting)
            shape.decoder.decode(payload)
        except (TypeError, ValueError, RecursionError, NotImplementedError) as error:
            raise self._error(error, shape) from error
        return payload

    def _as_sent(self, default: Any, annotation: Any) -> Any:
        # Safety: nobody checks that a default fits its annotation (`x: int = None`), and one that
        # does not is fine here: it stays behind.
        try:
            return msgspec.convert(default, annotation, dec_hook=schema.decode_hook)
        except (TypeError, ValueError):
            return default

    def _error(self, error: Exception, shape: _Shape) -> PayloadError:
        found = _PLACE.search(str(error))
        text = str(error) if found is None else str(error)[: found.start()]
        inside = "" if found is None else found.group(1)
        if shape.single is not None:
            where = f"{shape.single}.{inside}" if inside else shape.single
            return PayloadError(self._task, text, where)
        return PayloadError(self._task, text, inside or _quoted(text))

    def _resolve(self) -> _Shape:
        hints = get_type_hints(self._function, include_extras=True)
        context = self._find_context(hints)
        fields = {
            name: hints.get(name, Any) for name in self._signature.parameters if name != context
        }
        single = next(iter(fields)) if len(fields) == 1 else None
        if single is not None and not schema.is_struct_kind(fields[single]):
            single = None
        for name, annotation in fields.items():
            self._refuse_unknown(name, annotation)
        kind = fields[single] if single is not None else self._by_name(fields)
        parameters = [self._signature.parameters[name] for name in fields]
        return _Shape(
            context,
            self._signature.replace(parameters=parameters),
            single,
            fields,
            kind,
            _result_type(hints.get("return", Any)),
            msgspec.json.Decoder(kind, dec_hook=schema.decode_hook),
        )

    def _find_context(self, hints: dict[str, Any]) -> str | None:
        wanted = [
            name
            for name in self._signature.parameters
            if name == CONTEXT_NAME or hints.get(name) is self._context_type
        ]
        if len(wanted) > 1:
            problem = f"both {wanted[0]} and {wanted[1]} ask for the context"
            raise TaskDefinitionError(f"{self._task}: {problem}")
        return wanted[0] if wanted else None

    def _refuse_unknown(self, name: str, annotation: Any) -> None:
        try:
            schema.json_schema(annotation)
        except (TypeError, NotImplementedError) as error:
            reason = str(error).splitlines()[-1]
            problem = f"parameter {name} cannot travel as JSON: {reason}"
            raise TaskDefinitionError(f"{self._task}: {problem}") from error

    def _by_name(self, fields: dict[str, Any]) -> Any:
        members: dict[str, Any] = {}
        for name, annotation in fields.items():
            is_needed = self._signature.parameters[name].default is inspect.Parameter.empty
            members[name] = Required[annotation] if is_needed else NotRequired[annotation]
        # Unknown members are ignored when read: chains and callbacks add some to every payload.
        return cast("Any", TypedDict)(self._function.__name__, members)


def _signature(task: str, function: Callable[..., Any]) -> inspect.Signature:
    signature = inspect.signature(function)
    for index, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind in _UNBOUND:
            stars = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else "**"
            hint = "a payload needs a name for every argument; take a list or a dict instead"
            raise TaskDefinitionError(f"{task}: {stars}{name} is not allowed: {hint}")
        if index == 0 and name in {"self", "cls"}:
            raise TaskDefinitionError(f"{task}: a task is a plain function, not a method")
    return signature


def _result_type(annotation: Any) -> Any:
    # Safety: a function may return what JSON cannot hold and never mean it as a result; then the
    # result is given as plain values.
    try:
        schema.json_schema(annotation)
    except (TypeError, NotImplementedError):
        return Any
    return annotation


def _quoted(text: str) -> str | None:
    # "missing a required argument: 'x'" of inspect, "Object missing required field `x`" of msgspec.
    for mark in ("'", "`"):
        parts = text.split(mark)
        if len(parts) == 3 and parts[1].isidentifier():
            return parts[1]
    return None
