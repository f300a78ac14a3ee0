"""Answers and requests as structs.

Times are aware datetimes, durations the server's text ("1h30m"), documents either decoded (`Any`)
or, for what a worker gets, the bytes as they were sent (`msgspec.Raw`). A field that a newer server
adds is left out; a field that an older one lacks has its default. States and other words are plain
text, so that a word of a newer server does not make an answer unreadable.

Read first: `jobs.py` for what a producer and a worker handle.
"""

from corvo_sdk.types.jobs import Batch as Batch
from corvo_sdk.types.jobs import ChainQueues as ChainQueues
from corvo_sdk.types.jobs import Enqueued as Enqueued
from corvo_sdk.types.jobs import EnqueuedMany as EnqueuedMany
from corvo_sdk.types.jobs import EnqueueOptions as EnqueueOptions
from corvo_sdk.types.jobs import EnqueueResult as EnqueueResult
from corvo_sdk.types.jobs import Gate as Gate
from corvo_sdk.types.jobs import HoldOptions as HoldOptions
from corvo_sdk.types.jobs import Job as Job
from corvo_sdk.types.jobs import JobChange as JobChange
from corvo_sdk.types.jobs import JobError as JobError
from corvo_sdk.types.jobs import Jobs as Jobs
from corvo_sdk.types.jobs import JobWorker as JobWorker
from corvo_sdk.types.jobs import NewJob as NewJob
from corvo_sdk.types.jobs import Why as Why
from corvo_sdk.types.queues import Drained as Drained
from corvo_sdk.types.queues import Limit as Limit
from corvo_sdk.types.queues import LimitChange as LimitChange
from corvo_sdk.types.queues import Queue as Queue
from corvo_sdk.types.queues import QueueChange as QueueChange
from corvo_sdk.types.queues import QueueOptions as QueueOptions
from corvo_sdk.types.queues import QueueSettings as QueueSettings
from corvo_sdk.types.queues import Rate as Rate
from corvo_sdk.types.queues import RateOptions as RateOptions
from corvo_sdk.types.queues import Removal as Removal
from corvo_sdk.types.queues import SettingsChange as SettingsChange
from corvo_sdk.types.queues import Totals as Totals
from corvo_sdk.types.schedules import Backfill as Backfill
from corvo_sdk.types.schedules import Runs as Runs
from corvo_sdk.types.schedules import Schedule as Schedule
from corvo_sdk.types.schedules import ScheduleChange as ScheduleChange
from corvo_sdk.types.schedules import ScheduleOptions as ScheduleOptions
from corvo_sdk.types.schedules import ScheduleRun as ScheduleRun
from corvo_sdk.types.search import BatchesPage as BatchesPage
from corvo_sdk.types.search import Bulk as Bulk
from corvo_sdk.types.search import BulkOptions as BulkOptions
from corvo_sdk.types.search import BulkPage as BulkPage
from corvo_sdk.types.search import BulkResult as BulkResult
from corvo_sdk.types.search import DeadGroup as DeadGroup
from corvo_sdk.types.search import DeadGroups as DeadGroups
from corvo_sdk.types.search import FoundJob as FoundJob
from corvo_sdk.types.search import Fulltext as Fulltext
from corvo_sdk.types.search import Graph as Graph
from corvo_sdk.types.search import GraphEdge as GraphEdge
from corvo_sdk.types.search import GraphJob as GraphJob
from corvo_sdk.types.search import JobsPage as JobsPage
from corvo_sdk.types.search import JobSummary as JobSummary
from corvo_sdk.types.search import QueueStorage as QueueStorage
from corvo_sdk.types.search import SearchFilter as SearchFilter
from corvo_sdk.types.search import Storage as Storage
from corvo_sdk.types.search import StorageTotals as StorageTotals
from corvo_sdk.types.server import Alive as Alive
from corvo_sdk.types.server import Event as Event
from corvo_sdk.types.server import EventsPage as EventsPage
from corvo_sdk.types.server import Health as Health
from corvo_sdk.types.server import Imported as Imported
from corvo_sdk.types.server import ImportRefusal as ImportRefusal
from corvo_sdk.types.server import Info as Info
from corvo_sdk.types.server import JobEvent as JobEvent
from corvo_sdk.types.server import Minute as Minute
from corvo_sdk.types.server import Rebuild as Rebuild
from corvo_sdk.types.server import Throughput as Throughput
from corvo_sdk.types.server import Timeline as Timeline
from corvo_sdk.types.server import ViewPosition as ViewPosition
from corvo_sdk.types.server import WorkerInfo as WorkerInfo
from corvo_sdk.types.webhooks import DeadLetters as DeadLetters
from corvo_sdk.types.webhooks import Deliveries as Deliveries
from corvo_sdk.types.webhooks import Delivery as Delivery
from corvo_sdk.types.webhooks import DeliveryEvent as DeliveryEvent
from corvo_sdk.types.webhooks import Webhook as Webhook
from corvo_sdk.types.webhooks import WebhookOptions as WebhookOptions
from corvo_sdk.types.webhooks import WebhookRemoval as WebhookRemoval
from corvo_sdk.types.work import Ack as Ack
from corvo_sdk.types.work import AckedMany as AckedMany
from corvo_sdk.types.work import AckResult as AckResult
from corvo_sdk.types.work import Beat as Beat
from corvo_sdk.types.work import Ended as Ended
from corvo_sdk.types.work import FailedAttempt as FailedAttempt
from corvo_sdk.types.work import FetchedJob as FetchedJob
from corvo_sdk.types.work import FetchedMany as FetchedMany
from corvo_sdk.types.work import Heartbeat as Heartbeat
from corvo_sdk.types.work import HeartbeatAnswer as HeartbeatAnswer
from corvo_sdk.types.work import Snoozed as Snoozed
