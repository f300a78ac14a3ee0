"""One line per operation of the API: what it takes, gives and refuses.

To add a route: add its line here, run `make openapi`, and put the path on docs/reference/http.md.
`tests/unit/api/test_openapi.py` names what is missing. Refusals that every operation may answer
(malformed, too large, overloaded, draining, ...) are added by `document` and not listed here.
"""

from typing import Any, Final, cast

from msgspec import Struct

from corvo.api import wire
from corvo.api.filters import SearchRequest
from corvo.api.openapi import shapes

JSON: Final = "application/json"
JSONL: Final = "application/x-ndjson"
EVENTS: Final = "text/event-stream; charset=utf-8"
TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"

_V1: Final = "/api/v1"
_JOB: Final = f"{_V1}/jobs/{{id}}"
_QUEUE: Final = f"{_V1}/queues/{{name}}"
_LIMIT: Final = f"{_V1}/limits/{{name}}"
_BULK: Final = f"{_V1}/bulk/{{id}}"
_SCHEDULE: Final = f"{_V1}/schedules/{{id}}"
_WEBHOOK: Final = f"{_V1}/webhooks/{{id}}"


class Op(Struct, frozen=True):
    """One operation. `gives` maps a status to the shape of its body; None is no body."""

    method: str
    path: str
    summary: str
    tag: str
    gives: dict[int, Any]
    takes: Any = None
    refuses: tuple[str, ...] = ()
    query: tuple[str, ...] = ()  # names in QUERY
    media: str = JSON  # of the answer
    takes_media: str = JSON


class Parameter(Struct, frozen=True):
    """One parameter of a query string."""

    description: str
    schema: dict[str, Any]


QUERY: Final[dict[str, Parameter]] = {
    "strict": Parameter("Refuse unknown fields instead of ignoring them.", {"type": "boolean"}),
    "confirm": Parameter("Yes, destroy it.", {"type": "boolean"}),
    "after": Parameter(
        "Wait until the search index has reached this log index; in the list of schedules, go on "
        "after this name.",
        {"type": ["integer", "string"]},
    ),
    "after_seq": Parameter("Go on after this event.", {"type": "integer", "minimum": 0}),
    "count": Parameter("How many.", {"type": "integer", "minimum": 1}),
    "cursor": Parameter("The cursor of the page before.", {"type": "string"}),
    "job_id": Parameter("Ids of jobs, with commas.", {"type": "string"}),
    "last_event_id": Parameter("Go on after this event.", {"type": "integer", "minimum": 0}),
    "limit": Parameter("At most this many.", {"type": "integer", "minimum": 1}),
    "max_retries": Parameter("As in enqueue.", {"type": "integer", "minimum": 0}),
    "order": Parameter("Up or down.", {"enum": ["asc", "desc"]}),
    "priority": Parameter("As in enqueue.", {"type": "string"}),
    "q": Parameter("Words to look for; required.", {"type": "string", "minLength": 1}),
    "queue": Parameter("A queue; events take several with commas.", {"type": "string"}),
    "scheduled_at": Parameter("As in enqueue.", {"type": "string"}),
    "sort": Parameter("What to sort by, as in a search.", {"type": "string"}),
    "state": Parameter("Only those in this state.", {"type": "string"}),
    "tags": Parameter("Tags, as key:value,key:value.", {"type": "string"}),
    "timeout": Parameter(
        "How long to wait: seconds, or a duration.", {"type": ["integer", "string"]}
    ),
    "type": Parameter("Types of events, with commas.", {"type": "string"}),
    "unique_key": Parameter("As in enqueue.", {"type": "string"}),
}


def op(  # noqa: PLR0913 - a line of the table, read as one
    method: str,
    path: str,
    summary: str,
    tag: str,
    gives: Any,
    takes: Any = None,
    *,
    refuses: str = "",
    query: str = "",
    media: str = JSON,
    takes_media: str = JSON,
) -> Op:
    """Describe one operation; `gives` alone means status 200, `refuses` lists codes of errors."""
    answers: dict[int, Any] = {200: gives}
    if isinstance(gives, dict):
        answers = cast("dict[int, Any]", gives)
    codes, names = tuple(refuses.split()), tuple(query.split())
    return Op(method, path, summary, tag, answers, takes, codes, names, media, takes_media)


