import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AgentConfig(_message.Message):
    __slots__ = ("max_iterations", "max_cost_usd", "iteration_timeout")
    MAX_ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_COST_USD_FIELD_NUMBER: _ClassVar[int]
    ITERATION_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    max_iterations: int
    max_cost_usd: float
    iteration_timeout: str
    def __init__(self, max_iterations: _Optional[int] = ..., max_cost_usd: _Optional[float] = ..., iteration_timeout: _Optional[str] = ...) -> None: ...

class AgentState(_message.Message):
    __slots__ = ("max_iterations", "max_cost_usd", "iteration_timeout", "iteration", "total_cost_usd")
    MAX_ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_COST_USD_FIELD_NUMBER: _ClassVar[int]
    ITERATION_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    ITERATION_FIELD_NUMBER: _ClassVar[int]
    TOTAL_COST_USD_FIELD_NUMBER: _ClassVar[int]
    max_iterations: int
    max_cost_usd: float
    iteration_timeout: str
    iteration: int
    total_cost_usd: float
    def __init__(self, max_iterations: _Optional[int] = ..., max_cost_usd: _Optional[float] = ..., iteration_timeout: _Optional[str] = ..., iteration: _Optional[int] = ..., total_cost_usd: _Optional[float] = ...) -> None: ...

class EnqueueOptions(_message.Message):
    __slots__ = ("priority", "unique_key", "unique_period", "unique_mode", "max_retries", "retry_backoff", "retry_base_delay", "retry_max_delay", "retry_jitter", "scheduled_at", "expire_after", "tags", "group", "limit_key", "limits", "cost", "parent_id", "depends_on", "on_dependency_failure", "chain_json", "hold_json", "trace_json", "idempotency_key", "checkpoint_json")
    class TagsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_KEY_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_PERIOD_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_MODE_FIELD_NUMBER: _ClassVar[int]
    MAX_RETRIES_FIELD_NUMBER: _ClassVar[int]
    RETRY_BACKOFF_FIELD_NUMBER: _ClassVar[int]
    RETRY_BASE_DELAY_FIELD_NUMBER: _ClassVar[int]
    RETRY_MAX_DELAY_FIELD_NUMBER: _ClassVar[int]
    RETRY_JITTER_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_AFTER_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    LIMIT_KEY_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    PARENT_ID_FIELD_NUMBER: _ClassVar[int]
    DEPENDS_ON_FIELD_NUMBER: _ClassVar[int]
    ON_DEPENDENCY_FAILURE_FIELD_NUMBER: _ClassVar[int]
    CHAIN_JSON_FIELD_NUMBER: _ClassVar[int]
    HOLD_JSON_FIELD_NUMBER: _ClassVar[int]
    TRACE_JSON_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_JSON_FIELD_NUMBER: _ClassVar[int]
    priority: str
    unique_key: str
    unique_period: str
    unique_mode: str
    max_retries: int
    retry_backoff: str
    retry_base_delay: str
    retry_max_delay: str
    retry_jitter: float
    scheduled_at: str
    expire_after: str
    tags: _containers.ScalarMap[str, str]
    group: str
    limit_key: str
    limits: _containers.RepeatedScalarFieldContainer[str]
    cost: int
    parent_id: str
    depends_on: _containers.RepeatedScalarFieldContainer[str]
    on_dependency_failure: str
    chain_json: str
    hold_json: str
    trace_json: str
    idempotency_key: str
    checkpoint_json: str
    def __init__(self, priority: _Optional[str] = ..., unique_key: _Optional[str] = ..., unique_period: _Optional[str] = ..., unique_mode: _Optional[str] = ..., max_retries: _Optional[int] = ..., retry_backoff: _Optional[str] = ..., retry_base_delay: _Optional[str] = ..., retry_max_delay: _Optional[str] = ..., retry_jitter: _Optional[float] = ..., scheduled_at: _Optional[str] = ..., expire_after: _Optional[str] = ..., tags: _Optional[_Mapping[str, str]] = ..., group: _Optional[str] = ..., limit_key: _Optional[str] = ..., limits: _Optional[_Iterable[str]] = ..., cost: _Optional[int] = ..., parent_id: _Optional[str] = ..., depends_on: _Optional[_Iterable[str]] = ..., on_dependency_failure: _Optional[str] = ..., chain_json: _Optional[str] = ..., hold_json: _Optional[str] = ..., trace_json: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., checkpoint_json: _Optional[str] = ...) -> None: ...

