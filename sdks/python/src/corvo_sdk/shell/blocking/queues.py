"""Queues and named limits."""

from typing import Unpack

from corvo_sdk.protocol.endpoints import queues
from corvo_sdk.shell.blocking.running import Runner
from corvo_sdk.types.queues import (
    Drained,
    Limit,
    LimitChange,
    Queue,
    QueueChange,
    QueueOptions,
    Removal,
    SettingsChange,
)
from corvo_sdk.values import Duration


class Queues(Runner):
    """Calls about queues and named limits."""

    def queues(self) -> list[Queue]:
        """List all queues, by name."""
        return self._run(queues.queues())

    def queue(self, name: str) -> Queue:
        """Read a queue."""
        return self._run(queues.queue(name))

    def configure_queue(self, name: str, **settings: Unpack[QueueOptions]) -> SettingsChange:
        """Change settings of a queue; None removes one, what is left out stays."""
        return self._run(queues.configure_queue(name, settings))

    def delete_queue(self, name: str, *, confirm: bool = False) -> Removal:
        """Remove a queue and every job in it; refused unless confirmed."""
        return self._run(queues.delete_queue(name, confirm=confirm))

    def pause(self, name: str) -> QueueChange:
        """Stop handing out the jobs of a queue."""
        return self._run(queues.pause(name))

    def resume(self, name: str) -> QueueChange:
        """Hand out the jobs of a queue again."""
        return self._run(queues.resume(name))

    def drain(self, name: str) -> Drained:
        """Pause a queue, and say how many of its jobs are still active."""
        return self._run(queues.drain(name))

    def clear(self, name: str) -> Removal:
        """Remove the waiting jobs of a queue; `undo_bulk` brings them back."""
        return self._run(queues.clear(name))

    def set_concurrency(self, name: str, maximum: int | None) -> SettingsChange:
        """Limit how many jobs of a queue run at once; None removes the limit."""
        return self._run(queues.set_concurrency(name, maximum))

    def throttle(
        self, name: str, rate: int, *, period: Duration | None = None, burst: int | None = None
    ) -> SettingsChange:
        """Limit how many jobs of a queue start in a time."""
        return self._run(queues.throttle(name, rate, period=period, burst=burst))

    def unthrottle(self, name: str) -> SettingsChange:
        """Remove the rate limit of a queue."""
        return self._run(queues.unthrottle(name))

    def limits(self) -> list[Limit]:
        """List named limits."""
        return self._run(queues.limits())

    def limit(self, name: str) -> Limit:
        """Read a named limit."""
        return self._run(queues.limit(name))

    def set_limit(
        self,
        name: str,
        *,
        maximum: int | None = None,
        rate: int | None = None,
        period: Duration | None = None,
        burst: int | None = None,
    ) -> LimitChange:
        """Create or replace a named limit."""
        call = queues.set_limit(name, maximum=maximum, rate=rate, period=period, burst=burst)
        return self._run(call)

    def delete_limit(self, name: str) -> LimitChange:
        """Remove a named limit."""
        return self._run(queues.delete_limit(name))
