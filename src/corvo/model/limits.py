"""Every bound in the system, in one place, each with its reason.

Nothing that comes from outside is unbounded: a limit here is a number a user can read in an error.
"""

# --- names and text -------------------------------------------------------------------------
NAME_BYTES_MAX = 200  # queue, group, limit, tag key: long enough for paths, short enough for keys
UNIQUE_KEY_BYTES_MAX = 512  # becomes part of a key in the store
IDEMPOTENCY_KEY_BYTES_MAX = 255  # what clients put into one header
WORKER_ID_BYTES_MAX = 200
HOSTNAME_BYTES_MAX = 255
REASON_BYTES_MAX = 1_024  # hold reason, reject reason, notes
ERROR_BYTES_MAX = 8_192  # one error message; longer ones are cut, never refused
BACKTRACE_BYTES_MAX = 32_768
TAGS_COUNT_MAX = 64
TAG_VALUE_BYTES_MAX = 1_024
TRACE_BYTES_MAX = 2_048
USAGE_BYTES_MAX = 4_096

# --- documents ------------------------------------------------------------------------------
PAYLOAD_BYTES_MAX = 256 * 1024  # default of --max-payload-size; also result and checkpoint
PROGRESS_BYTES_MAX = 4_096  # rewritten on every heartbeat
BODY_BYTES_MAX = 4 * 1024 * 1024
BATCH_BODY_BYTES_MAX = 16 * 1024 * 1024
HEADER_BYTES_MAX = 64 * 1024
JSON_DEPTH_MAX = 64  # deeper documents crash naive consumers of the payload
INLINE_BYTES_MAX = 256  # larger blobs get their own key, so that a state change stays small

# --- search -----------------------------------------------------------------------------------
SEARCH_LIMIT_MAX = 1_000  # jobs on one page
SEARCH_LIMIT_DEFAULT = 50
SEARCH_TEXT_BYTES_MAX = 4_096  # payload_contains, error_contains, words of the full text
SEARCH_CURSOR_BYTES_MAX = 1_024
SEARCH_TOTAL_MAX = 10_000  # matches that are counted; beyond that the total is a lower bound
SEARCH_BUDGET_MS = 1_000  # then what was found so far is the answer, and says so
SEARCH_COUNT_BUDGET_MS = 300
SEARCH_PAGE_BYTES_MAX = 16 * 1024 * 1024  # a page of large payloads ends early
FULLTEXT_LIMIT_MAX = 500
GRAPH_JOBS_MAX = 1_000
JQ_BYTES_MAX = 4_096
JQ_NODES_MAX = 200
JQ_DEPTH_MAX = 32
JQ_SQL_CHARACTERS_MAX = 200_000  # of the query an expression becomes
PATTERN_STATES_MAX = 500
PATTERN_REPEAT_MAX = 200
PATTERN_CACHE_MAX = 2_000  # states of a pattern that are remembered

# --- counts ---------------------------------------------------------------------------------
ENQUEUE_BATCH_MAX = 5_000  # one atomic command; more would stall the loop
FETCH_COUNT_MAX = 512
ACK_BATCH_MAX = 512
HEARTBEAT_JOBS_MAX = 1_000
BULK_GET_MAX = 1_000
BULK_IDS_MAX = 100_000  # ids in one request; a filter may match more
BULK_SYNC_MAX = 10_000  # a larger operation is answered 202 and goes on by itself
BULK_TARGETS_MAX = 5_000_000  # jobs one operation may name; they are all written down first
BULK_FILTER_BYTES_MAX = 16 * 1024  # kept in the operation's record
BULK_OPERATIONS_MAX = 64  # not yet finished, in all
BULK_WATCHERS_MAX = 1_000  # open progress streams and waiting calls
BULK_SAMPLE_COUNT = 10  # jobs a dry run shows
BULK_LIST_DEFAULT = 50  # operations on one page
BULK_LIST_MAX = 200
FETCH_QUEUES_MAX = 64
DEPENDS_ON_MAX = 64
CHAIN_STEPS_MAX = 64
JOB_LIMITS_MAX = 3  # named limits of a job; with its limit_key at most four gates
WEIGHTS_COUNT_MAX = 1_000
ERRORS_KEPT_LAST = 50  # plus the first one
SCHEDULES_MAX = 10_000  # all of them are listed by name
SCHEDULE_SLOTS_MAX = 64  # slots one firing decides; calendars are slow and the loop must go on
SCHEDULE_CATCH_UP_MAX = 1_000  # late slots in a row that catch_up `all` makes up for
SCHEDULE_BACKFILL_MAX = 1_000  # slots of one backfill
SCHEDULE_PREVIEW_MAX = 100
SCHEDULE_LIST_MAX = 1_000
CRON_BYTES_MAX = 256
QUEUES_MAX = 100_000  # every queue record lives in memory

IMPORT_LINES_MAX = 5_000  # records of one import call
IMPORT_RECORDS_MAX = 200  # records of one command; more would stall the loop
EXPORT_PAGE = 256  # records read at a time while exporting

