"""What a worker counts, as numbers and as the text Prometheus reads."""

from collections.abc import Iterator

# Upper bounds of how long handlers took, in seconds.
BUCKETS_S = (0.001, 0.005, 0.025, 0.1, 0.5, 2.0, 10.0, 60.0, 600.0)
TASKS_MAX = 500  # label values; what comes after counts as "other"


class TaskFigures:
    """Counts of one task."""

    __slots__ = ("buckets", "outcomes", "seconds")

    def __init__(self) -> None:
        self.outcomes: dict[str, int] = {}
        self.buckets = [0] * (len(BUCKETS_S) + 1)
        self.seconds = 0.0

    def note(self, outcome: str, took_s: float) -> None:
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        self.seconds += took_s
        position = 0
        for bound in BUCKETS_S:
            if took_s <= bound:
                break
            position += 1
        self.buckets[position] += 1

    @property
    def count(self) -> int:
        return sum(self.outcomes.values())


class Figures:
    """All counts of a worker. Written by the loop, read by the health port."""

    def __init__(self) -> None:
        self.tasks: dict[str, TaskFigures] = {}
        self.fetched_count = 0
        self.reported_count = 0
        self.lost_count = 0
        self.unknown_count = 0

    def note(self, task: str, outcome: str, took_s: float) -> None:
        """Count an attempt that ended."""
        figures = self.tasks.get(task)
        if figures is None:
            name = task if len(self.tasks) < TASKS_MAX else "other"
            figures = self.tasks.setdefault(name, TaskFigures())
        figures.note(outcome, took_s)


def render(figures: Figures, gauges: dict[str, float]) -> str:
    """Write the figures as Prometheus reads them (text format 0.0.4)."""
    lines = [
        *_counter("corvo_worker_jobs_fetched_total", "Jobs taken.", figures.fetched_count),
        *_counter("corvo_worker_jobs_reported_total", "Reports taken.", figures.reported_count),
        *_counter("corvo_worker_jobs_lost_total", "Jobs lost to others.", figures.lost_count),
        *_counter("corvo_worker_jobs_unknown_total", "Jobs of no task.", figures.unknown_count),
    ]
    for name, value in gauges.items():
        lines += [f"# TYPE corvo_worker_{name} gauge", f"corvo_worker_{name} {value:g}"]
    lines += _outcomes(figures)
    lines += _durations(figures)
    return "\n".join(lines) + "\n"


def _counter(name: str, text: str, value: int) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} counter", f"{name} {value}"]


def _outcomes(figures: Figures) -> Iterator[str]:
    yield "# TYPE corvo_worker_attempts_total counter"
    for name, task in list(figures.tasks.items()):
        for outcome, count in list(task.outcomes.items()):
            labels = f'task="{escape(name)}",outcome="{outcome}"'
            yield f"corvo_worker_attempts_total{{{labels}}} {count}"


def _durations(figures: Figures) -> Iterator[str]:
    name = "corvo_worker_attempt_seconds"
    yield f"# TYPE {name} histogram"
    for key, task in list(figures.tasks.items()):
        label = f'task="{escape(key)}"'
        total = 0
        for bound, count in zip((*BUCKETS_S, None), list(task.buckets), strict=True):
            total += count
            text = "+Inf" if bound is None else f"{bound:g}"
            yield f'{name}_bucket{{{label},le="{text}"}} {total}'
        yield f"{name}_sum{{{label}}} {task.seconds:g}"
        yield f"{name}_count{{{label}}} {total}"


def escape(text: str) -> str:
    """Quote a label value."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
