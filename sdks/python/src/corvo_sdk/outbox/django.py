"""The outbox in a Django project: in the transaction of `atomic()`, without a model.

The table is created by a migration (`create_table`), rows are put in with `add`, and the relay runs
in a management command or a thread with `connect`. `enqueue_on_commit` needs no table: it enqueues
right after the commit, and loses the job if the process dies between the two.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from corvo_sdk.outbox.statements import ddl
from corvo_sdk.outbox.table import SqlOutbox
from corvo_sdk.task import TaskCall

_ALIAS_DEFAULT: Final = "default"


def add(
    call: TaskCall[Any], *, using: str = _ALIAS_DEFAULT, outbox: SqlOutbox | None = None
) -> None:
    """Put a job into the outbox, in the current transaction of a database."""
    (outbox or SqlOutbox()).add(connect(using), call)


def enqueue_on_commit(call: TaskCall[Any], *, using: str = _ALIAS_DEFAULT) -> None:
    """Enqueue after the current transaction has committed; at once when there is none."""
    import_module("django.db.transaction").on_commit(call.enqueue, using=using)


def connect(using: str = _ALIAS_DEFAULT) -> Any:
    """Give the connection of this thread; what a `Relay` in a thread of its own is made with."""
    return import_module("django.db").connections[using]


def create_table(outbox: SqlOutbox | None = None) -> Any:
    """Make the operation of a migration that creates the table, and drops it on the way back."""
    table = (outbox or SqlOutbox()).table

    def forwards(_apps: Any, schema_editor: Any) -> None:
        for statement in ddl(schema_editor.connection.vendor, table):
            schema_editor.execute(statement)

    def backwards(_apps: Any, schema_editor: Any) -> None:
        schema_editor.execute(f"DROP TABLE IF EXISTS {table}")

    operation: Callable[..., Any] = import_module("django.db.migrations").RunPython
    return operation(forwards, backwards)
