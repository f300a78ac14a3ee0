"""What can be asked of schedules. Part of the closed set in `command`."""

from msgspec import Struct

from corvo.model.schedule import ScheduleSpec


class SetSchedule(Struct, frozen=True, array_like=True, gc=False, tag=40):
    """Create a schedule, or replace what was asked for; how far it has come stays."""

    ns: int
    id: bytes
    spec: ScheduleSpec
    next_ms: int  # its first slot from now on; 0: paused, or there is none
    is_new: bool = True
    paused: bool | None = None  # None: as it is


class DeleteSchedule(Struct, frozen=True, array_like=True, gc=False, tag=41):
    """Forget a schedule; its jobs stay."""

    ns: int
    id: bytes


class PauseSchedule(Struct, frozen=True, array_like=True, gc=False, tag=42):
    """Fire no slot until it is resumed."""

    ns: int
    id: bytes
    reason: str = ""  # given when the server itself does it


class ResumeSchedule(Struct, frozen=True, array_like=True, gc=False, tag=43):
    """Go on with the slots from now on; those of the pause are not made up for."""

    ns: int
    id: bytes
    revision: int  # the one `next_ms` was worked out for
    next_ms: int


class FireSchedule(Struct, frozen=True, array_like=True, gc=False, tag=44):
    """Slots are due: make their jobs and go on to the slot after them."""

    ns: int
    id: bytes
    revision: int
    from_ms: int  # the slot the schedule stood at; elsewhere the command is void
    slots: tuple[int, ...]  # ascending; between `from_ms` and the first one lie missed slots
    next_ms: int  # the slot after all of them; 0: none


class RunSchedule(Struct, frozen=True, array_like=True, gc=False, tag=45):
    """Make a job of the schedule now, by hand."""

    ns: int
    id: bytes


class BackfillSchedule(Struct, frozen=True, array_like=True, gc=False, tag=46):
    """Make the jobs of past slots that have none."""

    ns: int
    id: bytes
    slots: tuple[int, ...]
