"""Run figures, print them with the machine they were measured on, keep a copy in bench/results."""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

# Cost: none. `bench/run.py` started as a file must find the packages beside it.
sys.path[:0] = [
    str(Path(__file__).resolve().parents[1] / part) for part in (".", "src", "sdks/python/src")
]

from bench import (  # noqa: E402 - see the line above
    engine_figures,
    http_figures,
    peer_figures,
    restart_figures,
    scale_figures,
    search_figures,
    view_figures,
    wait_figures,
    worker_figures,
)
from bench.harness import FULL, QUICK, Figure, RunFailedError, Scale, SkippedError, describe_machine  # noqa: E402
from bench.wrk import WRK  # noqa: E402

FIGURES: dict[str, Callable[[Scale], list[Figure]]] = {
    "enqueue": http_figures.enqueue,
    "mixed": http_figures.mixed,
    "engine": engine_figures.engine,
    "batch": http_figures.batch,
    "latency": wait_figures.latency,
    "parked": wait_figures.parked,
    "gated": scale_figures.gated,
    "backlog": scale_figures.backlog,
    "kept": scale_figures.kept,
    "restart": restart_figures.restart,
    "search": search_figures.search,
    "view": http_figures.view,
    "peers": peer_figures.peers,
    "worker": worker_figures.worker,
    "catchup": view_figures.catchup,
    "rebuild": view_figures.rebuild,
    "stream": view_figures.stream,
}
RESULTS = Path(__file__).resolve().parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the figures named on the command line, or all of them; 0 when every target is met."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help=f"of: {', '.join(FIGURES)}")
    parser.add_argument("--quick", action="store_true", help="tiny runs that only prove they work")
    parser.add_argument("--rounds", type=int, help="interleaved rounds per comparison")
    parser.add_argument("--events", type=int, help="events of catchup")
    parser.add_argument("--jobs", type=int, help="jobs of rebuild")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.figures if name not in FIGURES]
    if unknown:
        parser.error(f"no such figure: {', '.join(unknown)}")
    scale = QUICK if options.quick else FULL
    sizes = {
        "rounds": options.rounds,
        "view_events": options.events,
        "rebuild_jobs": options.jobs,
    }
    scale = replace(scale, **{name: size for name, size in sizes.items() if size})
    printer = Printer(options.quick)
    printer.say(*describe_machine())
    printer.say(f"client    {'wrk' if WRK else 'python (heavier than wrk: compare ratios only)'}")
    is_met = sum(not _run(name, scale, printer) for name in options.figures or FIGURES) == 0
    return 0 if is_met else 1


def _run(name: str, scale: Scale, printer: "Printer") -> bool:
    started = time.perf_counter()
    try:
        figures = FIGURES[name](scale)
    except SkippedError as error:
        printer.say("", f"{name}  skipped: {error}")
        return True
    except RunFailedError as error:
        printer.say("", f"{name}  FAILED: {error}")
        return False
    printer.say("", f"{name}  ({time.perf_counter() - started:.0f} s)")
    printer.say(*(figure.render() for figure in figures))
    return all(figure.is_met for figure in figures)


class Printer:
    """Prints as figures come in; a full run is also kept in a file."""

    def __init__(self, is_quick: bool) -> None:  # noqa: FBT001 - one caller, in this file
        self._path: Path | None = None
        if not is_quick:
            RESULTS.mkdir(exist_ok=True)
            self._path = RESULTS / f"{time.strftime('%Y-%m-%d-%H%M%S')}.txt"

    def say(self, *lines: str) -> None:
        for line in lines:
            print(line, flush=True)
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
