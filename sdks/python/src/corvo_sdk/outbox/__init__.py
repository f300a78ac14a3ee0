"""Enqueue in the transaction that changes the data: a table for jobs, and a relay that sends them.

A service that writes to its database and then enqueues loses the job when it dies in between; the
other way round, it enqueues what is then rolled back. With an outbox the job is a row in the same
transaction, and a `Relay` carries rows to the server once they are committed.

    outbox = SqlOutbox()
    outbox.add(session, send_email.call("a@example.com"))     # in the caller's transaction
    Relay(connect, app.client, outbox=outbox).run()           # a process or a thread of its own

Invariant: a row that was committed becomes exactly one job, however often relays die, as long as
the server remembers the idempotency key (24 hours after a parcel was sent and not deleted). Rows
are bound into parcels by a committed stamp before they are sent; a parcel is sent under its key and
never changes, so sending it again is answered with what the first time did.

Drivers are the caller's: SQLAlchemy, psycopg, sqlite3 and Django are recognised by what is passed
in, and none of them is imported here. PostgreSQL and SQLite are known; other databases are not.

Read first: `statements.py` for the table, `relay.py` for the steps.
"""

from corvo_sdk.outbox.relay import Relay as Relay
from corvo_sdk.outbox.relay import Step as Step
from corvo_sdk.outbox.statements import ddl as ddl
from corvo_sdk.outbox.table import OutboxError as OutboxError
from corvo_sdk.outbox.table import SqlOutbox as SqlOutbox
