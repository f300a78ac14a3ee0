"""Routes of named limits: list, read, set, remove."""

from typing import TYPE_CHECKING, Final

from corvo.api import views, wire
from corvo.api.decode import Reader
from corvo.api.routes.queues import rate_of
from corvo.api.routing import Answer, Call, Table, answer, not_found, refusal, written
from corvo.api.values import check_name
from corvo.errors import RequestError
from corvo.model.command import DeleteLimit, SetLimit
from corvo.model.outcome import LimitChanged, Rejected

if TYPE_CHECKING:
    from corvo.engine import Engine

_PREFIX: Final = "/api/v1/limits"
_NOTHING: Final = Reader(wire.Nothing)
_LIMIT: Final = Reader(wire.LimitRequest)


class LimitRoutes:
    """The operations on named limits, bound to one engine."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine

    def table(self) -> Table:
        """Paths, methods and operations."""
        return {
            _PREFIX: {"GET": self.list},
            f"{_PREFIX}/{{name:path}}": {
                "GET": self.get,
                "PUT": self.put,
                "DELETE": self.delete,
            },
        }

    async def list(self, call: Call) -> Answer:
        """`GET /limits`: every named limit and how much of it is in use."""
        found = self._engine.read.limits(call.principal.ns)
        found = sorted(found, key=lambda pair: pair[0].name)
        return answer([views.limit_members(limit, gate) for limit, gate in found])

    async def get(self, call: Call) -> Answer:
        """`GET /limits/{name}`."""
        found = self._engine.read.limit(call.principal.ns, call.argument)
        if found is None:
            raise not_found("limit")
        return answer(views.limit_members(*found))

    async def put(self, call: Call) -> Answer:
        """`PUT /limits/{name}`: create or replace."""
        request = call.read(_LIMIT)
        name = check_name(call.argument, "name")
        rate = rate_of(request)
        if not request.max and rate is None:
            hint = "DELETE removes a limit"
            raise RequestError("a limit needs max or rate", field="max", hint=hint)
        command = SetLimit(call.principal.ns, name, request.max or 0, rate)
        return await self._change(command)

    async def delete(self, call: Call) -> Answer:
        """`DELETE /limits/{name}`: jobs that name it are no longer held back by it."""
        call.read(_NOTHING)
        name = check_name(call.argument, "name")
        return await self._change(DeleteLimit(call.principal.ns, name))

    async def _change(self, command: SetLimit | DeleteLimit) -> Answer:
        outcome, index = await self._engine.perform(command)
        if isinstance(outcome, Rejected):
            return refusal(outcome, index)
        assert isinstance(outcome, LimitChanged)
        return written({"name": command.name, "status": outcome.status}, index)
