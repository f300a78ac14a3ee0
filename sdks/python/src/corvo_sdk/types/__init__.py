"""Answers and requests as structs.

Times are aware datetimes, durations the server's text ("1h30m"), documents either decoded (`Any`)
or, for what a worker gets, the bytes as they were sent (`msgspec.Raw`). A field that a newer server
adds is left out; a field that an older one lacks has its default. States and other words are plain
text, so that a word of a newer server does not make an answer unreadable.

Read first: `jobs.py` for what a producer and a worker handle.
"""

from corvo_sdk.types.jobs import Enqueued as Enqueued
from corvo_sdk.types.jobs import EnqueuedMany as EnqueuedMany
from corvo_sdk.types.jobs import EnqueueOptions as EnqueueOptions
from corvo_sdk.types.jobs import EnqueueResult as EnqueueResult
from corvo_sdk.types.jobs import Job as Job
from corvo_sdk.types.jobs import JobChange as JobChange
from corvo_sdk.types.jobs import JobError as JobError
from corvo_sdk.types.jobs import JobWorker as JobWorker
from corvo_sdk.types.jobs import NewJob as NewJob
from corvo_sdk.types.work import Ack as Ack
from corvo_sdk.types.work import AckedMany as AckedMany
from corvo_sdk.types.work import AckResult as AckResult
from corvo_sdk.types.work import Beat as Beat
from corvo_sdk.types.work import Ended as Ended
from corvo_sdk.types.work import FailedAttempt as FailedAttempt
from corvo_sdk.types.work import FetchedJob as FetchedJob
from corvo_sdk.types.work import Heartbeat as Heartbeat
from corvo_sdk.types.work import HeartbeatAnswer as HeartbeatAnswer
from corvo_sdk.types.work import Snoozed as Snoozed
