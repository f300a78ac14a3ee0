"""How the parts of a job are written on its page."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from rich.text import Text

from corvo.cli.top.palette import STATE_SIGNS, STYLES
from corvo.cli.top.wording import age, clock, clock_of, document, lines, plain, span
from corvo_sdk.types import Job, JobEvent, Why

LABEL_WIDTH = 14
DOCUMENT_LINES_MAX = 200
BACKTRACE_LINES_MAX = 40
ERRORS_MAX = 10
INSTANT_MS_MIN = 10**12  # a number of milliseconds from here on is a moment, not a length

# The order of a reader: what it is, what became of it, what it is tied to, how it may run.
PLAIN_FIELDS = (
    "priority", "dead_reason", "hold_reason", "decided_by", "decided_note", "group", "unique_key",
    "unique_mode", "limit_key", "limits", "batch_id", "parent_id", "chain_id", "chain_step",
    "schedule_id", "cloned_from", "depends_on", "blocked_by",
)  # fmt: skip
INSTANTS = (
    "created_at", "scheduled_at", "started_at", "failed_at", "completed_at", "finished_at",
    "lease_expires_at", "expire_at", "hold_until", "cancel_requested_at",
)  # fmt: skip
DOCUMENTS = ("payload", "progress", "checkpoint", "result", "usage", "trace")
EMPTY: Final[tuple[Any, ...]] = (None, [], {}, "", "normal")  # not worth a line


def title_line(job_id: str, job: Job | None, note: str) -> Text:
    """Id, state and queue; a note when what is shown is old."""
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(plain(job_id), STYLES["title"])
    if job is not None:
        sign, tone = STATE_SIGNS.get(job.state, ("?", "plain"))
        text.append(f"  {sign} {plain(job.state)}", STYLES[tone])
        text.append(f"  in {plain(job.queue)}", STYLES["dim"])
    if note:
        text.append(f"  {note}", STYLES["warn"])
    return text


def fields_sheet(job: Job, now_s: float) -> Text:
    """What is known about a job, without what is empty."""
    text = Text()
    _heading(text, "Job")
    _field(text, "queue", plain(job.queue))
    _field(text, "tries", f"{job.attempt} of {max(1, job.max_retries)}")
    if job.worker is not None:
        known = (job.worker.id, job.worker.hostname)
        _field(text, "worker", plain(" on ".join(part for part in known if part)))
    for name in PLAIN_FIELDS:
        value: Any = getattr(job, name)
        if value not in EMPTY:
            shown = plain(value) if isinstance(value, str) else document(value)
            _field(text, name.replace("_", " "), shown)
    for key, tag in job.tags.items():
        _field(text, f"tag {plain(key)}", plain(tag))
    for name in INSTANTS:
        instant: datetime | None = getattr(job, name)
        if instant is not None:
            _field(text, name.removesuffix("_at").replace("_", " "), _moment(instant, now_s))
    for name in DOCUMENTS:
        content: Any = getattr(job, name)
        if content is not None:
            text.append("\n")
            _heading(text, name.capitalize())
            _document(text, content)
    return text


def _moment(instant: datetime, now_s: float) -> str:
    passed = age(instant, now_s)
    return f"{clock(instant)}  {passed if passed.startswith('in ') else passed + ' ago'}"


def _document(text: Text, value: Any) -> None:
    pretty = msgspec.json.format(msgspec.json.encode(value), indent=2).decode("utf-8", "replace")
    for line in lines(pretty, DOCUMENT_LINES_MAX):
        text.append(f"{line}\n", STYLES["plain"])


def why_sheet(why: Why, now_s: float) -> Text:
    """Which conditions hold a job back."""
    text = Text()
    _heading(text, _question(why.state))
    if not why.gates:
        text.append("nothing holds it back\n", STYLES["dim"])
    for gate in why.gates:
        text.append("✓ " if gate.ok else "✗ ", STYLES["good" if gate.ok else "warn"])
        name = plain(gate.gate).replace("_", " ")
        text.append(f"{name:<{LABEL_WIDTH}}", STYLES["dim" if gate.ok else "plain"])
        said = plain(gate.detail or "")
        if gate.value is not None and not said:
            said = document(gate.value) + (f" of {document(gate.limit)}" if gate.limit else "")
        if gate.changes_at:
            said += f"  changes {age(gate.changes_at, now_s)}"
        text.append(f" {said}\n", STYLES["dim" if gate.ok else "warn"])
    return text


def _question(state: str) -> str:
    if state == "active":
        return "It is running"
    settled = {"completed", "dead", "cancelled"}
    return "How it ended" if state in settled else "Why is it not running?"


def errors_sheet(job: Job, now_s: float) -> Text:
    """The last errors, the newest first, the first of them with its backtrace."""
    text = Text()
    if not job.errors:
        return text
    _heading(text, f"Errors  {len(job.errors)}")
    for place, error in enumerate(reversed(job.errors[-ERRORS_MAX:])):
        text.append(f"try {error.attempt}", STYLES["dim"])
        text.append(f"  {age(error.at, now_s)} ago", STYLES["dim"])
        if error.worker:
            text.append(f"  {plain(error.worker)}", STYLES["dim"])
        text.append("\n")
        for line in lines(error.error or "no message", 8):
            text.append(f"{line}\n", STYLES["bad"])
        if place == 0 and error.backtrace:
            for line in lines(error.backtrace, BACKTRACE_LINES_MAX):
                text.append(f"  {line}\n", STYLES["dim"])
    return text


def timeline_sheet(events: Sequence[JobEvent], note: str) -> Text:
    """What happened, oldest first."""
    text = Text()
    _heading(text, "Timeline")
    for event in events:
        text.append(f"{clock(event.at)}  ", STYLES["dim"])
        tone = _tone_of(event.type)
        text.append(f"{plain(event.type):<{LABEL_WIDTH}}", STYLES[tone])
        if event.attempt:
            text.append(f" try {event.attempt}", STYLES["dim"])
        for name, value in (event.data or {}).items():
            label, shown = _detail(plain(name), value)
            text.append(f"  {label} ", STYLES["dim"])
            text.append(shown, STYLES["plain"])
        text.append("\n")
    if note:
        text.append(f"{note}\n", STYLES["warn"])
    elif not events:
        text.append("nothing yet; events appear here as they happen\n", STYLES["dim"])
    return text


def _detail(name: str, value: Any) -> tuple[str, str]:
    """A member of an event; times are in milliseconds there, and read better as times."""
    if isinstance(value, int) and name.endswith("_ms"):
        if value >= INSTANT_MS_MIN:
            return name.removesuffix("_ms"), clock_of(value)
        return name.removesuffix("_ms"), span(value / 1000)
    return name, plain(value) if isinstance(value, str) else document(value)


def _tone_of(kind: str) -> str:
    if kind in {"completed", "approved"}:
        return "good"
    if kind in {"dead", "failed", "rejected", "expired"}:
        return "bad"
    if kind in {"retrying", "held", "lease_lost", "cancelled"}:
        return "warn"
    return "accent" if kind in {"started", "active"} else "plain"


def _heading(text: Text, title: str) -> None:
    text.append(f"{title}\n", STYLES["title"])


def _field(text: Text, label: str, value: str) -> None:
    text.append(f"{label:<{LABEL_WIDTH}} ", STYLES["dim"])
    text.append(f"{value}\n", STYLES["plain"])