class EnqueueRequest(_message.Message):
    __slots__ = ("queue", "payload_json", "agent", "options")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    payload_json: str
    agent: AgentConfig
    options: EnqueueOptions
    def __init__(self, queue: _Optional[str] = ..., payload_json: _Optional[str] = ..., agent: _Optional[_Union[AgentConfig, _Mapping]] = ..., options: _Optional[_Union[EnqueueOptions, _Mapping]] = ...) -> None: ...

class EnqueueResponse(_message.Message):
    __slots__ = ("job_id", "status", "unique_existing", "index", "state", "result_json", "replaced", "replayed")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_EXISTING_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    RESULT_JSON_FIELD_NUMBER: _ClassVar[int]
    REPLACED_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    status: str
    unique_existing: bool
    index: int
    state: str
    result_json: str
    replaced: bool
    replayed: bool
    def __init__(self, job_id: _Optional[str] = ..., status: _Optional[str] = ..., unique_existing: _Optional[bool] = ..., index: _Optional[int] = ..., state: _Optional[str] = ..., result_json: _Optional[str] = ..., replaced: _Optional[bool] = ..., replayed: _Optional[bool] = ...) -> None: ...

class EnqueueBatchRequest(_message.Message):
    __slots__ = ("jobs", "batch", "callback_queue", "callback_payload_json", "idempotency_key")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[EnqueueRequest]
    batch: bool
    callback_queue: str
    callback_payload_json: str
    idempotency_key: str
    def __init__(self, jobs: _Optional[_Iterable[_Union[EnqueueRequest, _Mapping]]] = ..., batch: _Optional[bool] = ..., callback_queue: _Optional[str] = ..., callback_payload_json: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class EnqueueBatchResponse(_message.Message):
    __slots__ = ("job_ids", "batch_id", "results", "index")
    JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    BATCH_ID_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    job_ids: _containers.RepeatedScalarFieldContainer[str]
    batch_id: str
    results: _containers.RepeatedCompositeFieldContainer[EnqueueResponse]
    index: int
    def __init__(self, job_ids: _Optional[_Iterable[str]] = ..., batch_id: _Optional[str] = ..., results: _Optional[_Iterable[_Union[EnqueueResponse, _Mapping]]] = ..., index: _Optional[int] = ...) -> None: ...

class FetchRequest(_message.Message):
    __slots__ = ("queues", "worker_id", "hostname", "lease_duration", "timeout", "version", "draining")
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    LEASE_DURATION_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedScalarFieldContainer[str]
    worker_id: str
    hostname: str
    lease_duration: int
    timeout: str
    version: str
    draining: bool
    def __init__(self, queues: _Optional[_Iterable[str]] = ..., worker_id: _Optional[str] = ..., hostname: _Optional[str] = ..., lease_duration: _Optional[int] = ..., timeout: _Optional[str] = ..., version: _Optional[str] = ..., draining: _Optional[bool] = ...) -> None: ...

class FetchResponse(_message.Message):
    __slots__ = ("found", "job_id", "queue", "payload_json", "attempt", "max_retries", "lease_duration", "checkpoint_json", "tags_json", "agent", "lease_token", "priority", "group", "created_at", "scheduled_at", "trace_json")
    FOUND_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    MAX_RETRIES_FIELD_NUMBER: _ClassVar[int]
    LEASE_DURATION_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_JSON_FIELD_NUMBER: _ClassVar[int]
    TAGS_JSON_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_AT_FIELD_NUMBER: _ClassVar[int]
    TRACE_JSON_FIELD_NUMBER: _ClassVar[int]
    found: bool
    job_id: str
    queue: str
    payload_json: str
    attempt: int
    max_retries: int
    lease_duration: int
    checkpoint_json: str
    tags_json: str
    agent: AgentState
    lease_token: int
    priority: str
    group: str
    created_at: str
    scheduled_at: str
    trace_json: str
    def __init__(self, found: _Optional[bool] = ..., job_id: _Optional[str] = ..., queue: _Optional[str] = ..., payload_json: _Optional[str] = ..., attempt: _Optional[int] = ..., max_retries: _Optional[int] = ..., lease_duration: _Optional[int] = ..., checkpoint_json: _Optional[str] = ..., tags_json: _Optional[str] = ..., agent: _Optional[_Union[AgentState, _Mapping]] = ..., lease_token: _Optional[int] = ..., priority: _Optional[str] = ..., group: _Optional[str] = ..., created_at: _Optional[str] = ..., scheduled_at: _Optional[str] = ..., trace_json: _Optional[str] = ...) -> None: ...

class FetchBatchRequest(_message.Message):
    __slots__ = ("queues", "worker_id", "hostname", "lease_duration", "count", "timeout", "version", "draining")
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    LEASE_DURATION_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedScalarFieldContainer[str]
    worker_id: str
    hostname: str
    lease_duration: int
    count: int
    timeout: str
    version: str
    draining: bool
    def __init__(self, queues: _Optional[_Iterable[str]] = ..., worker_id: _Optional[str] = ..., hostname: _Optional[str] = ..., lease_duration: _Optional[int] = ..., count: _Optional[int] = ..., timeout: _Optional[str] = ..., version: _Optional[str] = ..., draining: _Optional[bool] = ...) -> None: ...

class FetchBatchJob(_message.Message):
    __slots__ = ("job_id", "queue", "payload_json", "attempt", "max_retries", "lease_duration", "checkpoint_json", "tags_json", "agent", "lease_token", "priority", "group", "created_at", "scheduled_at", "trace_json")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    MAX_RETRIES_FIELD_NUMBER: _ClassVar[int]
    LEASE_DURATION_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_JSON_FIELD_NUMBER: _ClassVar[int]
    TAGS_JSON_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_AT_FIELD_NUMBER: _ClassVar[int]
    TRACE_JSON_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    queue: str
    payload_json: str
    attempt: int
    max_retries: int
    lease_duration: int
    checkpoint_json: str
    tags_json: str
    agent: AgentState
    lease_token: int
    priority: str
    group: str
    created_at: str
    scheduled_at: str
    trace_json: str
    def __init__(self, job_id: _Optional[str] = ..., queue: _Optional[str] = ..., payload_json: _Optional[str] = ..., attempt: _Optional[int] = ..., max_retries: _Optional[int] = ..., lease_duration: _Optional[int] = ..., checkpoint_json: _Optional[str] = ..., tags_json: _Optional[str] = ..., agent: _Optional[_Union[AgentState, _Mapping]] = ..., lease_token: _Optional[int] = ..., priority: _Optional[str] = ..., group: _Optional[str] = ..., created_at: _Optional[str] = ..., scheduled_at: _Optional[str] = ..., trace_json: _Optional[str] = ...) -> None: ...

class FetchBatchResponse(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[FetchBatchJob]
    def __init__(self, jobs: _Optional[_Iterable[_Union[FetchBatchJob, _Mapping]]] = ...) -> None: ...

class UsageReport(_message.Message):
    __slots__ = ("input_tokens", "output_tokens", "cache_creation_tokens", "cache_read_tokens", "model", "provider", "cost_usd")
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_CREATION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_READ_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    input_tokens: int
    output_tokens: int
    cache_creation_tokens: int
    cache_read_tokens: int
    model: str
    provider: str
    cost_usd: float
    def __init__(self, input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cache_creation_tokens: _Optional[int] = ..., cache_read_tokens: _Optional[int] = ..., model: _Optional[str] = ..., provider: _Optional[str] = ..., cost_usd: _Optional[float] = ...) -> None: ...

class AckRequest(_message.Message):
    __slots__ = ("job_id", "result_json", "usage", "checkpoint_json", "agent_status", "hold_reason", "trace_json", "lease_token", "step_status")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RESULT_JSON_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_JSON_FIELD_NUMBER: _ClassVar[int]
    AGENT_STATUS_FIELD_NUMBER: _ClassVar[int]
    HOLD_REASON_FIELD_NUMBER: _ClassVar[int]
    TRACE_JSON_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STEP_STATUS_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    result_json: str
    usage: UsageReport
    checkpoint_json: str
    agent_status: str
    hold_reason: str
    trace_json: str
    lease_token: int
    step_status: str
    def __init__(self, job_id: _Optional[str] = ..., result_json: _Optional[str] = ..., usage: _Optional[_Union[UsageReport, _Mapping]] = ..., checkpoint_json: _Optional[str] = ..., agent_status: _Optional[str] = ..., hold_reason: _Optional[str] = ..., trace_json: _Optional[str] = ..., lease_token: _Optional[int] = ..., step_status: _Optional[str] = ...) -> None: ...

class AckResponse(_message.Message):
    __slots__ = ("status", "index")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    status: str
    index: int
    def __init__(self, status: _Optional[str] = ..., index: _Optional[int] = ...) -> None: ...

class AckBatchItem(_message.Message):
    __slots__ = ("job_id", "result_json", "usage", "lease_token", "checkpoint_json", "step_status")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RESULT_JSON_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_JSON_FIELD_NUMBER: _ClassVar[int]
    STEP_STATUS_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    result_json: str
    usage: UsageReport
    lease_token: int
    checkpoint_json: str
    step_status: str
    def __init__(self, job_id: _Optional[str] = ..., result_json: _Optional[str] = ..., usage: _Optional[_Union[UsageReport, _Mapping]] = ..., lease_token: _Optional[int] = ..., checkpoint_json: _Optional[str] = ..., step_status: _Optional[str] = ...) -> None: ...

class AckBatchRequest(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[AckBatchItem]
    def __init__(self, items: _Optional[_Iterable[_Union[AckBatchItem, _Mapping]]] = ...) -> None: ...

class AckBatchResponse(_message.Message):
    __slots__ = ("acked", "results", "index")
    ACKED_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    acked: int
    results: _containers.RepeatedCompositeFieldContainer[ItemResult]
    index: int
    def __init__(self, acked: _Optional[int] = ..., results: _Optional[_Iterable[_Union[ItemResult, _Mapping]]] = ..., index: _Optional[int] = ...) -> None: ...

class FailRequest(_message.Message):
    __slots__ = ("job_id", "error", "backtrace", "lease_token", "retryable", "retry_after", "checkpoint_json", "usage")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    BACKTRACE_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_JSON_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    error: str
    backtrace: str
    lease_token: int
    retryable: bool
    retry_after: str
    checkpoint_json: str
    usage: UsageReport
    def __init__(self, job_id: _Optional[str] = ..., error: _Optional[str] = ..., backtrace: _Optional[str] = ..., lease_token: _Optional[int] = ..., retryable: _Optional[bool] = ..., retry_after: _Optional[str] = ..., checkpoint_json: _Optional[str] = ..., usage: _Optional[_Union[UsageReport, _Mapping]] = ...) -> None: ...

class FailResponse(_message.Message):
    __slots__ = ("status", "next_attempt_at", "attempts_remaining", "index")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    NEXT_ATTEMPT_AT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_REMAINING_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    status: str
    next_attempt_at: _timestamp_pb2.Timestamp
    attempts_remaining: int
    index: int
    def __init__(self, status: _Optional[str] = ..., next_attempt_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., attempts_remaining: _Optional[int] = ..., index: _Optional[int] = ...) -> None: ...

class HeartbeatJobUpdate(_message.Message):
    __slots__ = ("progress_json", "checkpoint_json", "usage", "stream_delta", "lease_token")
    PROGRESS_JSON_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_JSON_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    STREAM_DELTA_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    progress_json: str
    checkpoint_json: str
    usage: UsageReport
    stream_delta: str
    lease_token: int
    def __init__(self, progress_json: _Optional[str] = ..., checkpoint_json: _Optional[str] = ..., usage: _Optional[_Union[UsageReport, _Mapping]] = ..., stream_delta: _Optional[str] = ..., lease_token: _Optional[int] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("jobs", "worker_id")
    class JobsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: HeartbeatJobUpdate
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[HeartbeatJobUpdate, _Mapping]] = ...) -> None: ...
    JOBS_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.MessageMap[str, HeartbeatJobUpdate]
    worker_id: str
    def __init__(self, jobs: _Optional[_Mapping[str, HeartbeatJobUpdate]] = ..., worker_id: _Optional[str] = ...) -> None: ...

class HeartbeatJobResponse(_message.Message):
    __slots__ = ("status", "lease_expires_at")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    LEASE_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    status: str
    lease_expires_at: str
    def __init__(self, status: _Optional[str] = ..., lease_expires_at: _Optional[str] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ("jobs", "index")
    class JobsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: HeartbeatJobResponse
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[HeartbeatJobResponse, _Mapping]] = ...) -> None: ...
    JOBS_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.MessageMap[str, HeartbeatJobResponse]
    index: int
    def __init__(self, jobs: _Optional[_Mapping[str, HeartbeatJobResponse]] = ..., index: _Optional[int] = ...) -> None: ...

class LifecycleEnqueueItem(_message.Message):
    __slots__ = ("queue", "payload_json", "agent", "options")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    payload_json: str
    agent: AgentConfig
    options: EnqueueOptions
    def __init__(self, queue: _Optional[str] = ..., payload_json: _Optional[str] = ..., agent: _Optional[_Union[AgentConfig, _Mapping]] = ..., options: _Optional[_Union[EnqueueOptions, _Mapping]] = ...) -> None: ...

class ReleaseItem(_message.Message):
    __slots__ = ("job_id", "lease_token", "checkpoint_json")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_JSON_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    lease_token: int
    checkpoint_json: str
    def __init__(self, job_id: _Optional[str] = ..., lease_token: _Optional[int] = ..., checkpoint_json: _Optional[str] = ...) -> None: ...

class SnoozeItem(_message.Message):
    __slots__ = ("job_id", "lease_token", "checkpoint_json", "delay", "until")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_JSON_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    lease_token: int
    checkpoint_json: str
    delay: str
    until: str
    def __init__(self, job_id: _Optional[str] = ..., lease_token: _Optional[int] = ..., checkpoint_json: _Optional[str] = ..., delay: _Optional[str] = ..., until: _Optional[str] = ...) -> None: ...

class HoldItem(_message.Message):
    __slots__ = ("job_id", "lease_token", "checkpoint_json", "reason", "timeout", "timeout_action")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_JSON_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_ACTION_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    lease_token: int
    checkpoint_json: str
    reason: str
    timeout: str
    timeout_action: str
    def __init__(self, job_id: _Optional[str] = ..., lease_token: _Optional[int] = ..., checkpoint_json: _Optional[str] = ..., reason: _Optional[str] = ..., timeout: _Optional[str] = ..., timeout_action: _Optional[str] = ...) -> None: ...

class HeartbeatItem(_message.Message):
    __slots__ = ("job_id", "lease_token", "progress_json", "checkpoint_json", "usage")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_JSON_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_JSON_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    lease_token: int
    progress_json: str
    checkpoint_json: str
    usage: UsageReport
    def __init__(self, job_id: _Optional[str] = ..., lease_token: _Optional[int] = ..., progress_json: _Optional[str] = ..., checkpoint_json: _Optional[str] = ..., usage: _Optional[_Union[UsageReport, _Mapping]] = ...) -> None: ...

class CreditItem(_message.Message):
    __slots__ = ("queues", "slots", "lease_duration")
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    LEASE_DURATION_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedScalarFieldContainer[str]
    slots: int
    lease_duration: str
    def __init__(self, queues: _Optional[_Iterable[str]] = ..., slots: _Optional[int] = ..., lease_duration: _Optional[str] = ...) -> None: ...

class HeldJob(_message.Message):
    __slots__ = ("job_id", "lease_token", "lease_expires_at", "reason")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    LEASE_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    lease_token: int
    lease_expires_at: str
    reason: str
    def __init__(self, job_id: _Optional[str] = ..., lease_token: _Optional[int] = ..., lease_expires_at: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ResumeRequest(_message.Message):
    __slots__ = ("stream_id", "received", "jobs")
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    stream_id: str
    received: int
    jobs: _containers.RepeatedCompositeFieldContainer[HeldJob]
    def __init__(self, stream_id: _Optional[str] = ..., received: _Optional[int] = ..., jobs: _Optional[_Iterable[_Union[HeldJob, _Mapping]]] = ...) -> None: ...

class LifecycleStreamRequest(_message.Message):
    __slots__ = ("request_id", "queues", "worker_id", "hostname", "lease_duration", "fetch_count", "acks", "enqueues", "credits", "fails", "heartbeats", "releases", "snoozes", "holds", "received", "resume", "version", "draining")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    LEASE_DURATION_FIELD_NUMBER: _ClassVar[int]
    FETCH_COUNT_FIELD_NUMBER: _ClassVar[int]
    ACKS_FIELD_NUMBER: _ClassVar[int]
    ENQUEUES_FIELD_NUMBER: _ClassVar[int]
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    FAILS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEATS_FIELD_NUMBER: _ClassVar[int]
    RELEASES_FIELD_NUMBER: _ClassVar[int]
    SNOOZES_FIELD_NUMBER: _ClassVar[int]
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    queues: _containers.RepeatedScalarFieldContainer[str]
    worker_id: str
    hostname: str
    lease_duration: int
    fetch_count: int
    acks: _containers.RepeatedCompositeFieldContainer[AckBatchItem]
    enqueues: _containers.RepeatedCompositeFieldContainer[LifecycleEnqueueItem]
    credits: _containers.RepeatedCompositeFieldContainer[CreditItem]
    fails: _containers.RepeatedCompositeFieldContainer[FailRequest]
    heartbeats: _containers.RepeatedCompositeFieldContainer[HeartbeatItem]
    releases: _containers.RepeatedCompositeFieldContainer[ReleaseItem]
    snoozes: _containers.RepeatedCompositeFieldContainer[SnoozeItem]
    holds: _containers.RepeatedCompositeFieldContainer[HoldItem]
    received: int
    resume: ResumeRequest
    version: str
    draining: bool
    def __init__(self, request_id: _Optional[int] = ..., queues: _Optional[_Iterable[str]] = ..., worker_id: _Optional[str] = ..., hostname: _Optional[str] = ..., lease_duration: _Optional[int] = ..., fetch_count: _Optional[int] = ..., acks: _Optional[_Iterable[_Union[AckBatchItem, _Mapping]]] = ..., enqueues: _Optional[_Iterable[_Union[LifecycleEnqueueItem, _Mapping]]] = ..., credits: _Optional[_Iterable[_Union[CreditItem, _Mapping]]] = ..., fails: _Optional[_Iterable[_Union[FailRequest, _Mapping]]] = ..., heartbeats: _Optional[_Iterable[_Union[HeartbeatItem, _Mapping]]] = ..., releases: _Optional[_Iterable[_Union[ReleaseItem, _Mapping]]] = ..., snoozes: _Optional[_Iterable[_Union[SnoozeItem, _Mapping]]] = ..., holds: _Optional[_Iterable[_Union[HoldItem, _Mapping]]] = ..., received: _Optional[int] = ..., resume: _Optional[_Union[ResumeRequest, _Mapping]] = ..., version: _Optional[str] = ..., draining: _Optional[bool] = ...) -> None: ...

class ItemResult(_message.Message):
    __slots__ = ("job_id", "status", "code", "error", "field", "hint", "state", "next_attempt_at", "attempts_remaining", "scheduled_at", "lease_expires_at", "unique_existing", "replaced", "replayed", "result_json", "queues", "slots", "in_flight", "unique_job_id", "retry_after_ms")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    NEXT_ATTEMPT_AT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_REMAINING_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_AT_FIELD_NUMBER: _ClassVar[int]
    LEASE_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_EXISTING_FIELD_NUMBER: _ClassVar[int]
    REPLACED_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    RESULT_JSON_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    status: str
    code: str
    error: str
    field: str
    hint: str
    state: str
    next_attempt_at: str
    attempts_remaining: int
    scheduled_at: str
    lease_expires_at: str
    unique_existing: bool
    replaced: bool
    replayed: bool
    result_json: str
    queues: _containers.RepeatedScalarFieldContainer[str]
    slots: int
    in_flight: int
    unique_job_id: str
    retry_after_ms: int
    def __init__(self, job_id: _Optional[str] = ..., status: _Optional[str] = ..., code: _Optional[str] = ..., error: _Optional[str] = ..., field: _Optional[str] = ..., hint: _Optional[str] = ..., state: _Optional[str] = ..., next_attempt_at: _Optional[str] = ..., attempts_remaining: _Optional[int] = ..., scheduled_at: _Optional[str] = ..., lease_expires_at: _Optional[str] = ..., unique_existing: _Optional[bool] = ..., replaced: _Optional[bool] = ..., replayed: _Optional[bool] = ..., result_json: _Optional[str] = ..., queues: _Optional[_Iterable[str]] = ..., slots: _Optional[int] = ..., in_flight: _Optional[int] = ..., unique_job_id: _Optional[str] = ..., retry_after_ms: _Optional[int] = ...) -> None: ...

class Notice(_message.Message):
    __slots__ = ("code", "error", "field", "hint", "retry_after_ms")
    CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    code: str
    error: str
    field: str
    hint: str
    retry_after_ms: int
    def __init__(self, code: _Optional[str] = ..., error: _Optional[str] = ..., field: _Optional[str] = ..., hint: _Optional[str] = ..., retry_after_ms: _Optional[int] = ...) -> None: ...

class StreamLimits(_message.Message):
    __slots__ = ("frame_bytes_max", "frame_items_max", "in_flight_max", "unanswered_max", "idle_timeout_ms")
    FRAME_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    FRAME_ITEMS_MAX_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_MAX_FIELD_NUMBER: _ClassVar[int]
    UNANSWERED_MAX_FIELD_NUMBER: _ClassVar[int]
    IDLE_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    frame_bytes_max: int
    frame_items_max: int
    in_flight_max: int
    unanswered_max: int
    idle_timeout_ms: int
    def __init__(self, frame_bytes_max: _Optional[int] = ..., frame_items_max: _Optional[int] = ..., in_flight_max: _Optional[int] = ..., unanswered_max: _Optional[int] = ..., idle_timeout_ms: _Optional[int] = ...) -> None: ...

class StreamInfo(_message.Message):
    __slots__ = ("stream_id", "resumed", "held", "lost", "limits")
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    stream_id: str
    resumed: bool
    held: _containers.RepeatedCompositeFieldContainer[HeldJob]
    lost: _containers.RepeatedCompositeFieldContainer[HeldJob]
    limits: StreamLimits
    def __init__(self, stream_id: _Optional[str] = ..., resumed: _Optional[bool] = ..., held: _Optional[_Iterable[_Union[HeldJob, _Mapping]]] = ..., lost: _Optional[_Iterable[_Union[HeldJob, _Mapping]]] = ..., limits: _Optional[_Union[StreamLimits, _Mapping]] = ...) -> None: ...

class LifecycleStreamResponse(_message.Message):
    __slots__ = ("request_id", "jobs", "acked", "error", "enqueued_job_ids", "leader_addr", "push", "index", "ack_results", "fail_results", "release_results", "snooze_results", "hold_results", "heartbeat_results", "enqueue_results", "credit_results", "cancels", "warnings", "lost", "drain", "closing", "stream", "refusal")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    ACKED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ENQUEUED_JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    LEADER_ADDR_FIELD_NUMBER: _ClassVar[int]
    PUSH_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ACK_RESULTS_FIELD_NUMBER: _ClassVar[int]
    FAIL_RESULTS_FIELD_NUMBER: _ClassVar[int]
    RELEASE_RESULTS_FIELD_NUMBER: _ClassVar[int]
    SNOOZE_RESULTS_FIELD_NUMBER: _ClassVar[int]
    HOLD_RESULTS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_RESULTS_FIELD_NUMBER: _ClassVar[int]
    ENQUEUE_RESULTS_FIELD_NUMBER: _ClassVar[int]
    CREDIT_RESULTS_FIELD_NUMBER: _ClassVar[int]
    CANCELS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    CLOSING_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    jobs: _containers.RepeatedCompositeFieldContainer[FetchBatchJob]
    acked: int
    error: str
    enqueued_job_ids: _containers.RepeatedScalarFieldContainer[str]
    leader_addr: str
    push: int
    index: int
    ack_results: _containers.RepeatedCompositeFieldContainer[ItemResult]
    fail_results: _containers.RepeatedCompositeFieldContainer[ItemResult]
    release_results: _containers.RepeatedCompositeFieldContainer[ItemResult]
    snooze_results: _containers.RepeatedCompositeFieldContainer[ItemResult]
    hold_results: _containers.RepeatedCompositeFieldContainer[ItemResult]
    heartbeat_results: _containers.RepeatedCompositeFieldContainer[ItemResult]
    enqueue_results: _containers.RepeatedCompositeFieldContainer[ItemResult]
    credit_results: _containers.RepeatedCompositeFieldContainer[ItemResult]
    cancels: _containers.RepeatedCompositeFieldContainer[HeldJob]
    warnings: _containers.RepeatedCompositeFieldContainer[HeldJob]
    lost: _containers.RepeatedCompositeFieldContainer[HeldJob]
    drain: Notice
    closing: Notice
    stream: StreamInfo
    refusal: Notice
    def __init__(self, request_id: _Optional[int] = ..., jobs: _Optional[_Iterable[_Union[FetchBatchJob, _Mapping]]] = ..., acked: _Optional[int] = ..., error: _Optional[str] = ..., enqueued_job_ids: _Optional[_Iterable[str]] = ..., leader_addr: _Optional[str] = ..., push: _Optional[int] = ..., index: _Optional[int] = ..., ack_results: _Optional[_Iterable[_Union[ItemResult, _Mapping]]] = ..., fail_results: _Optional[_Iterable[_Union[ItemResult, _Mapping]]] = ..., release_results: _Optional[_Iterable[_Union[ItemResult, _Mapping]]] = ..., snooze_results: _Optional[_Iterable[_Union[ItemResult, _Mapping]]] = ..., hold_results: _Optional[_Iterable[_Union[ItemResult, _Mapping]]] = ..., heartbeat_results: _Optional[_Iterable[_Union[ItemResult, _Mapping]]] = ..., enqueue_results: _Optional[_Iterable[_Union[ItemResult, _Mapping]]] = ..., credit_results: _Optional[_Iterable[_Union[ItemResult, _Mapping]]] = ..., cancels: _Optional[_Iterable[_Union[HeldJob, _Mapping]]] = ..., warnings: _Optional[_Iterable[_Union[HeldJob, _Mapping]]] = ..., lost: _Optional[_Iterable[_Union[HeldJob, _Mapping]]] = ..., drain: _Optional[_Union[Notice, _Mapping]] = ..., closing: _Optional[_Union[Notice, _Mapping]] = ..., stream: _Optional[_Union[StreamInfo, _Mapping]] = ..., refusal: _Optional[_Union[Notice, _Mapping]] = ...) -> None: ...

class SubscribeRequest(_message.Message):
    __slots__ = ("queues", "job_ids", "types", "last_event_id")
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    LAST_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedScalarFieldContainer[str]
    job_ids: _containers.RepeatedScalarFieldContainer[str]
    types: _containers.RepeatedScalarFieldContainer[str]
    last_event_id: int
    def __init__(self, queues: _Optional[_Iterable[str]] = ..., job_ids: _Optional[_Iterable[str]] = ..., types: _Optional[_Iterable[str]] = ..., last_event_id: _Optional[int] = ...) -> None: ...

class SubscribeEvent(_message.Message):
    __slots__ = ("seq", "type", "job_id", "queue", "at_ns", "data_json")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    DATA_JSON_FIELD_NUMBER: _ClassVar[int]
    seq: int
    type: str
    job_id: str
    queue: str
    at_ns: int
    data_json: str
    def __init__(self, seq: _Optional[int] = ..., type: _Optional[str] = ..., job_id: _Optional[str] = ..., queue: _Optional[str] = ..., at_ns: _Optional[int] = ..., data_json: _Optional[str] = ...) -> None: ...

class GetServerInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetServerInfoResponse(_message.Message):
    __slots__ = ("server_version", "api_version", "features")
    SERVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    API_VERSION_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    server_version: str
    api_version: str
    features: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, server_version: _Optional[str] = ..., api_version: _Optional[str] = ..., features: _Optional[_Iterable[str]] = ...) -> None: ...
