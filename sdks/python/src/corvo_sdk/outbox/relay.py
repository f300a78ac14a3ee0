"""Carries rows of an outbox to the server; any number of relays may run on one table.

One step: take over a parcel whose relay is gone, or else bind the next waiting rows into a new one,
and commit; send the parcel under its key; delete its rows.

                     bind, commit          send               delete, commit
    waiting rows ───────────────▶ parcel ─────────▶ jobs ─────────────────────▶ gone
                                    ▲                │
                                    └── a relay that dies anywhere here leaves the parcel as it is:
                                        the next one sends the same bytes under the same key

Invariant: the rows of a parcel never change once the stamp is committed, but for one case: the
server refused the whole parcel, so none of it was enqueued, and it is split into parcels of one,
each with a key of its own. Only a row that is refused alone is set aside.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from corvo_sdk.errors import CorvoError, PayloadTooLargeError
from corvo_sdk.outbox.drivers import database_errors
from corvo_sdk.outbox.parcels import Parcel, Parcels
from corvo_sdk.outbox.table import SqlOutbox

if TYPE_CHECKING:
    from corvo_sdk.client import Client

PARCEL_ROWS_DEFAULT: Final = 500
PARCEL_ROWS_MAX: Final = 5_000  # what the server takes in one call
LEASE_S_DEFAULT: Final = 60.0
POLL_S_DEFAULT: Final = 0.2
TROUBLE_S_FIRST: Final = 0.2
TROUBLE_S_MAX: Final = 10.0
_PATH: Final = "/api/v1/enqueue/batch"

# The server looked at the rows and said no; anything else is no fault of theirs.
_REFUSALS: Final = frozenset(
    "VALIDATION_ERROR PARSE_ERROR NOT_SUPPORTED PAYLOAD_TOO_LARGE DEPENDENCY_NOT_FOUND"
    " IDEMPOTENCY_MISMATCH ALREADY_EXISTS TOO_MANY_QUEUES".split()
)

_log: Final = logging.getLogger("corvo.outbox")


class RelayError(Exception):
    """The server or the database is in trouble; nothing is lost, a later step goes on."""


class Step(Struct, frozen=True):
    """What one step did, and to how many rows."""

    outcome: Literal["idle", "sent", "split", "refused"]
    rows: int = 0


class Relay:
    """Reads an outbox in order and enqueues what it holds.

    `connect` gives a connection of sqlite3, psycopg, SQLAlchemy (`engine.connect`) or Django that
    nobody else uses; it is asked again after trouble with the database. One relay keeps the order
    of rows, several share the work and do not. `run` blocks until `stop`; `start` does it in a
    thread. `lease_s` is how long a parcel of a relay that died waits for another one.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        client: "Client",
        *,
        outbox: SqlOutbox | None = None,
        parcel_rows: int = PARCEL_ROWS_DEFAULT,
        lease_s: float = LEASE_S_DEFAULT,
        poll_s: float = POLL_S_DEFAULT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not 1 <= parcel_rows <= PARCEL_ROWS_MAX:
            raise ValueError(
                f"parcel_rows is {parcel_rows}; it lies between 1 and {PARCEL_ROWS_MAX}"
            )
        if lease_s <= 0 or poll_s <= 0:
            raise ValueError("lease_s and poll_s are positive")
        self._connect = connect
        self._client = client
        self._outbox = outbox or SqlOutbox()
        self._parcel_rows = parcel_rows
        self._lease_s = lease_s
        self._poll_s = poll_s
        self._clock = clock
        self._parcels: Parcels | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._counts = {"sent": 0, "split": 0, "refused": 0, "troubles": 0}

    # --- life -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Run in a thread."""
        if self._thread is not None:
            raise RuntimeError("the relay runs already")
        self._stopping.clear()
        self._thread = threading.Thread(target=self.run, name="corvo-outbox", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End after the step that is under way; a second call does nothing."""
        self._stopping.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def close(self) -> None:
        """Close the connection; for those who call `run_once` themselves."""
        parcels, self._parcels = self._parcels, None
        if parcels is not None:
            parcels.close()

    def statistics(self) -> dict[str, int]:
        """Rows sent, split off and refused, and troubles, since the relay was made."""
        return dict(self._counts)

    def run(self) -> None:
        """Relay until stopped; trouble with server or database is reported and waited out."""
        wait_s = TROUBLE_S_FIRST
        try:
            while not self._stopping.is_set():
                try:
                    step = self.run_once()
                except RelayError as error:
                    _log.warning("the outbox tries again in %.1f s: %s", wait_s, error)
                    self._stopping.wait(wait_s)
                    wait_s = min(wait_s * 2, TROUBLE_S_MAX)
                    continue
                wait_s = TROUBLE_S_FIRST
                if step.outcome == "idle":
                    self._stopping.wait(self._poll_s)
        finally:
            self.close()

    # --- one step -------------------------------------------------------------------------------

    def run_once(self) -> Step:
        """Send one parcel; RelayError when server or database are in trouble."""
        try:
            if self._parcels is None:
                self._parcels = Parcels(self._connect(), self._outbox)
            step = self._step(self._parcels)
        except database_errors() as error:
            self._counts["troubles"] += 1
            self._forget()
            raise RelayError(f"the database says: {error}") from error
        except CorvoError as error:
            self._counts["troubles"] += 1
            raise RelayError(f"the server says: {error}") from error
        if step.outcome != "idle":
            self._counts[step.outcome] += step.rows
        return step

    def _step(self, parcels: Parcels) -> Step:
        now_s = self._clock()
        parcel = parcels.claim(
            now_ms=round(now_s * 1_000),
            until_ms=round((now_s + self._lease_s) * 1_000),
            rows_max=self._parcel_rows,
        )
        if parcel is None:
            return Step("idle")
        try:
            self._send(parcel)
        except CorvoError as error:
            return self._refused(parcels, parcel, error)
        parcels.delete(parcel)
        return Step("sent", len(parcel.bodies))

    def _send(self, parcel: Parcel) -> None:
        if not parcel.bodies:
            return  # somebody else has sent and deleted it since it was claimed
        self._client.request(
            "POST",
            _PATH,
            query={"strict": True},
            body=parcel.body(),
            headers={"idempotency-key": f"outbox:{parcel.key}"},
        )

    def _refused(self, parcels: Parcels, parcel: Parcel, error: CorvoError) -> Step:
        if not isinstance(error, PayloadTooLargeError) and error.code not in _REFUSALS:
            parcels.give_back(parcel)
            raise error
        if len(parcel.bodies) > 1:
            # Some row is wrong and the answer may not say which; alone, each speaks for itself.
            parcels.split(parcel)
            return Step("split", len(parcel.bodies))
        parcels.refuse(parcel, str(error), round(self._clock() * 1_000))
        _log.error("the server refused a row of the outbox, it is set aside: %s", error)
        return Step("refused", 1)

    def _forget(self) -> None:
        # A connection after trouble is in no state to be relied on, and perhaps not to be closed.
        try:
            self.close()
        except database_errors() as error:
            _log.debug("closing the connection failed as well: %s", error)
