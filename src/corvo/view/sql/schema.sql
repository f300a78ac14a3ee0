-- The projection. Everything here is derived and may be thrown away: see docs/internals/view.md.
--
-- Times are integers, milliseconds since 1970. Identifiers are the text a client sees. `n` is the
-- local number of a job: it joins the tables of this file and means nothing outside of it.
-- NULL means "none"; an empty text is never stored in its place.
--
-- A change of any shape in this file needs a new SCHEMA_VERSION in view/schema.py: a file of another
-- version is not converted, it is built anew.

-- Where the projection stands. One row, written in the same transaction as the rows it vouches for.
CREATE TABLE cursor (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  schema_version INTEGER NOT NULL,
  history BLOB NOT NULL,        -- which history the server told us it has; another one: build anew
  position INTEGER NOT NULL,    -- log index reached: everything up to it is in the tables
  chain BLOB NOT NULL,          -- the server's chain at `position`; empty when it was not told
  block_position INTEGER NOT NULL, -- index of the last block of events applied
  block_digest BLOB NOT NULL,   -- digest of that block, compared when the feed is taken up again
  seq INTEGER NOT NULL,         -- sequence number of the last event applied
  floor_seq INTEGER NOT NULL    -- first event kept in job_events
) STRICT;

-- One row for each job in the store. What never changes is in job_payloads, so that a change of
-- state rewrites a small row only.
CREATE TABLE jobs (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  ns INTEGER NOT NULL,
  queue TEXT NOT NULL,          -- the one it is in now
  state TEXT NOT NULL,
  priority INTEGER NOT NULL,    -- 0 critical, 1 high, 2 normal
  attempt INTEGER NOT NULL,
  max_retries INTEGER NOT NULL, -- attempts in all, requeues included
  run INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  asked_ms INTEGER,             -- when the producer asked it to start
  scheduled_ms INTEGER,         -- when it becomes pending (scheduled, retrying), else asked_ms
  started_ms INTEGER,           -- of the last attempt
  completed_ms INTEGER,         -- when it settled, if it completed
  failed_ms INTEGER,            -- when the last attempt failed
  settled_ms INTEGER,           -- when it settled, however
  expire_ms INTEGER,
  cancel_requested_ms INTEGER,
  worker_id TEXT,               -- of the current or the last attempt
  hostname TEXT,
  hold_reason TEXT,
  dead_reason TEXT,
  decided_by TEXT,
  unique_key TEXT,
  batch_id TEXT,
  parent_id TEXT,
  chain_id TEXT,
  chain_step INTEGER,           -- -1 on_exit, -2 on_failure
  cloned_from TEXT,
  group_name TEXT,
  limit_key TEXT,
  error_count INTEGER NOT NULL, -- error records ever written
  last_error TEXT,
  error_fingerprint TEXT,       -- of last_error: equal for errors that differ in numbers only
  progress TEXT,                -- JSON text
  tags BLOB,                    -- JSONB object of texts
  payload_bytes INTEGER NOT NULL DEFAULT 0, -- as received; these are summed in queue_storage
  result_bytes INTEGER NOT NULL DEFAULT 0,
  checkpoint_bytes INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Cost: every index is paid for by every job. A queue in all its states is a merge of this one
-- (view/walk.py), so there is none of queues alone.
CREATE INDEX jobs_by_queue_state ON jobs (ns, queue, state, created_ms, id);
CREATE INDEX jobs_by_state ON jobs (ns, state, created_ms, id);
CREATE INDEX jobs_by_creation ON jobs (ns, created_ms, id);
CREATE INDEX jobs_by_schedule ON jobs (ns, scheduled_ms, id) WHERE scheduled_ms IS NOT NULL;
CREATE INDEX jobs_by_start ON jobs (ns, started_ms, id) WHERE started_ms IS NOT NULL;
CREATE INDEX jobs_by_completion ON jobs (ns, completed_ms, id) WHERE completed_ms IS NOT NULL;
CREATE INDEX jobs_by_failure ON jobs (ns, failed_ms, id) WHERE failed_ms IS NOT NULL;
CREATE INDEX jobs_by_expiry ON jobs (ns, expire_ms, id) WHERE expire_ms IS NOT NULL;
CREATE INDEX jobs_dead ON jobs (ns, queue, settled_ms, id) WHERE state = 'dead';
CREATE INDEX jobs_dead_by_time ON jobs (ns, settled_ms, id) WHERE state = 'dead';
CREATE INDEX jobs_by_fingerprint ON jobs (ns, error_fingerprint, state, id)
  WHERE error_fingerprint IS NOT NULL;
CREATE INDEX jobs_by_unique_key ON jobs (ns, unique_key, id) WHERE unique_key IS NOT NULL;
CREATE INDEX jobs_by_batch ON jobs (ns, batch_id, id) WHERE batch_id IS NOT NULL;
CREATE INDEX jobs_by_parent ON jobs (ns, parent_id, id) WHERE parent_id IS NOT NULL;
CREATE INDEX jobs_by_chain ON jobs (ns, chain_id, id) WHERE chain_id IS NOT NULL;

-- What a producer sent. Written with the job, rewritten only by unique mode `replace`.
CREATE TABLE job_payloads (
  n INTEGER PRIMARY KEY,
  payload_text TEXT NOT NULL,   -- as received, byte for byte
  payload BLOB,                 -- the same as JSONB; NULL when SQLite can not read the text
  options TEXT NOT NULL,        -- JSON object: retry, unique, limits, cost, depends_on, ...
  bytes INTEGER NOT NULL        -- length of the payload as received
) STRICT;

-- What workers reported. No row when there is nothing.
CREATE TABLE job_documents (
  n INTEGER PRIMARY KEY,
  checkpoint_text TEXT,
  result_text TEXT
) STRICT;

CREATE TABLE job_tags (
  n INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (n, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_tags_by_value ON job_tags (key, value, n);

-- What a job waits for, or waited.
CREATE TABLE job_dependencies (
  n INTEGER NOT NULL,
  parent_id TEXT NOT NULL,
  PRIMARY KEY (n, parent_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_dependencies_by_parent ON job_dependencies (parent_id, n);

-- Every worker that ever had the job, as far as errors and the current attempt tell.
CREATE TABLE job_workers (
  n INTEGER NOT NULL,
  worker_id TEXT NOT NULL,
  PRIMARY KEY (n, worker_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_workers_by_worker ON job_workers (worker_id, n);

-- Failed attempts: the first and the last fifty of each job.
CREATE TABLE job_errors (
  n INTEGER NOT NULL,
  number INTEGER NOT NULL,      -- 0, 1, ...: position among all errors of the job
  attempt INTEGER NOT NULL,
  run INTEGER NOT NULL,
  error TEXT NOT NULL,
  backtrace TEXT,
  at_ms INTEGER NOT NULL,
  started_ms INTEGER NOT NULL,
  worker_id TEXT,
  duration_ms INTEGER NOT NULL,
  PRIMARY KEY (n, number)
) STRICT, WITHOUT ROWID;

-- The timeline: every event the store still keeps, also of jobs that are gone.
CREATE TABLE job_events (
  seq INTEGER PRIMARY KEY,
  position INTEGER NOT NULL,    -- log index of its entry
  at_ms INTEGER NOT NULL,
  type TEXT NOT NULL,
  ns INTEGER NOT NULL,
  job_id TEXT,                  -- NULL for events of queues, batches, limits and the server
  queue TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  data TEXT                     -- JSON object
) STRICT;
CREATE INDEX job_events_by_job ON job_events (job_id, seq) WHERE job_id IS NOT NULL;

CREATE TABLE queues (
  ns INTEGER NOT NULL,
  name TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  paused INTEGER NOT NULL,
  draining INTEGER NOT NULL,
  settings TEXT NOT NULL,       -- JSON object, without secrets
  scheduled INTEGER NOT NULL,   -- jobs by state
  pending INTEGER NOT NULL,
  active INTEGER NOT NULL,
  retrying INTEGER NOT NULL,
  held INTEGER NOT NULL,
  completed INTEGER NOT NULL,
  dead INTEGER NOT NULL,
  cancelled INTEGER NOT NULL,
  waiting INTEGER NOT NULL,     -- of pending: those that wait for dependencies
  total_enqueued INTEGER NOT NULL, -- these only rise
  total_started INTEGER NOT NULL,
  total_completed INTEGER NOT NULL,
  total_failed INTEGER NOT NULL,
  total_dead INTEGER NOT NULL,
  PRIMARY KEY (ns, name)
) STRICT, WITHOUT ROWID;

-- What the jobs of a queue take, summed as they come, change and go.
CREATE TABLE queue_storage (
  ns INTEGER NOT NULL,
  queue TEXT NOT NULL,
  jobs INTEGER NOT NULL,
  payload_bytes INTEGER NOT NULL,
  result_bytes INTEGER NOT NULL,
  checkpoint_bytes INTEGER NOT NULL,
  errors INTEGER NOT NULL,      -- error records ever written
  PRIMARY KEY (ns, queue)
) STRICT, WITHOUT ROWID;

CREATE TABLE batches (
  id TEXT PRIMARY KEY,
  ns INTEGER NOT NULL,
  total INTEGER NOT NULL,
  pending INTEGER NOT NULL,
  succeeded INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  cancelled INTEGER NOT NULL,
  callback_queue TEXT,
  callback_payload TEXT,
  callback_job_id TEXT,
  created_ms INTEGER NOT NULL,
  finished_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX batches_by_creation ON batches (ns, created_ms, id);

-- Locks that a job in the store owns. A lock that outlives its job (mode window) counts until
-- expires_ms; whoever reads compares with the time.
CREATE TABLE unique_locks (
  ns INTEGER NOT NULL,
  queue_id INTEGER NOT NULL,    -- a queue deleted and made again has another: two may have one name
  queue TEXT NOT NULL,
  unique_key TEXT NOT NULL,
  job_id TEXT NOT NULL,
  mode TEXT NOT NULL,
  expires_ms INTEGER NOT NULL,
  PRIMARY KEY (ns, queue_id, unique_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX unique_locks_by_job ON unique_locks (job_id);

-- Usage as last reported by the worker, one row for each job and phase.
CREATE TABLE job_usage (
  n INTEGER NOT NULL,
  phase TEXT NOT NULL,          -- 'total' unless the report names phases
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cache_creation_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL,
  model TEXT,
  provider TEXT,
  cost_microusd INTEGER NOT NULL, -- integer millionths of a dollar
  reported TEXT NOT NULL,       -- JSON text as it came
  PRIMARY KEY (n, phase)
) STRICT, WITHOUT ROWID;

-- What was last reported about each iteration of a job, for as long as the event is kept.
CREATE TABLE job_iterations (
  n INTEGER NOT NULL,
  iteration INTEGER NOT NULL,
  status TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  seq INTEGER NOT NULL,         -- of the event
  reported TEXT NOT NULL,       -- data of the event, a JSON object
  PRIMARY KEY (n, iteration)
) STRICT, WITHOUT ROWID;

CREATE TABLE workers (
  ns INTEGER NOT NULL,
  id TEXT NOT NULL,
  hostname TEXT,
  first_seen_ms INTEGER NOT NULL,
  last_seen_ms INTEGER NOT NULL, -- last event that names it
  started_count INTEGER NOT NULL,
  PRIMARY KEY (ns, id)
) STRICT, WITHOUT ROWID;

-- Schedules and webhooks: columns to find them by, and the rest of what changes with an event.
CREATE TABLE schedules (
  id TEXT PRIMARY KEY,
  ns INTEGER NOT NULL,
  name TEXT NOT NULL,
  queue TEXT NOT NULL,
  next_ms INTEGER,
  document TEXT NOT NULL        -- JSON object
) STRICT, WITHOUT ROWID;

CREATE TABLE webhooks (
  id TEXT PRIMARY KEY,
  ns INTEGER NOT NULL,
  url TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  document TEXT NOT NULL        -- JSON object, without the secret
) STRICT, WITHOUT ROWID;

-- What happened in each minute, counted from events; minutes older than a week are dropped.
CREATE TABLE queue_minutes (
  ns INTEGER NOT NULL,
  queue TEXT NOT NULL,
  minute INTEGER NOT NULL,      -- minutes since 1970
  enqueued INTEGER NOT NULL,
  started INTEGER NOT NULL,
  completed INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  dead INTEGER NOT NULL,
  wait_count INTEGER NOT NULL,  -- from ready to start
  wait_ms INTEGER NOT NULL,
  wait_histogram BLOB NOT NULL, -- counts by bucket, see view/histogram.py
  run_count INTEGER NOT NULL,   -- from start to the end of the attempt
  run_ms INTEGER NOT NULL,
  run_histogram BLOB NOT NULL,
  PRIMARY KEY (ns, queue, minute)
) STRICT, WITHOUT ROWID;
CREATE INDEX queue_minutes_by_minute ON queue_minutes (minute);

-- When a job last became ready and was last started, as the events tell: what the minutes are
-- measured from. Gone with the job.
CREATE TABLE job_marks (
  job_id TEXT PRIMARY KEY,
  ready_ms INTEGER NOT NULL,    -- 0: not known
  started_ms INTEGER NOT NULL   -- 0: not running
) STRICT, WITHOUT ROWID;

-- Words of a job; rowid is jobs.n. Contentless: text comes from the tables above.
CREATE VIRTUAL TABLE jobs_text USING fts5 (
  id, queue, payload, tags, error,
  content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
