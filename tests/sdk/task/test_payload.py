"""From arguments to payloads and back: what is accepted, and how a mistake is named."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo_sdk.context import Context
from corvo_sdk.payload import PayloadCodec, PayloadError, TaskDefinitionError


class Colour(Enum):
    RED = "red"


@dataclass
class Line:
    sku: str
    count: int = 1


@dataclass
class Order:
    id: int
    lines: list[Line] = field(default_factory=list)


class Point(msgspec.Struct):
    x: int
    y: int = 0


class Options(TypedDict):
    name: str
    limit: NotRequired[int]


class Customer(pydantic.BaseModel):
    email: str
    age: int = pydantic.Field(ge=0)
    parent: "Customer | None" = None


def codec(function: Callable[..., Any]) -> PayloadCodec:
    return PayloadCodec("job", function, Context)


def encode(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return msgspec.json.decode(codec(function).encode(args, kwargs).payload)


def problem(function: Callable[..., Any], *args: Any, **kwargs: Any) -> PayloadError:
    with pytest.raises(PayloadError) as caught:
        codec(function).encode(args, kwargs)
    return caught.value


def send(to: str, count: int = 1, *, urgent: bool = False) -> None: ...


def test_a_payload_names_the_parameters() -> None:
    """Positions become names, and what was left out stays out."""
    assert encode(send, "a") == {"to": "a"}
    assert encode(send, "a", 2, urgent=True) == {"to": "a", "count": 2, "urgent": True}


def test_a_payload_comes_back_as_arguments() -> None:
    """Defaults are those of the function that runs; members it does not know are ignored."""
    args, kwargs = codec(send).decode(b'{"to":"a","count":3,"previous_result":null}')
    assert args == ()
    assert kwargs == {"to": "a", "count": 3}


def test_unannotated_parameters_take_anything() -> None:
    """Without annotations there is nothing to check but that JSON can hold it."""

    def loose(order): ...  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202

    plain = {"id": 1, "lines": [{"sku": "a", "count": 2}]}
    assert encode(loose, Order(1, [Line("a", 2)])) == {"order": plain}
    assert codec(loose).decode(b'{"order":[1]}').kwargs == {"order": [1]}
    assert encode(lambda: None) == {}


def test_object_means_anything() -> None:
    """The careful way to write Any, at the top and inside of containers."""

    def careful(first: object, second: dict[str, object], third: object | None = None) -> None: ...

    made = codec(careful)
    values: dict[str, Any] = {"first": [1, "a"], "second": {"x": {"y": None}}, "third": 5}
    assert made.decode(made.encode((), values).payload).kwargs == values
    assert made.json_schema()["properties"]["first"] == {"description": "any value"}
    assert problem(careful, 1, {1: 2}).parameter == "second"


def test_one_object_with_fields_is_the_payload() -> None:
    """A dataclass, a TypedDict, a Struct and a Pydantic model are payloads as they are."""

    def of_dataclass(order: Order) -> None: ...
    def of_struct(point: Point) -> None: ...
    def of_dict(options: Options) -> None: ...
    def of_model(customer: Customer) -> None: ...

    model = Customer(email="a@example.com", age=3)
    for function, value, plain in (
        (of_dataclass, Order(1, [Line("a")]), {"id": 1, "lines": [{"sku": "a", "count": 1}]}),
        (of_struct, Point(1, 2), {"x": 1, "y": 2}),
        (of_dict, Options(name="n"), {"name": "n"}),
        (of_model, model, {"email": "a@example.com", "age": 3, "parent": None}),
    ):
        made = codec(function)
        payload = made.encode((value,), {}).payload
        assert plain == msgspec.json.decode(payload)
        assert [value] == list(made.decode(payload).kwargs.values())


def test_objects_beside_others_are_members() -> None:
    """With a second parameter each object lies under its name."""

    def pair(order: Order, customer: Customer | None = None) -> None: ...

    made = codec(pair)
    customer = Customer(email="a", age=1)
    payload = made.encode((Order(1), customer), {}).payload
    assert {"order": Order(1), "customer": customer} == made.decode(payload).kwargs


def test_values_of_many_types_come_back_as_they_were() -> None:
    """Instants, days, decimals, identifiers, enumerations, bytes, sets and tuples survive."""

    def many(
        *,
        at: datetime,
        day: date,
        amount: Decimal,
        id: UUID,  # noqa: A002 - parameters are named as people name them
        colour: Colour,
        blob: bytes,
        names: set[str],
        pair: tuple[int, str],
        word: Literal["a", "b"],
        large: int,
    ) -> None: ...

    values: dict[str, Any] = {
        "at": datetime(2030, 1, 2, 3, 4, 5, 6_000, tzinfo=UTC),
        "day": date(2030, 1, 2),
        "amount": Decimal("10.10"),
        "id": UUID(int=7),
        "colour": Colour.RED,
        "blob": b"\x00\xff",
        "names": {"x"},
        "pair": (1, "x"),
        "word": "a",
        "large": 2**60,
    }
    made = codec(many)
    assert values == made.decode(made.encode((), values).payload).kwargs


@given(
    st.fixed_dictionaries(
        {
            "numbers": st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5),
            "text": st.text(),
            "share": st.floats(allow_nan=False, allow_infinity=False),
            "tree": st.recursive(
                st.none() | st.booleans() | st.text(),
                lambda inner: (
                    st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
                ),
                max_leaves=8,
            ),
        }
    )
)
def test_what_is_encoded_is_what_is_decoded(values: dict[str, Any]) -> None:
    """Whatever fits the annotations comes back equal."""

    def function(numbers: list[int], text: str, share: float, tree: Any) -> None: ...

    made = codec(function)
    assert values == made.decode(made.encode((), values).payload).kwargs


@pytest.mark.parametrize(
    ("args", "kwargs", "parameter"),
    [
        ((), {}, "to"),
        ((1,), {}, "to"),
        ((b"a",), {}, "to"),
        ((None,), {}, "to"),
        (("a", "2"), {}, "count"),
        (("a", 1.5), {}, "count"),
        (("a",), {"urgent": 1}, "urgent"),
        (("a",), {"cout": 1}, "cout"),
        (("a", 1, True), {}, None),
        (("a",), {"to": "b"}, "to"),
    ],
)
def test_a_wrong_argument_is_named(args: Any, kwargs: Any, parameter: str | None) -> None:
    """Missing, unknown, doubled or of the wrong type: the error says which parameter."""
    error = problem(send, *args, **kwargs)
    assert parameter == error.parameter
    assert error.task == "job"
    assert "job" in str(error)


def test_a_wrong_value_deep_inside_is_named_by_its_path() -> None:
    """Objects built without checks are looked into."""

    def one(order: Order) -> None: ...
    def two(order: Order, customer: Customer) -> None: ...

    bad_line: Any = Line("a", "many")  # type: ignore[arg-type]
    assert problem(one, Order(1, [bad_line])).parameter == "order.lines[0].count"
    customer = Customer(email="a", age=1)
    assert problem(two, Order(1, [bad_line]), customer).parameter == "order.lines[0].count"
    error = problem(two, Order(1), {"email": "a", "age": -1})
    assert error.parameter == "customer"
    assert error.problem == "age: Input should be greater than or equal to 0"


def test_constraints_of_annotations_are_kept() -> None:
    """A bound on a number or a length is checked where it is enqueued."""

    def bounded(count: Annotated[int, msgspec.Meta(ge=1, le=10)]) -> None: ...

    assert encode(bounded, 10) == {"count": 10}
    assert problem(bounded, 11).parameter == "count"


@pytest.mark.parametrize("value", [object(), float("nan"), {1, object()}, lambda: None])
def test_what_json_cannot_hold_is_refused(value: Any) -> None:
    """Even where the annotation allows anything, the payload must be one."""

    def typed(share: float) -> None: ...
    def anything(value: Any) -> None: ...

    function = typed if isinstance(value, float) else anything
    assert problem(function, value).parameter in {"share", None}


def test_a_value_that_holds_itself_is_refused() -> None:
    """A cycle is an error of the caller, not a crash."""

    def anything(value: Any) -> None: ...

    endless: list[Any] = []
    endless.append(endless)
    assert problem(anything, endless).task == "job"


@pytest.mark.parametrize(
    "payload", [b"", b"{", b"[]", b"null", b'"text"', b'{"count":1}', b'{"to":1}', b'{"to":"\xff"}']
)
def test_a_payload_that_does_not_fit_is_an_error_of_the_payload(payload: bytes) -> None:
    """A job enqueued by somebody else may hold anything; the worker gets one kind of error."""
    with pytest.raises(PayloadError):
        codec(send).decode(payload)


def test_the_context_is_no_part_of_the_payload() -> None:
    """By annotation or by the name ctx, wherever it stands; the rest keeps its place."""

    def annotated(context: Context, to: str) -> None: ...
    def named(ctx, to: str) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001
    def late(to: str, *, ctx: Context) -> None: ...

    for function, name in ((annotated, "context"), (named, "ctx"), (late, "ctx")):
        made = codec(function)
        assert name == made.context_parameter
        payload = made.encode(("a",), {}).payload
        assert msgspec.json.decode(payload) == {"to": "a"}
        assert {"to": "a", name: 7} == made.decode(payload, 7).kwargs


def test_positional_only_parameters_are_given_by_position() -> None:
    """Names travel, positions are restored, and a default in the row may be left out."""

    def function(first: int, second: int = 2, /, third: int = 3) -> None: ...

    made = codec(function)
    assert made.decode(made.encode((1,), {"third": 9}).payload) == ((1,), {"third": 9})
    assert made.decode(made.encode((1, 5), {}).payload) == ((1, 5), {})


def test_a_default_that_does_not_fit_its_annotation_stays_behind() -> None:
    """The idiom `x: int = None` works as long as the default is left out."""

    def function(to: str, count: int = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013

    assert encode(function, "a") == {"to": "a"}
    assert codec(function).decode(b'{"to":"a"}').kwargs == {"to": "a"}


def test_a_default_of_the_only_object_is_sent() -> None:
    """There is no name to leave out, so the default itself is the payload."""
    default = Point(1)

    def function(point: Point = default) -> None: ...

    assert encode(function) == {"x": 1, "y": 0}


def test_a_payload_of_another_producer_may_lack_what_has_a_default() -> None:
    """Nothing at all is an object without members where every field has a default."""

    class Empty(msgspec.Struct):
        x: int = 5

    def function(value: Empty) -> None: ...

    hints = {"value": Empty, "return": None}
    function.__annotations__.update(hints)
    assert codec(function).decode(b"{}").kwargs["value"].x == 5


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def job(*names): ...", r"\*names is not allowed"),
        ("def job(**options): ...", r"\*\*options is not allowed"),
        ("def job(self, a): ...", "not a method"),
        ("def job(a: object.__class__.__class__): ...", "parameter a cannot travel"),
        ("import socket\ndef job(a: socket.socket): ...", "parameter a cannot travel"),
        ("import socket\ndef job(a: list[socket.socket]): ...", "parameter a cannot travel"),
        ("def job(ctx, context: Context): ...", "both ctx and context"),
    ],
)
def test_a_function_that_cannot_be_a_task_is_refused_at_once(text: str, reason: str) -> None:
    """The mistake shows at import, with the name of the parameter."""
    names: dict[str, Any] = {"Context": Context}
    exec(text, names)
    with pytest.raises(TaskDefinitionError, match=reason):
        codec(names["job"])


def test_a_class_defined_further_down_is_found_when_needed() -> None:
    """An annotation may name what does not exist yet when the decorator runs."""
    names: dict[str, Any] = {"dataclass": dataclass}
    exec("def job(later: 'Later') -> None: ...", names)
    made = codec(names["job"])
    exec("@dataclass\nclass Later:\n    x: int", names)
    assert msgspec.json.decode(made.encode((names["Later"](1),), {}).payload) == {"x": 1}


def test_results_are_written_and_read_as_declared() -> None:
    """A result comes back as the type the function gives; an unknown type as plain values."""

    def typed() -> Order: ...  # type: ignore[empty-body]
    def model() -> Customer: ...  # type: ignore[empty-body]
    def strange() -> Context: ...  # type: ignore[empty-body]

    made = codec(typed)
    assert Order(1, [Line("a")]) == made.decode_result(made.encode_result(Order(1, [Line("a")])))
    customer = Customer(email="a", age=1)
    assert customer == codec(model).decode_result(codec(model).encode_result(customer))
    assert codec(strange).decode_result(b'{"x":1}') == {"x": 1}
    with pytest.raises(PayloadError, match="the result"):
        made.encode_result(object())
    with pytest.raises(PayloadError, match="the result"):
        made.decode_result(b'{"id":"x"}')
