"""What the time of each answer costs on the hot path: `python -m bench.request_times`.

Two loops that differ by the lines in question (`api/http/slots.py`): the clock at both ends of a
request, and the place in the histogram. Prints nanoseconds a request, the best of nine rounds.
"""

from time import monotonic_ns, perf_counter_ns

from corvo.api.http.exchange import TIMES_SUM, Route

ROUNDS = 9
COUNT = 200_000


class Untimed:
    """An exchange that counts its answer."""

    __slots__ = ("began_ns", "route")

    def __init__(self, route: Route) -> None:
        self.route = route

    def reply(self, status: int) -> None:
        """Count."""
        answers = self.route.answers
        answers[status] = answers.get(status, 0) + 1


class Timed(Untimed):
    """The same, with its time."""

    __slots__ = ()

    def __init__(self, route: Route) -> None:
        self.route = route
        self.began_ns = monotonic_ns()

    def reply(self, status: int) -> None:
        """Count, and note how long it took."""
        route = self.route
        answers = route.answers
        answers[status] = answers.get(status, 0) + 1
        elapsed_ns = monotonic_ns() - self.began_ns
        times = route.times
        times[elapsed_ns.bit_length()] += 1
        times[TIMES_SUM] += elapsed_ns


def measure(kind: type[Untimed]) -> float:
    """Nanoseconds of one request."""
    route = Route(lambda _exchange: None, 0)
    best_ns = 1 << 62
    for _ in range(ROUNDS):
        began_ns = perf_counter_ns()
        for _ in range(COUNT):
            kind(route).reply(200)
        best_ns = min(best_ns, perf_counter_ns() - began_ns)
    return best_ns / COUNT


def main() -> None:
    """Print the figures."""
    without_ns, with_ns = measure(Untimed), measure(Timed)
    print(f"without {without_ns:.0f} ns  with {with_ns:.0f} ns  cost {with_ns - without_ns:.0f} ns")


if __name__ == "__main__":
    main()
