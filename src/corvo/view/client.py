"""The core's way to ask the view: `await view.query("job_events", {...}, after=index)`."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corvo.errors import OverloadedError, RequestError, UnavailableError
from corvo.view import frames, messages
from corvo.view.messages import Answer, Query
from corvo.view.sender import Sender
from corvo.view.standing import OFF, Standing

if TYPE_CHECKING:
    from corvo.engine import Engine

AFTER_S: Final = 5.0
BUDGET_MS: Final = 5_000
GRACE_S: Final = 5.0  # beyond the budget, for the queue in front of the view
PENDING_MAX: Final = 512

_UNAVAILABLE: Final = frozenset({"VIEW_DOWN", "VIEW_BEHIND", "QUERY_TIMEOUT"})


class ViewClient:
    """Queries out, the feed in; one per server, connected to one view process after another."""

    def __init__(self, engine: "Engine", *, is_on: bool = True) -> None:
        self._engine = engine
        self._is_on = is_on
        self._writer: asyncio.StreamWriter | None = None
        self._pending: dict[int, asyncio.Future[Answer]] = {}
        self._number = 0
        self.standing = Standing(engine.clock, lambda: engine.index)

    # --- asking ---------------------------------------------------------------------------------

    async def query(
        self,
        name: str,
        parameters: Mapping[str, Any],
        after: int = 0,
        *,
        budget_ms: int = BUDGET_MS,
    ) -> bytes:
        """Ask a query of `view.queries` by name; returns the JSON to send to the client.

        With `after`, waits until the view has reached that index, up to five seconds. Raises what
        the query refused, VIEW_BEHIND, VIEW_DOWN and QUERY_TIMEOUT.
        """
        if not self._is_on:
            raise _down("the search index is turned off", "start the server without --view off")
        if after and not await self.standing.wait_for(after, AFTER_S):
            if self._writer is None:
                raise _down("the search index is being restarted")
            text = f"the search index is at {self.standing.position}, not yet at {after}"
            raise UnavailableError(text, code="VIEW_BEHIND")
        answer = await self._ask(name, parameters, budget_ms)
        if not answer.code:
            return answer.body
        field, hint = answer.field or None, answer.hint or None
        if answer.code in _UNAVAILABLE:
            raise UnavailableError(answer.message, code=answer.code, field=field, hint=hint)
        assert answer.code != "INTERNAL_ERROR", answer.message
        raise RequestError(answer.message, code=answer.code, field=field, hint=hint)

    async def _ask(self, name: str, parameters: Mapping[str, Any], budget_ms: int) -> Answer:
        writer = self._writer
        if writer is None:
            raise _down("the search index is being restarted")
        if len(self._pending) >= PENDING_MAX:
            raise OverloadedError("too many queries wait for the search index", retry_after_ms=500)
        self._number += 1
        number = self._number
        done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._pending[number] = done
        asked = Query(number, name, msgspec.msgpack.encode(parameters), budget_ms)
        try:
            writer.write(frames.pack(messages.encode(asked)))
            async with asyncio.timeout(budget_ms / 1_000 + GRACE_S):
                return await done
        except (TimeoutError, ConnectionError) as error:
            raise _down("the search index did not answer") from error
        finally:
            del self._pending[number]

    # --- what the server needs ------------------------------------------------------------------

    @property
    def is_on(self) -> bool:
        return self._is_on

    @property
    def state(self) -> str:
        """One of ok, behind, down, off."""
        return self.standing.state if self._is_on else OFF

    @property
    def lag(self) -> int:
        """Entries the view has not applied."""
        return self.standing.lag

    def statistics(self) -> dict[str, Any]:
        """Figures for `/cluster/status`."""
        return self.standing.statistics() if self._is_on else {"state": OFF}

    def rebuild(self) -> dict[str, Any]:
        """Have the view built anew; returns how far it is."""
        if not self._is_on:
            raise _down("the search index is turned off", "start the server without --view off")
        if not self.standing.is_rebuilding:
            self.standing.want_rebuild("asked for by an operator")
        return self.standing.rebuild_members()

    # --- a connection ---------------------------------------------------------------------------

    async def serve(
        self,
        feed: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        queries: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Serve one view process until it is gone."""
        self._writer = queries[1]
        self.standing.note_connected(is_connected=True)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(Sender(self._engine, self.standing, *feed).run())
                group.create_task(self._receive(queries[0]))
        except* frames.ClosedError:
            pass
        finally:
            self._writer = None
            self.standing.note_connected(is_connected=False)
            for done in self._pending.values():
                if not done.done():
                    done.set_exception(_down("the search index was restarted"))

    async def _receive(self, reader: asyncio.StreamReader) -> None:
        while True:
            message = messages.decode_to_core(await frames.read(reader))
            assert isinstance(message, Answer)
            done = self._pending.get(message.number)
            if done is not None and not done.done():
                done.set_result(message)


def _down(message: str, hint: str | None = None) -> UnavailableError:
    return UnavailableError(message, code="VIEW_DOWN", hint=hint)