_CHANGE: Final = "NOT_FOUND INVALID_STATE"
_VIEW: Final = "VIEW_DOWN VIEW_BEHIND QUERY_TIMEOUT"
_SCHEDULES: Final = "NAME_TAKEN TOO_MANY_SCHEDULES TOO_MANY_QUEUES NOT_SUPPORTED PAYLOAD_TOO_LARGE"
_LEASE: Final = "NOT_FOUND NOT_ACTIVE LEASE_LOST"
_ENQUEUE: Final = (
    "DEPENDENCY_NOT_FOUND IDEMPOTENCY_MISMATCH TOO_MANY_QUEUES NOT_SUPPORTED PAYLOAD_TOO_LARGE"
)
_ENQUEUED: Final[Any] = {201: shapes.EnqueueAnswer, 200: shapes.EnqueueAnswer}

# fmt: off
CATALOG: Final[tuple[Op, ...]] = (
    op("POST", f"{_V1}/enqueue", "Enqueue a job", "Producing", _ENQUEUED, wire.EnqueueRequest, refuses=_ENQUEUE),
    op("POST", f"{_V1}/enqueue/batch", "Enqueue many jobs, all or none", "Producing", {201: shapes.EnqueueBatchAnswer}, wire.EnqueueBatchRequest, refuses=_ENQUEUE),
    op("GET", f"{_V1}/batches/{{id}}", "Read a batch", "Producing", shapes.Batch, refuses="NOT_FOUND"),

    op("POST", f"{_V1}/fetch", "Fetch a job, or wait for one", "Working", {200: shapes.FetchAnswer, 204: None}, wire.FetchRequest),
    op("POST", f"{_V1}/fetch/batch", "Fetch several jobs", "Working", shapes.FetchBatchAnswer, wire.FetchRequest),
    op("POST", f"{_V1}/ack/batch", "Report several jobs as done", "Working", shapes.AckBatchAnswer, wire.AckBatchRequest, refuses="NOT_SUPPORTED"),
    op("POST", f"{_V1}/ack/{{id}}", "Report a job as done", "Working", shapes.EndedAnswer, wire.AckRequest, refuses=f"{_LEASE} NOT_SUPPORTED"),
    op("POST", f"{_V1}/fail/{{id}}", "Report an attempt as failed", "Working", shapes.FailedAnswer, wire.FailRequest, refuses=_LEASE),
    op("POST", f"{_V1}/release/{{id}}", "Give a job back without burning an attempt", "Working", shapes.EndedAnswer, wire.ReleaseRequest, refuses=_LEASE),
    op("POST", f"{_V1}/snooze/{{id}}", "Give a job back and ask for it later", "Working", shapes.SnoozedAnswer, wire.SnoozeRequest, refuses=_LEASE),
    op("POST", f"{_V1}/heartbeat", "Extend leases and report progress", "Working", shapes.HeartbeatAnswer, wire.HeartbeatRequest),

    op("POST", f"{_V1}/jobs/bulk-get", "Read many jobs", "Jobs", shapes.JobsAnswer, wire.BulkGetRequest),
    op("GET", _JOB, "Read a job", "Jobs", shapes.Job, refuses="NOT_FOUND"),
    op("DELETE", _JOB, "Remove a job and all it left behind", "Jobs", shapes.JobChange, refuses=_CHANGE),
    op("GET", f"{_JOB}/why", "Explain why a job is not running", "Jobs", shapes.Why, refuses="NOT_FOUND"),
    op("POST", f"{_JOB}/retry", "Run a job again, attempts reset", "Jobs", shapes.JobChange, wire.Nothing, refuses=f"{_CHANGE} UNIQUE_CONFLICT"),
    op("POST", f"{_JOB}/requeue", "Run a dead job again, history kept", "Jobs", shapes.JobChange, wire.Nothing, refuses=f"{_CHANGE} UNIQUE_CONFLICT"),
    op("POST", f"{_JOB}/cancel", "Cancel a job", "Jobs", shapes.JobChange, wire.Nothing, refuses=_CHANGE),
    op("POST", f"{_JOB}/move", "Put a job into another queue", "Jobs", shapes.JobChange, wire.MoveRequest, refuses=f"{_CHANGE} UNIQUE_CONFLICT TOO_MANY_QUEUES"),
    op("PUT", f"{_JOB}/priority", "Change the priority of a job", "Jobs", shapes.JobChange, wire.PriorityRequest, refuses=_CHANGE),
    op("POST", f"{_JOB}/priority", "Change the priority of a job", "Jobs", shapes.JobChange, wire.PriorityRequest, refuses=_CHANGE),
    op("POST", f"{_JOB}/hold", "Set a job aside until somebody decides", "Jobs", shapes.JobChange, wire.HoldRequest, refuses=f"{_CHANGE} {_LEASE}"),
    op("POST", f"{_JOB}/approve", "Let a held job run", "Jobs", shapes.JobChange, wire.ApproveRequest, refuses=_CHANGE),
    op("POST", f"{_JOB}/reject", "Refuse a held job", "Jobs", shapes.JobChange, wire.RejectRequest, refuses=_CHANGE),
    op("POST", f"{_JOB}/clone", "Enqueue a copy of a job", "Jobs", _ENQUEUED, wire.CloneRequest, refuses=f"NOT_FOUND {_ENQUEUE}"),

    op("GET", f"{_V1}/queues", "List all queues", "Queues", list[shapes.Queue]),
    op("GET", _QUEUE, "Read a queue", "Queues", shapes.Queue, refuses="NOT_FOUND"),
    op("PATCH", _QUEUE, "Change settings of a queue", "Queues", shapes.SettingsAnswer, wire.SettingsRequest, refuses="NOT_FOUND TOO_MANY_QUEUES"),
    op("DELETE", _QUEUE, "Remove a queue and every job in it", "Queues", shapes.RemovalAnswer, refuses="NOT_FOUND CONFIRMATION_REQUIRED", query="confirm"),
    op("POST", f"{_QUEUE}/pause", "Stop handing out jobs", "Queues", shapes.QueueChange, wire.Nothing, refuses="NOT_FOUND TOO_MANY_QUEUES"),
    op("POST", f"{_QUEUE}/resume", "Hand out jobs again", "Queues", shapes.QueueChange, wire.Nothing, refuses="NOT_FOUND TOO_MANY_QUEUES"),
    op("POST", f"{_QUEUE}/drain", "Pause, and say what is still active", "Queues", shapes.DrainAnswer, wire.Nothing, refuses="NOT_FOUND"),
    op("POST", f"{_QUEUE}/clear", "Remove the waiting jobs of a queue", "Queues", shapes.RemovalAnswer, wire.Nothing, refuses="NOT_FOUND"),
    op("POST", f"{_QUEUE}/concurrency", "Limit how many jobs run at once", "Queues", shapes.SettingsAnswer, wire.ConcurrencyRequest, refuses="NOT_FOUND TOO_MANY_QUEUES"),
    op("POST", f"{_QUEUE}/throttle", "Limit how many jobs start in a time", "Queues", shapes.SettingsAnswer, wire.RateFields, refuses="NOT_FOUND TOO_MANY_QUEUES"),
    op("DELETE", f"{_QUEUE}/throttle", "Remove the rate limit of a queue", "Queues", shapes.SettingsAnswer, refuses="NOT_FOUND TOO_MANY_QUEUES"),

    op("GET", f"{_V1}/limits", "List named limits", "Limits", list[shapes.Limit]),
    op("GET", _LIMIT, "Read a named limit", "Limits", shapes.Limit, refuses="NOT_FOUND"),
    op("PUT", _LIMIT, "Create or replace a named limit", "Limits", shapes.LimitChange, wire.LimitRequest, refuses="NOT_FOUND"),
    op("DELETE", _LIMIT, "Remove a named limit", "Limits", shapes.LimitChange, refuses="NOT_FOUND"),

    op("POST", f"{_V1}/jobs/search", "Find jobs", "Search", shapes.JobsPage, SearchRequest, refuses=_VIEW, query="after"),
    op("GET", f"{_JOB}/graph", "Show what a job is tied to", "Search", shapes.Graph, refuses=f"NOT_FOUND {_VIEW}", query="after"),
    op("GET", f"{_V1}/dead", "List dead jobs", "Search", shapes.JobsPage, refuses=_VIEW, query="queue sort order cursor limit after"),
    op("GET", f"{_V1}/dead/groups", "Dead jobs by kind of error", "Search", shapes.DeadGroups, refuses=_VIEW, query="queue limit after"),
    op("GET", f"{_V1}/search/fulltext", "Find jobs by words", "Search", shapes.FulltextAnswer, refuses=_VIEW, query="q queue state limit after"),
    op("GET", f"{_V1}/batches", "List batches", "Search", shapes.BatchesPage, refuses=_VIEW, query="state order cursor limit after"),
    op("GET", f"{_V1}/stats/storage", "Say what takes how much space", "Search", shapes.Storage, refuses=_VIEW, query="after"),

    op("POST", f"{_V1}/jobs/bulk", "Do something to many jobs", "Bulk", {200: shapes.BulkAnswer, 202: shapes.BulkAccepted}, wire.BulkRequest, refuses=f"TOO_MANY_QUEUES {_VIEW}"),
    op("GET", f"{_V1}/bulk", "List bulk operations, the newest first", "Bulk", shapes.BulkPage, query="cursor limit"),
    op("GET", _BULK, "Read a bulk operation", "Bulk", shapes.Bulk, refuses="NOT_FOUND"),
    op("GET", f"{_BULK}/progress", "Follow a bulk operation", "Bulk", str, refuses="NOT_FOUND", media=EVENTS),
    op("POST", f"{_BULK}/abort", "Stop a bulk operation where it stands", "Bulk", shapes.Bulk, wire.Nothing, refuses=_CHANGE),
    op("POST", f"{_BULK}/undo", "Bring back what nobody has touched since", "Bulk", {200: shapes.Bulk, 202: shapes.Bulk}, wire.Nothing, refuses=_CHANGE),

    op("GET", f"{_V1}/schedules", "List schedules", "Schedules", list[shapes.Schedule], query="limit after"),
    op("POST", f"{_V1}/schedules", "Create a schedule", "Schedules", {201: shapes.Schedule}, wire.ScheduleRequest, refuses=f"NOT_FOUND {_SCHEDULES}"),
    op("POST", f"{_V1}/schedules/preview", "Slots of an expression that is not saved", "Schedules", shapes.Runs, wire.PreviewRequest),
    op("GET", _SCHEDULE, "Read a schedule", "Schedules", shapes.Schedule, refuses="NOT_FOUND"),
    op("PUT", _SCHEDULE, "Replace a schedule", "Schedules", shapes.Schedule, wire.ScheduleRequest, refuses=f"NOT_FOUND {_SCHEDULES}"),
    op("DELETE", _SCHEDULE, "Remove a schedule; its jobs stay", "Schedules", shapes.ScheduleChange, refuses="NOT_FOUND"),
    op("POST", f"{_SCHEDULE}/pause", "Make no more jobs", "Schedules", shapes.ScheduleChange, wire.Nothing, refuses=_CHANGE),
    op("POST", f"{_SCHEDULE}/resume", "Make jobs again", "Schedules", shapes.ScheduleChange, wire.Nothing, refuses=_CHANGE),
    op("POST", f"{_SCHEDULE}/run", "Make a job now", "Schedules", {201: shapes.ScheduleRun}, wire.Nothing, refuses=f"{_CHANGE} UNIQUE_CONFLICT TOO_MANY_QUEUES"),
    op("POST", f"{_SCHEDULE}/backfill", "Make jobs for past slots", "Schedules", shapes.BackfillAnswer, wire.BackfillRequest, refuses=f"{_CHANGE} TOO_MANY_QUEUES"),
    op("GET", f"{_SCHEDULE}/preview", "The slots to come", "Schedules", shapes.Runs, refuses="NOT_FOUND", query="count"),

    op("GET", f"{_V1}/webhooks", "List webhooks", "Webhooks", list[shapes.Webhook]),
    op("POST", f"{_V1}/webhooks", "Create a webhook", "Webhooks", {201: shapes.Webhook}, wire.WebhookRequest, refuses="NOT_FOUND TOO_MANY_WEBHOOKS"),
    op("GET", _WEBHOOK, "Read a webhook", "Webhooks", shapes.Webhook, refuses="NOT_FOUND"),
    op("PUT", _WEBHOOK, "Replace a webhook", "Webhooks", shapes.Webhook, wire.WebhookRequest, refuses="NOT_FOUND"),
    op("DELETE", _WEBHOOK, "Remove a webhook and its dead letters", "Webhooks", shapes.WebhookRemoval, refuses="NOT_FOUND"),
    op("POST", f"{_WEBHOOK}/test", "Send a test event now", "Webhooks", shapes.Delivery, wire.Nothing, refuses="NOT_FOUND"),
    op("GET", f"{_WEBHOOK}/deliveries", "List the latest deliveries", "Webhooks", shapes.Deliveries, refuses="NOT_FOUND"),
    op("POST", f"{_WEBHOOK}/deliveries/{{delivery}}/redeliver", "Try a delivery once more", "Webhooks", shapes.Delivery, wire.Nothing, refuses="NOT_FOUND"),
    op("GET", f"{_WEBHOOK}/dead-letters", "List what was given up", "Webhooks", shapes.DeadLetters, refuses="NOT_FOUND"),
    op("POST", f"{_V1}/webhooks/{{name}}", "Make a job of whatever is sent", "Webhooks", _ENQUEUED, Any, refuses=f"NOT_FOUND SIGNATURE_INVALID {_ENQUEUE}", query="priority unique_key max_retries scheduled_at tags"),

    op("GET", f"{_V1}/events", "Events as they happen, without end", "Events", str, media=EVENTS, query="queue job_id type last_event_id"),
    op("GET", f"{_V1}/cluster/events", "A page of events", "Events", shapes.EventsPage, query="queue job_id type after_seq limit"),
    op("GET", f"{_JOB}/events", "What happened to a job", "Events", shapes.Timeline, refuses=f"NOT_FOUND {_VIEW}", query="after_seq limit after"),
    op("GET", f"{_JOB}/wait", "Wait until a job is settled", "Events", {200: shapes.Job, 204: None}, refuses="NOT_FOUND", query="timeout"),
    op("GET", f"{_V1}/metrics/throughput", "The last sixty minutes", "Events", shapes.Throughput, query="queue"),
    op("GET", f"{_V1}/metrics", "Figures for Prometheus", "Server", str, media=TEXT),

    op("GET", "/healthz", "Say whether the server takes work", "Server", {200: shapes.Health, 503: shapes.Health}),
    op("GET", f"{_V1}/healthz", "Say whether the server takes work", "Server", {200: shapes.Health, 503: shapes.Health}),
    op("GET", "/livez", "Say that the process answers", "Server", shapes.Alive),
    op("GET", f"{_V1}/livez", "Say that the process answers", "Server", shapes.Alive),
    op("GET", f"{_V1}/info", "Version and features", "Server", shapes.Info),
    op("GET", f"{_V1}/workers", "List workers seen lately", "Server", list[shapes.Worker]),
    op("GET", f"{_V1}/cluster/status", "Where the log stands, and figures", "Server", shapes.ClusterStatus),

    op("POST", f"{_V1}/admin/backup", "Everything as a tar archive, taken while the server runs", "Operating", Any, wire.Nothing, media="application/x-tar"),
    op("GET", f"{_V1}/admin/export", "The namespace as lines of JSON", "Operating", str, media=JSONL),
    op("POST", f"{_V1}/admin/import", "Bring back lines of an export", "Operating", shapes.ImportAnswer, str, takes_media=JSONL, refuses="NOT_SUPPORTED"),

    op("GET", f"{_V1}/admin/view", "What the search index has reached", "Operating", shapes.ViewPosition, refuses=_VIEW, query="after"),
    op("POST", f"{_V1}/admin/rebuild-sqlite", "Build the search index anew", "Operating", {202: shapes.Rebuild}, refuses=_VIEW),
    op("GET", f"{_V1}/admin/rebuild-sqlite", "How far the rebuild is", "Operating", shapes.RebuildProgress),

    op("GET", "/openapi.json", "This document", "Description", shapes.OpenApi),
    op("GET", f"{_V1}/openapi.json", "This document", "Description", shapes.OpenApi),
    op("GET", "/docs", "This document as a page", "Description", str, media="text/html; charset=utf-8"),
    op("GET", "/docs/page.js", "Script of the page", "Description", str, media="text/javascript; charset=utf-8"),
    op("GET", "/docs/page.css", "Style of the page", "Description", str, media="text/css; charset=utf-8"),
)
# fmt: on
