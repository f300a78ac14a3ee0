"""The pace of retention: sweeps that only tidy up come in rounds, everything else at once."""

from corvo.engine import Engine
from corvo.model.command import Command, PurgeSettled, TrimEvents
from corvo.model.outcome import Outcome
from corvo.runtime.clock import Clock

_TIDYING = (PurgeSettled, TrimEvents)


class PacedSweeps:
    """The engine as the scheduler sees it, with `--retention-interval` between tidying rounds.

    A round goes on until nothing is left to tidy, however many sweeps that takes; then the interval
    begins. Promotion, lost leases, deadlines and operations are never held back.
    """

    def __init__(self, engine: Engine, interval_ms: int) -> None:
        self._engine = engine
        self._interval_ms = interval_ms
        self._next_round_ms = 0

    @property
    def clock(self) -> Clock:
        return self._engine.clock

    @property
    def is_serving(self) -> bool:
        return self._engine.is_serving

    def next_due_ms(self) -> int:
        return self._engine.next_due_ms()

    async def sweep(self, commands: list[Command]) -> list[Outcome]:
        return await self._engine.sweep(commands)

    def due(self, now_ms: int) -> list[Command]:
        commands = self._engine.due(now_ms)
        others: list[Command] = [
            command for command in commands if not isinstance(command, _TIDYING)
        ]
        if now_ms < self._next_round_ms:
            return others
        if len(others) == len(commands):
            self._next_round_ms = now_ms + self._interval_ms
        return commands
