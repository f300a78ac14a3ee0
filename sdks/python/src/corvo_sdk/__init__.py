"""Corvo for Python: clients, tasks, and a runtime for workers.

    from corvo_sdk import Client

    with Client() as client:
        client.enqueue("emails.send", {"to": "user@example.com"})

`Client` and `AsyncClient` speak every endpoint of a server. `Corvo` declares tasks on plain
functions, and `Worker` runs them. Nothing here imports the server.

Names are resolved when they are first used (PEP 562), so that a program which only enqueues never
pays for the worker, and `import corvo_sdk` loads neither aiohttp nor urllib3.

Read first: `client.py` for what can be called, `protocol/exchange.py` for what is repeated.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from corvo_sdk.version import VERSION

if TYPE_CHECKING:
    from corvo_sdk.aio import AsyncClient as AsyncClient
    from corvo_sdk.app import Corvo as Corvo
    from corvo_sdk.chains import chain as chain
    from corvo_sdk.client import Client as Client
    from corvo_sdk.context import Context as Context
    from corvo_sdk.context import current_context as current_context
    from corvo_sdk.control import Control as Control
    from corvo_sdk.control import Discard as Discard
    from corvo_sdk.control import Hold as Hold
    from corvo_sdk.control import Release as Release
    from corvo_sdk.control import Retry as Retry
    from corvo_sdk.control import Snooze as Snooze
    from corvo_sdk.errors import ConnectionFailedError as ConnectionFailedError
    from corvo_sdk.errors import CorvoError as CorvoError
    from corvo_sdk.errors import DeadlineExceededError as DeadlineExceededError
    from corvo_sdk.handle import JobHandle as JobHandle
    from corvo_sdk.handle import JobNotCompletedError as JobNotCompletedError
    from corvo_sdk.options import Unique as Unique
    from corvo_sdk.payload import PayloadError as PayloadError
    from corvo_sdk.task import Task as Task
    from corvo_sdk.types import FetchedJob as FetchedJob
    from corvo_sdk.types import Job as Job
    from corvo_sdk.types import NewJob as NewJob
    from corvo_sdk.worker.runtime import Worker as Worker

__version__: Final = VERSION

# Where each public name lives.
_HOMES: Final = {
    "AsyncClient": "corvo_sdk.aio",
    "Client": "corvo_sdk.client",
    "ConnectionFailedError": "corvo_sdk.errors",
    "Context": "corvo_sdk.context",
    "Control": "corvo_sdk.control",
    "Corvo": "corvo_sdk.app",
    "CorvoError": "corvo_sdk.errors",
    "DeadlineExceededError": "corvo_sdk.errors",
    "Discard": "corvo_sdk.control",
    "FetchedJob": "corvo_sdk.types",
    "Hold": "corvo_sdk.control",
    "Job": "corvo_sdk.types",
    "JobHandle": "corvo_sdk.handle",
    "JobNotCompletedError": "corvo_sdk.handle",
    "NewJob": "corvo_sdk.types",
    "PayloadError": "corvo_sdk.payload",
    "Release": "corvo_sdk.control",
    "Retry": "corvo_sdk.control",
    "Snooze": "corvo_sdk.control",
    "Task": "corvo_sdk.task",
    "Unique": "corvo_sdk.options",
    "Worker": "corvo_sdk.worker.runtime",
    "chain": "corvo_sdk.chains",
    "current_context": "corvo_sdk.context",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