# --- numbers --------------------------------------------------------------------------------
TIERS = 3
ATTEMPTS_MAX = 1_000
COST_MAX = 1_000_000
WEIGHT_MAX = 10_000
CONCURRENCY_MAX = 1_000_000
RATE_MAX = 1_000_000_000
SAFE_INTEGER_MAX = 2**53 - 1  # what a JavaScript client can hold
POSITION_ORDINAL_BITS = 20  # positions drawn in one entry; position = index << 20 | ordinal

# --- times, in milliseconds -----------------------------------------------------------------
DURATION_MS_MAX = 10 * 365 * 86_400_000
TIME_MS_MAX = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z, the last instant RFC 3339 can write
LEASE_MS_DEFAULT = 60_000
LEASE_MS_MIN = 1_000
LEASE_MS_MAX = 86_400_000
FETCH_TIMEOUT_MS_DEFAULT = 30_000
FETCH_TIMEOUT_MS_MAX = 60_000
RETRY_BASE_MS_DEFAULT = 5_000
RETRY_MAX_MS_DEFAULT = 600_000
ATTEMPTS_DEFAULT = 3
UNIQUE_PERIOD_MS_DEFAULT = 3_600_000
IDEMPOTENCY_MS = 86_400_000
RETENTION_MS_DEFAULT = 7 * 86_400_000
EVENTS_MS_DEFAULT = 7 * 86_400_000
EVENTS_COUNT_DEFAULT = 1_000_000
UNDO_MS_DEFAULT = 86_400_000  # how long a bulk operation can be undone
AGING_STEP_MS_DEFAULT = 60_000
SCHEDULE_GRACE_MS = 60_000  # a slot fired later than this was missed, and catch_up decides
SCHEDULE_JITTER_MS_MAX = 86_400_000

# --- work per command, so that no single command stalls the loop ------------------------------
SWEEP_LIMIT = 500  # jobs moved by one promote, reclaim, expire, purge or operation step
BULK_CHUNK_TARGETS = 1_000  # ids written down under one key of a bulk operation
BULK_STEP_JOBS = 250  # jobs changed by one step of a bulk operation
BULK_STEP_BYTES_MAX = 4 * 1024 * 1024  # documents one step may move aside for an undo
LANE_MOVES_MAX = 32  # gated lanes a fetch may set aside before it answers `more`
CASCADE_INLINE_MAX = 128  # dependants resolved inside the settling command; the rest in steps
WINDOW_ITEMS = 256  # keys read ahead from an ordered index
WINDOW_ITEMS_MAX = 4_096  # keys a window keeps before it forgets the far end

# --- the pipeline -----------------------------------------------------------------------------
ENTRY_COMMANDS_MAX = 256
ENTRY_BYTES_MAX = 256 * 1024
PENDING_MAX_DEFAULT = 16_384
FETCH_INFLIGHT_MAX_DEFAULT = 64
PARKED_MAX_DEFAULT = 20_000

# --- webhooks -----------------------------------------------------------------------------------
WEBHOOKS_MAX = 100  # each reads the feed for itself
WEBHOOK_URL_BYTES_MAX = 2_048
WEBHOOK_SECRET_BYTES_MAX = 1_024
WEBHOOK_PATTERNS_MAX = 64  # event patterns, and queue names, of one webhook
WEBHOOK_RETRIES_DEFAULT = 5
WEBHOOK_RETRIES_MAX = 20
WEBHOOK_TIMEOUT_MS_DEFAULT = 10_000
WEBHOOK_TIMEOUT_MS_MAX = 30_000
WEBHOOK_WINDOW_MAX = 256  # deliveries of one webhook under way, waiting or done ahead of the cursor
WEBHOOK_LETTERS_MAX = 1_000  # dead letters of one webhook; the oldest goes first
WEBHOOK_TRIES_KEPT = 100  # in the delivery log of one webhook; the oldest goes first
WEBHOOK_EXCERPT_BYTES_MAX = 200  # of an endpoint's answer, in the delivery log
WEBHOOK_ERROR_BYTES_MAX = 500
WEBHOOK_SKEW_MS_MAX = 300_000  # how old a signed incoming request may be
EVENTS_HELD_FACTOR = 4  # a lagging consumer keeps events for so many times their retention
# --- live reading -----------------------------------------------------------------------------
STREAMS_MAX = 10_000  # event streams open at once; further ones get 429
FILTER_VALUES_MAX = 64  # queues, jobs or types one stream may name
WAITERS_MAX = 20_000  # calls of /jobs/{id}/wait under way at once; further ones get 429
WAIT_TIMEOUT_MS_DEFAULT = 30_000
WAIT_TIMEOUT_MS_MAX = 60_000
STREAM_RING_EVENTS_MAX = 65_536  # how far a stream may fall behind before it is dropped
EVENTS_PAGE_MAX = 1_000
EVENTS_PAGE_DEFAULT = 100
METRIC_QUEUES_MAX = 1_000  # queues with metrics of their own; the others share the label "*"
