# Made from shell/blocking/schedules.py by `make sdk`; change that one.
"""Schedules."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Unpack

from corvo_sdk.protocol.endpoints import schedules
from corvo_sdk.shell.awaiting.running import Runner
from corvo_sdk.types.schedules import (
    Backfill,
    Schedule,
    ScheduleChange,
    ScheduleOptions,
    ScheduleRun,
)
from corvo_sdk.values import Instant


class Schedules(Runner):
    """Calls about schedules; a name will do for an id."""

    async def schedules(self, *, page_size: int = 200) -> AsyncIterator[Schedule]:
        """List schedules by name, without payloads: all of them, page after page."""
        name: str | None = None
        while True:
            page = await self._run(schedules.schedules(limit=page_size, after=name))
            for schedule in page:
                yield schedule
            if len(page) < page_size:
                return
            name = page[-1].name

    async def schedule(self, schedule_id: str) -> Schedule:
        """Read a schedule."""
        return await self._run(schedules.schedule(schedule_id))

    async def create_schedule(
        self,
        name: str,
        cron: str,
        queue: str,
        payload: Any = None,
        **options: Unpack[ScheduleOptions],
    ) -> Schedule:
        """Create a schedule that enqueues a job at each slot of a cron expression."""
        return await self._run(schedules.create_schedule(name, cron, queue, payload, options))

    async def replace_schedule(
        self,
        schedule_id: str,
        name: str,
        cron: str,
        queue: str,
        payload: Any = None,
        **options: Unpack[ScheduleOptions],
    ) -> Schedule:
        """Replace a schedule; how far it has come stays."""
        call = schedules.replace_schedule(schedule_id, name, cron, queue, payload, options)
        return await self._run(call)

    async def delete_schedule(self, schedule_id: str) -> ScheduleChange:
        """Remove a schedule; its jobs stay."""
        return await self._run(schedules.delete_schedule(schedule_id))

    async def pause_schedule(self, schedule_id: str) -> ScheduleChange:
        """Make no more jobs."""
        return await self._run(schedules.pause_schedule(schedule_id))

    async def resume_schedule(self, schedule_id: str) -> ScheduleChange:
        """Make jobs again; the slots of the pause are not made up for."""
        return await self._run(schedules.resume_schedule(schedule_id))

    async def run_schedule(self, schedule_id: str) -> ScheduleRun:
        """Make a job now."""
        return await self._run(schedules.run_schedule(schedule_id))

    async def backfill_schedule(self, schedule_id: str, start: Instant, until: Instant) -> Backfill:
        """Make jobs for the slots from `start` on and before `until` that have none."""
        return await self._run(schedules.backfill_schedule(schedule_id, start, until))

    async def preview_schedule(
        self, schedule_id: str, *, count: int | None = None
    ) -> list[datetime]:
        """The slots to come."""
        return (await self._run(schedules.preview_schedule(schedule_id, count=count))).runs

    async def preview_cron(
        self,
        cron: str,
        *,
        timezone: str | None = None,
        start_at: Instant | None = None,
        end_at: Instant | None = None,
        count: int | None = None,
    ) -> list[datetime]:
        """Slots of an expression that is not saved."""
        call = schedules.preview_cron(
            cron, timezone=timezone, start_at=start_at, end_at=end_at, count=count
        )
        return (await self._run(call)).runs
