"""What `app.task(...)` gives, as type checkers see it."""

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, final, overload

from corvo_sdk.context import Context
from corvo_sdk.task import FunctionTask

P = ParamSpec("P")
R = TypeVar("R")


@final
class _Anything:
    """Never made: only a first parameter without a type, or of type Any or object, accepts it."""


class TaskDecorator(Protocol):
    """Makes a task of a function, and keeps what type checkers know about it.

    A first parameter of type `Context` is filled in by the worker: a direct call has to give it,
    and an enqueue can not. Where the first parameter may be anything, it may be the context, too:
    then the arguments are left unchecked until the enqueue.
    """

    @overload
    def __call__(
        self, function: Callable[Concatenate[_Anything, ...], Coroutine[Any, Any, R]], /
    ) -> FunctionTask[..., R, ..., Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[_Anything, ...], R], /
    ) -> FunctionTask[..., R, ..., R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> FunctionTask[P, R, Concatenate[Context, P], Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], R], /
    ) -> FunctionTask[P, R, Concatenate[Context, P], R]: ...
    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> FunctionTask[P, R, P, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> FunctionTask[P, R, P, R]: ...
