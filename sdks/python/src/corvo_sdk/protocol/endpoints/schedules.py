"""Schedules. A slot has one job whatever happens, so a backfill may be sent twice; a run not."""

from collections.abc import Mapping
from typing import Any, Final

from corvo_sdk.protocol.call import Call, Repeat
from corvo_sdk.protocol.endpoints.making import command, given, read, reader, rendered, write
from corvo_sdk.types.schedules import Backfill, Runs, Schedule, ScheduleChange, ScheduleRun
from corvo_sdk.values import Instant, instant_text, maybe_instant, segment

_SCHEDULES: Final = reader(list[Schedule])
_SCHEDULE: Final = reader(Schedule)
_CHANGE: Final = reader(ScheduleChange)
_RUN: Final = reader(ScheduleRun)
_BACKFILL: Final = reader(Backfill)
_RUNS: Final = reader(Runs)
_TWICE: Final = Repeat.ALWAYS


def schedules(*, limit: int | None, after: str | None) -> Call[list[Schedule]]:
    """`GET /schedules`."""
    return read("/schedules", _SCHEDULES, query={"limit": limit, "after": after})


def schedule(schedule_id: str) -> Call[Schedule]:
    """`GET /schedules/{id}`."""
    return read(f"/schedules/{segment(schedule_id)}", _SCHEDULE)


def create_schedule(
    name: str, cron: str, queue: str, payload: Any, options: Mapping[str, Any]
) -> Call[Schedule]:
    """`POST /schedules`."""
    body = rendered(options) | given(name=name, cron=cron, queue=queue, payload=payload)
    return write("POST", "/schedules", body, _SCHEDULE)


def replace_schedule(
    schedule_id: str,
    name: str,
    cron: str,
    queue: str,
    payload: Any,
    options: Mapping[str, Any],
) -> Call[Schedule]:
    """`PUT /schedules/{id}`."""
    body = rendered(options) | given(name=name, cron=cron, queue=queue, payload=payload)
    return write("PUT", f"/schedules/{segment(schedule_id)}", body, _SCHEDULE, repeat=_TWICE)


def delete_schedule(schedule_id: str) -> Call[ScheduleChange]:
    """`DELETE /schedules/{id}`."""
    return command("DELETE", f"/schedules/{segment(schedule_id)}", _CHANGE)


def pause_schedule(schedule_id: str) -> Call[ScheduleChange]:
    """`POST /schedules/{id}/pause`."""
    return command("POST", f"/schedules/{segment(schedule_id)}/pause", _CHANGE)


def resume_schedule(schedule_id: str) -> Call[ScheduleChange]:
    """`POST /schedules/{id}/resume`."""
    return command("POST", f"/schedules/{segment(schedule_id)}/resume", _CHANGE)


def run_schedule(schedule_id: str) -> Call[ScheduleRun]:
    """`POST /schedules/{id}/run`."""
    return command("POST", f"/schedules/{segment(schedule_id)}/run", _RUN)


def backfill_schedule(schedule_id: str, start: Instant, until: Instant) -> Call[Backfill]:
    """`POST /schedules/{id}/backfill`."""
    body = {"from": instant_text(start), "to": instant_text(until)}
    path = f"/schedules/{segment(schedule_id)}/backfill"
    return write("POST", path, body, _BACKFILL, repeat=_TWICE)


def preview_schedule(schedule_id: str, *, count: int | None) -> Call[Runs]:
    """`GET /schedules/{id}/preview`."""
    return read(f"/schedules/{segment(schedule_id)}/preview", _RUNS, query={"count": count})


def preview_cron(
    cron: str,
    *,
    timezone: str | None,
    start_at: Instant | None,
    end_at: Instant | None,
    count: int | None,
) -> Call[Runs]:
    """`POST /schedules/preview`."""
    body = given(
        cron=cron,
        timezone=timezone,
        start_at=maybe_instant(start_at),
        end_at=maybe_instant(end_at),
        count=count,
    )
    return write("POST", "/schedules/preview", body, _RUNS, repeat=_TWICE)
