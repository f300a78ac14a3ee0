"""The sender of the view holds back when, and only when, others keep the core busy."""

from corvo.view.pacing import REST_FACTOR, REST_S_MAX, WINDOW_S, Pacing


class Clocks:
    """Time of the wall and of the processor, moved by hand."""

    def __init__(self) -> None:
        self.wall_s = 100.0
        self.busy_s = 5.0

    def spend(self, seconds: float, *, share: float) -> None:
        """Let time pass in which the process works for a share of it."""
        self.wall_s += seconds
        self.busy_s += seconds * share


def made() -> tuple[Clocks, Pacing]:
    clocks = Clocks()
    return clocks, Pacing(lambda: clocks.wall_s, lambda: clocks.busy_s)


def send(clocks: Clocks, pacing: Pacing, seconds: float) -> None:
    began_s = pacing.now()
    clocks.spend(seconds, share=1.0)
    pacing.count(began_s)


def test_idle_core_is_the_senders():
    """A view that catches up alone is never held back, however busy the sender itself is."""
    clocks, pacing = made()
    for _ in range(5):
        send(clocks, pacing, WINDOW_S)
        assert pacing.rest_s() == 0.0


def test_busy_core_gets_most_of_the_time():
    """While others use the core, each slice is followed by many times its length of rest."""
    clocks, pacing = made()
    clocks.spend(WINDOW_S, share=1.0)
    send(clocks, pacing, 0.01)
    assert abs(pacing.rest_s() - 0.01 * REST_FACTOR) < 1e-9
    clocks.spend(WINDOW_S, share=0.2)
    send(clocks, pacing, 0.01)
    assert pacing.rest_s() == 0.0, "the load has gone"


def test_rest_is_bounded():
    """A huge slice does not stop the view for long."""
    clocks, pacing = made()
    clocks.spend(10.0, share=1.0)
    send(clocks, pacing, 1.0)
    assert pacing.rest_s() == REST_S_MAX
