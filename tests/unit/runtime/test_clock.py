"""The clock follows the wall clock and never goes back."""

from hypothesis import given
from hypothesis import strategies as st

from corvo.runtime.clock import SystemClock, TurnClock, VirtualClock

MS = 1_000_000
START_NS = 1_700_000_000_000 * MS


class Readings:
    """The two counters of a machine, moved by hand."""

    def __init__(self) -> None:
        self.wall = START_NS
        self.elapsed = 5_000 * MS

    def pass_ms(self, ms: int) -> None:
        self.wall += ms * MS
        self.elapsed += ms * MS

    def clock(self, steps: list[int] | None = None) -> SystemClock:
        return SystemClock(
            wall_ns=lambda: self.wall,
            elapsed_ns=lambda: self.elapsed,
            on_step=(lambda _ms: None) if steps is None else steps.append,
        )


def test_clock_starts_at_wall_time_and_follows_elapsed_time() -> None:
    """With a wall clock nobody touches, the answer is the wall clock's."""
    readings = Readings()
    clock = readings.clock()
    assert clock.now_ms() == START_NS // MS
    readings.pass_ms(90_000)
    assert clock.now_ms() == START_NS // MS + 90_000


def test_wall_clock_set_back_an_hour_is_reported_once_and_slewed() -> None:
    """A step is reported with its size, time keeps moving, and at 98 % of its speed."""
    readings = Readings()
    steps: list[int] = []
    clock = readings.clock(steps)
    before = clock.now_ms()
    readings.wall -= 3_600_000 * MS
    for _ in range(100):
        readings.pass_ms(1_000)
        clock.now_ms()
    assert steps == [-3_600_000]
    assert clock.now_ms() - before == 98_000
    assert clock.statistics()["steps_count"] == 1
    assert clock.statistics()["ahead_ms"] == -3_598_000


def test_wall_clock_set_forward_is_never_jumped_to() -> None:
    """Leases must not all expire because somebody set the clock: two percent faster, no more."""
    readings = Readings()
    clock = readings.clock()
    before = clock.now_ms()
    readings.wall += 86_400_000 * MS
    readings.pass_ms(1_000)
    assert clock.now_ms() - before == 1_020
    readings.pass_ms(600_000)
    assert clock.now_ms() - before == 601_040, "a long silence allows no larger correction"


def test_small_drift_is_caught_up_without_a_report() -> None:
    """Half a second of drift is gone after half a minute, and is no step."""
    readings = Readings()
    steps: list[int] = []
    clock = readings.clock(steps)
    readings.wall += 500 * MS
    for _ in range(30):
        readings.pass_ms(1_000)
        clock.now_ms()
    assert clock.now_ms() == readings.wall // MS
    assert steps == []


@given(
    st.lists(
        st.tuples(st.integers(0, 3_000_000), st.integers(-10_000_000, 10_000_000)), max_size=60
    )
)
def test_time_never_goes_back(moves: list[tuple[int, int]]) -> None:
    """Whatever is done to the wall clock, each answer is at least the one before."""
    readings = Readings()
    clock = readings.clock()
    latest = clock.now_ms()
    for passed_us, set_by_ms in moves:
        readings.elapsed += passed_us * 1_000
        readings.wall += passed_us * 1_000 + set_by_ms * MS
        now = clock.now_ms()
        assert latest <= now <= latest + passed_us * 2 // 1_000 + 1_000
        latest = now


def test_real_clock_agrees_with_itself() -> None:
    """The system's own counters give a monotone clock and a monotone stopwatch."""
    clock = SystemClock()
    answers = [clock.now_ms() for _ in range(1_000)]
    assert answers == sorted(answers)
    assert clock.monotonic() <= clock.monotonic()


def test_virtual_clock_moves_only_when_told() -> None:
    """Tests own their time."""
    clock = VirtualClock(now_ms=1_000)
    assert (clock.now_ms(), clock.monotonic()) == (1_000, 0.0)
    assert clock.advance(250) == 1_250
    assert clock.advance_to(2_000) == 2_000
    assert clock.monotonic() == 1.0


def test_a_turn_clock_stands_still_within_a_turn_and_follows_between_turns() -> None:
    """One reading a turn of the loop, and never one from an earlier turn."""
    inner = VirtualClock()
    turn = [0.0]
    clock = TurnClock(inner, lambda: turn[0])
    first = clock.now_ms()
    inner.advance(50)
    assert clock.now_ms() == first
    turn[0] = 0.001
    assert clock.now_ms() == first + 50
