"""The ticker: a small loop that turns the passing of time into commands.

Two paces. What is due by the clock (scheduled jobs, leases, deadlines) has an exact next instant,
which costs one comparison to look at and is looked at twenty times a second; so have the slots of
schedules (`slots.py`). What is due by amount
(retention, events, operations) is looked up once a second.
"""

import asyncio
from typing import Protocol

from corvo.model.command import Command
from corvo.model.outcome import Outcome, Swept
from corvo.model.view import ScheduleView
from corvo.runtime.clock import Clock
from corvo.scheduler.slots import Slots

TICK_MS = 50
LOOK_MS = 1_000
# Rounds of one look before the loop takes a breath; each moves up to SWEEP_LIMIT jobs a command.
ROUNDS_MAX = 64


class Sweepable(Protocol):
    """The part of the engine the ticker uses."""

    @property
    def clock(self) -> Clock:
        """Where time comes from."""
        ...

    @property
    def is_serving(self) -> bool:
        """Whether sweeps are welcome."""
        ...

    def due(self, now_ms: int) -> list[Command]:
        """Sweeps that would find work now."""
        ...

    def next_due_ms(self) -> int:
        """The earliest instant at which a sweep will have work; 0 when none is known."""
        ...

    @property
    def now_ms(self) -> int:
        """The time an entry written now would at least have."""
        ...

    def due_schedules(self, limit: int) -> list[ScheduleView]:
        """Schedules whose next slot is to be fired now."""
        ...

    async def sweep(self, commands: list[Command]) -> list[Outcome]:
        """Submit the sweeps and wait for what they moved."""
        ...


class Ticker:
    """Looks, submits, and looks again while there is more. Runs until cancelled."""

    def __init__(
        self, engine: Sweepable, *, tick_ms: int = TICK_MS, look_ms: int = LOOK_MS
    ) -> None:
        self._engine = engine
        self._slots = Slots(engine)
        self._tick_ms = tick_ms
        self._look_ms = look_ms
        self._looked_ms = 0
        # The instant that was due when a sweep found nothing. Until it changes, or the slow pace
        # comes round, it is not believed: an estimate that is too early must not fill the log.
        self._doubted_ms = 0
        self.sweeps_total = 0
        self.moved_total = 0

    async def run(self) -> None:
        """Tick until cancelled; a failure goes upward."""
        while True:
            await self.tick()
            await asyncio.sleep(self._tick_ms / 1000)

    async def tick(self) -> int:
        """Do what is due; return how many jobs were moved."""
        if not self._engine.is_serving:
            return 0
        return await self._slots.tick() + await self._sweep_due()

    async def _sweep_due(self) -> int:
        now_ms = self._engine.clock.now_ms()
        next_ms = self._engine.next_due_ms()
        is_due = 0 < next_ms <= now_ms and next_ms != self._doubted_ms
        if not is_due and now_ms - self._looked_ms < self._look_ms:
            return 0
        if now_ms - self._looked_ms >= self._look_ms:
            self._looked_ms = now_ms
        moved = await self._sweep_rounds()
        self._doubted_ms = next_ms if moved == 0 and is_due else 0
        self.moved_total += moved
        return moved

    async def _sweep_rounds(self) -> int:
        moved = 0
        for _ in range(ROUNDS_MAX):
            commands = self._engine.due(self._engine.clock.now_ms())
            if not commands:
                break
            self.sweeps_total += len(commands)
            swept = [
                outcome
                for outcome in await self._engine.sweep(commands)
                if isinstance(outcome, Swept)
            ]
            moved += sum(outcome.count for outcome in swept)
            # Only `more` goes on at once; what became due meanwhile waits for the next tick.
            if not any(outcome.more for outcome in swept):
                break
        return moved

    def statistics(self) -> dict[str, int]:
        figures = {"sweeps_total": self.sweeps_total, "moved_total": self.moved_total}
        return figures | self._slots.statistics()
