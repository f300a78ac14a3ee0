"""A server with a dispatcher that is in a hurry, and may be stopped, killed and started again."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from corvo.api.app import Surface, build
from corvo.runtime.clock import SystemClock
from corvo.runtime.tasks import Supervisor
from corvo.storage.memory import MemoryStore
from corvo.webhooks import Dispatcher, Guard
from corvo.webhooks.endpoint import Pace
from corvo.webhooks.guard import parse_networks
from tests.support.rig import HeldSync
from tests.support.server import Server

FAST = Pace(
    rest_ms=2,
    reload_ms=50,
    save_ms=20,
    idle_save_ms=20,
    backoff_ms=10,
    suspension_ms=50,
    failures_max=4,
)


class Stage(Server):
    """A whole server in this process; loopback is allowed unless a test says otherwise."""

    def __init__(
        self,
        *,
        allow: str = "127.0.0.0/8",
        pace: Pace = FAST,
        like: "Stage | None" = None,
        **more: Any,
    ) -> None:
        super().__init__(lane="slow", **({"clock": SystemClock()} | more))
        self.allow = allow
        self.pace = pace
        if like is not None:
            self.store, self.disk = like.left_store, like.left_disk
            self.syncer = HeldSync(self.disk)

    def surface(self) -> Surface:
        """Serve with a dispatcher."""
        self.webhooks = Dispatcher(self.engine, Guard(parse_networks(self.allow)), pace=self.pace)
        self.tasks = Supervisor()
        self.tasks.start("webhooks", self.webhooks.run())
        return build(self.engine, webhooks=self.webhooks)

    async def _stop(self) -> None:
        await self.listener.close()
        await self.tasks.stop()
        assert self.tasks.failure is None
        await self.webhooks.stop()
        await self.engine.close()

    def halt(self) -> None:
        """Stop in order; `again` starts from what is left."""
        self.close_connection()
        self.stop()
        assert isinstance(self.store, MemoryStore)
        self.left_store, self.left_disk = self.store.copy(), self.disk

    def kill(self) -> None:
        """End at once, as a crash does: nothing more is written."""

        async def end() -> None:
            self.engine.kill()
            await self.listener.close()
            await self.tasks.stop()
            await self.webhooks._tasks.stop()
            await self.engine._tasks.stop()

        self.run(end)
        self.close_connection()
        assert isinstance(self.store, MemoryStore)
        self.left_store, self.left_disk = self.store.flushed(), self.disk.kill()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def create(self, url: str, **fields: Any) -> str:
        """Create a webhook and return its id."""
        reply = self.post("/webhooks", {"url": url} | fields)
        assert reply.status == 201, reply.body
        return reply.json["id"]

    def webhook(self, identifier: str) -> Any:
        """Read a webhook."""
        reply = self.get(f"/webhooks/{identifier}")
        assert reply.status == 200, reply.body
        return reply.json

    def wait_webhook(self, identifier: str, **expected: Any) -> Any:
        """Wait until fields of a webhook have these values."""
        seen: dict[str, Any] = {}

        def holds() -> bool:
            seen.update(self._members(identifier))
            return all(seen[name] == value for name, value in expected.items())

        self.wait_until(holds)
        return seen

    def _members(self, identifier: str) -> dict[str, Any]:
        from corvo.api.routes.webhooks import WebhookRoutes  # noqa: PLC0415
        from corvo.model.ids import WEBHOOK, parse_id  # noqa: PLC0415

        routes = WebhookRoutes(self.engine, None, self.webhooks)  # type: ignore[arg-type]
        view = self.engine.read.webhook(0, parse_id(WEBHOOK, identifier) or b"")
        assert view is not None
        return routes._members(view)


@contextmanager
def staged(**arguments: Any) -> Iterator[Stage]:
    """A server for one test; at its end nothing was reported and every invariant holds."""
    stage = Stage(**arguments)
    stage.start()
    try:
        yield stage
        assert stage.reports == []
        assert stage.audit() == []
    finally:
        stage.close_connection()
        stage.stop()
