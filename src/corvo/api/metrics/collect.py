"""`GET /metrics`: everything an operator may want to draw, from those who know it."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from prometheus_client import ProcessCollector

from corvo import __version__
from corvo.api.http.exchange import Route, new_times
from corvo.api.live.figures import COLUMNS
from corvo.api.live.hub import Hub
from corvo.api.metrics.page import Page
from corvo.api.metrics.tally import Tallies
from corvo.model import event as ev
from corvo.model import limits
from corvo.model.event import EVENT_NAMES
from corvo.model.ids import DEFAULT_NAMESPACE
from corvo.model.job import STATE_NAMES
from corvo.model.view import QueueView

if TYPE_CHECKING:
    from corvo.engine import Engine

Source = Callable[[Page], None]

_SLICE_QUEUES: Final = 50  # queues read before others get a turn
_SWEEPS: Final = {
    "promote": ev.PROMOTED,
    "reclaim": ev.RECLAIMED,
    "expire": ev.EXPIRED,
    "purge": ev.PURGED,
}


class Metrics:
    """The page of metrics. Others add what they know with `add`."""

    def __init__(
        self, engine: "Engine", hub: Hub, hot: Mapping[str, Route], tallies: Tallies
    ) -> None:
        self._engine = engine
        self._hub = hub
        self._hot = hot
        self._tallies = tallies
        self._process = ProcessCollector(namespace="corvo", registry=None)
        self._sources: list[Source] = [
            self._add_pipeline,
            self._add_log,
            self._add_feed,
            self._add_workers,
            self._add_requests,
        ]

    def add(self, source: Source) -> None:
        """Show what somebody else counts; the source is called for every page, on the loop."""
        self._sources.append(source)

    async def render(self) -> bytes:
        """Make the page. Reads on the loop in slices; the text is made in a thread."""
        page = Page()
        page.gauges("info", "the server", ["version"], [([__version__], 1)])
        page.gauge("cluster_is_leader", "whether this node takes writes", 1)
        await self._add_queues(page)
        for source in self._sources:
            source(page)
        for family in self._process.collect():
            page.take(family)
        return await asyncio.to_thread(page.render)

    # --- sources --------------------------------------------------------------------------------

    async def _add_queues(self, page: Page) -> None:
        read = self._engine.read
        names = read.queue_names(DEFAULT_NAMESPACE)
        found: list[QueueView] = []
        for place, name in enumerate(names[: limits.METRIC_QUEUES_MAX]):
            view = read.queue(DEFAULT_NAMESPACE, name)
            if view is not None:
                found.append(view)
            if place % _SLICE_QUEUES == _SLICE_QUEUES - 1:
                await asyncio.sleep(0)
        now_ms = self._engine.clock.now_ms()
        page.gauge("queues_total", "queues there are", len(names))
        totals = read.state_counts(DEFAULT_NAMESPACE)
        states = zip(STATE_NAMES, totals, strict=True)
        page.gauges("jobs", "jobs by state", ["state"], [([name], n) for name, n in states])
        page.gauges(
            "queue_jobs",
            "jobs of a queue by state",
            ["queue", "state"],
            [
                ([view.record.name, state], count)
                for view in found
                for state, count in zip(STATE_NAMES, view.record.counts, strict=True)
            ],
        )
        page.gauges(
            "queue_blocked_jobs",
            "pending jobs held back by dependencies or limits",
            ["queue"],
            [([view.record.name], view.blocked) for view in found],
        )
        page.gauges(
            "queue_oldest_pending_age_seconds",
            "age of the job at the head; 0 when none is ready",
            ["queue"],
            [([view.record.name], _age_s(view, now_ms)) for view in found],
        )
        page.gauges(
            "queue_paused",
            "1 while a queue hands out nothing",
            ["queue"],
            [([view.record.name], int(view.record.paused)) for view in found],
        )

    def _add_feed(self, page: Page) -> None:
        figures = self._hub.figures
        by_type = figures.by_type
        # The page is the operator's: sums are of the whole server, queues those of the default
        # namespace, as above.
        queues = {name: found for (ns, name), found in figures.queues.items() if not ns}
        for column, name in enumerate(COLUMNS):
            total = sum(queue.totals[column] for queue in figures.queues.values())
            page.counter(f"throughput_{name}", f"jobs {name} since the start", total)
            page.counters(
                f"queue_{name}",
                f"jobs of a queue {name} since the start",
                ["queue"],
                [([queue], found.totals[column]) for queue, found in queues.items()],
            )
        waits = [(name, queue.waits) for name, queue in queues.items()]
        page.durations("queue_wait_seconds", "from ready to handed out", "queue", waits)
        runs = [(name, queue.runs) for name, queue in queues.items()]
        page.durations("queue_run_seconds", "from handed out to reported on", "queue", runs)
        events = [([name], by_type[kind]) for kind, name in enumerate(EVENT_NAMES) if by_type[kind]]
        page.counters("events", "events by type", ["type"], events)
        for name, kind in _SWEEPS.items():
            page.counter(f"scheduler_{name}", f"jobs moved by {name} sweeps", by_type[kind])
        live = self._hub.statistics()
        page.gauge("event_streams_open", "event streams now", live["streams_count"])
        page.counter("event_streams", "event streams opened", live["streams_total"])
        page.counter("event_streams_dropped", "streams that were too slow", live["dropped_total"])
        page.gauge("job_waits_open", "calls that wait for a job", live["waits_count"])
        page.gauge("live_lag_events", "events the live reader has not seen", live["lag_events"])

    def _add_pipeline(self, page: Page) -> None:
        status = self._engine.status()
        pipeline, admission, fetches = status["pipeline"], status["admission"], status["fetches"]
        page.gauge("raft_apply_pending", "commands under way", pipeline["pending_count"])
        page.gauge("raft_apply_pending_bytes", "their bytes", pipeline["pending_bytes"])
        page.gauge("raft_apply_max_pending", "commands admitted", admission["pending_max"])
        page.counter("raft_apply_overload", "calls answered 429", admission["refused_count"])
        page.counter("raft_applied", "commands applied", pipeline["applied_count"])
        page.gauge("raft_applied_index", "last entry applied", status["index"])
        page.gauge("raft_commit_index", "last entry that is durable", status["log"]["synced_index"])
        page.gauge("disk_full", "1 while enqueues are refused", admission["is_disk_full"])
        page.gauge("store_stalled", "1 while the store is behind", admission["is_stalled"])
        page.gauge("fetches_parked", "fetches waiting for work", fetches["parked_count"])
        page.counter("fetches_proposed", "fetches sent to the log", fetches["proposed_total"])
        page.counter("fetches_empty", "of these, found nothing", fetches["returned_empty_total"])
        times = self._engine.times
        page.histogram("raft_queue_time_seconds", "from arrival to the log", times["queue"])
        page.histogram("raft_apply_time_seconds", "applying an entry", times["apply"])
        for name, value in status["store"].items():
            page.gauge(f"store_{name}", "figure of the store", value)

    def _add_log(self, page: Page) -> None:
        status = self._engine.status()
        log, upkeep, times = status["log"], status["upkeep"], self._engine.times
        pipeline = status["pipeline"]
        page.counter("log_proposals", "commands written to the log", pipeline["applied_count"])
        page.counter("log_commits", "entries committed", pipeline["entries_count"])
        page.counter("log_fsyncs", "syncs that returned", times["sync"].count)
        page.histogram("log_fsync_seconds", "one sync of the log", times["sync"])
        page.gauge("log_size_bytes", "bytes the log takes", log["size_bytes"])
        page.gauge("log_first_index", "first entry kept", log["first_index"])
        page.gauge("log_last_index", "last entry written", log["last_index"])
        page.counter("log_prunes", "segments released", upkeep["released_segments"])
        page.counter("log_snapshots", "snapshots written", upkeep["snapshots_count"])
        page.counter("validator_mismatches", "copies that differ", log["mismatches_count"])
        page.histogram("store_flush_seconds", "one flush of the store", times["flush"])

    def _add_workers(self, page: Page) -> None:
        found = self._engine.workers.list()
        healthy = sum(worker.status == "healthy" for worker in found)
        page.gauge("workers_registered", "workers seen lately", len(found))
        page.gauge("workers_active", "of these, healthy", healthy)

    def _add_requests(self, page: Page) -> None:
        counts = dict(self._tallies.counts)
        for pattern, route in self._hot.items():
            for status, count in route.answers.items():
                key = (pattern, "POST", status)
                counts[key] = counts.get(key, 0) + count
        labels = ["route", "method", "status"]
        rows = sorted(counts.items())
        requests = [([route, method, str(status)], n) for (route, method, status), n in rows]
        page.counters("http_requests", "requests answered, by route pattern", labels, requests)
        errors: dict[str, int] = {}
        for (route, _, status), count in rows:
            if status >= 500:
                errors[route] = errors.get(route, 0) + count
        failed = [([route], count) for route, count in errors.items()]
        page.counters("http_request_errors", "answers of 500 and above", ["route"], failed)
        times = dict(self._tallies.times)
        for pattern, route in self._hot.items():
            if any(route.times):
                other = times.get(pattern)
                both = zip(route.times, other or new_times(), strict=True)
                times[pattern] = [fast + slow for fast, slow in both]
        text = "from the end of the headers to the answer; a fetch and a wait include their waiting"
        page.answer_times("http_request_duration_seconds", text, times)
        page.gauge("http_slow_requests_in_flight", "slow requests now", self._tallies.open_count)


def _age_s(view: QueueView, now_ms: int) -> float:
    return max(0, now_ms - view.oldest_pending_ms) / 1000 if view.oldest_pending_ms else 0.0
