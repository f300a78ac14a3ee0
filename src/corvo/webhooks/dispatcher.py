"""The dispatcher: gives each webhook its turn, makes the tries, reports to the machine."""

import asyncio
from time import monotonic

from corvo.engine import Engine, Watcher
from corvo.errors import OverloadedError
from corvo.model import limits
from corvo.model.ids import DEFAULT_NAMESPACE
from corvo.model.outcome import Rejected
from corvo.model.webhook import DeadLetter, WebhookView
from corvo.runtime.tasks import Supervisor
from corvo.runtime.telemetry import logger
from corvo.webhooks.delivery import (
    DEAD,
    Happening,
    Record,
    Result,
    Sender,
    delivery_id,
    lapse,
    of_line,
)
from corvo.webhooks.endpoint import Endpoint, Pace, Pending
from corvo.webhooks.guard import Guard

MANUAL_MAX = 4  # tests and repeats of one webhook under way at once
STOP_SAVE_S = 5.0
REST_SHARE = 4


class Dispatcher:
    """All webhooks of this server."""

    def __init__(
        self,
        engine: Engine,
        guard: Guard | None = None,
        *,
        pace: Pace | None = None,
        namespaces: tuple[int, ...] = (DEFAULT_NAMESPACE,),
    ) -> None:
        self._engine = engine
        self._clock = engine.clock
        self._pace = pace if pace is not None else Pace()
        self._namespaces = namespaces
        self._sender = Sender(guard if guard is not None else Guard(), engine.clock)
        self._endpoints: dict[tuple[int, bytes], Endpoint] = {}
        self._tasks = Supervisor()
        self._wake = asyncio.Event()
        self._loaded_ms = 0
        self._saved_ms = engine.clock.now_ms()
        self._is_saving = False
        self._is_refused = False  # the last report was; the next one is in no hurry
        self.tries_total = 0
        self._telemetry = logger("webhooks")
        engine.hold_feed(self._needed_index)
        engine.watch(Watcher(self._on_events, lambda: None))

    @property
    def guard(self) -> Guard:
        return self._sender.guard

    # --- life ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until cancelled; a failure goes upward."""
        self.reload()
        while True:
            if self._tasks.failure is not None:
                raise self._tasks.failure
            self._wake.clear()
            began_s = monotonic()
            is_behind = self._turn()
            # Cost: a turn per entry would take the loop from those who write; as it is, whatever
            # happens, webhooks get a fifth of it.
            busy_s = monotonic() - began_s
            await asyncio.sleep(max(self._pace.rest_ms / 1_000, busy_s * REST_SHARE))
            if is_behind:
                continue
            try:
                async with asyncio.timeout(self._pause_ms() / 1_000):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _on_events(self) -> None:
        if self._endpoints:
            self._wake.set()

    def _pause_ms(self) -> int:
        """How long nothing is due, if nothing happens meanwhile."""
        now_ms = self._clock.now_ms()
        pace = self._pace
        until_ms = now_ms + pace.reload_ms
        for endpoint in self._endpoints.values():
            due_ms = endpoint.next_due_ms(now_ms)
            if due_ms is not None:
                until_ms = min(until_ms, due_ms)
            if endpoint.has_news and not self._is_saving:
                is_soon = endpoint.has_delivered or endpoint.is_urgent
                save_ms = pace.save_ms if is_soon else pace.idle_save_ms
                until_ms = min(until_ms, self._saved_ms + save_ms)
        return max(0, until_ms - now_ms)

    async def stop(self) -> None:
        """Give up the tries under way and write down how far each webhook has come."""
        await self._tasks.stop()
        reports = [endpoint.report() for endpoint in self._endpoints.values() if endpoint.has_news]
        self._endpoints.clear()
        if reports:
            try:
                async with asyncio.timeout(STOP_SAVE_S):
                    await self._engine.sweep(list(reports))
            except TimeoutError:
                # Safety: what was sent since the last report is sent again, under the same ids.
                self._telemetry.warning("the progress of webhooks was not saved")

    def poke(self) -> None:
        """Look at the list of webhooks now: somebody has changed it."""
        self._loaded_ms = 0
        self._wake.set()

    # --- a turn -------------------------------------------------------------------------------

    def _turn(self) -> bool:
        """Give everybody a turn; return whether somebody has more to read at once."""
        now_ms = self._clock.now_ms()
        if not self._loaded_ms or now_ms - self._loaded_ms >= self._pace.reload_ms:
            self.reload()
        is_behind = False
        for endpoint in self._endpoints.values():
            is_behind = endpoint.fill(self._engine.feed) or is_behind
            for pending in endpoint.take_due(now_ms):
                self._tasks.start("delivery", self._try(endpoint, pending))
        self._maybe_save(now_ms)
        return is_behind

    def reload(self) -> None:
        """Bring the endpoints in line with the webhooks of the store."""
        self._loaded_ms = self._clock.now_ms()
        views = [view for ns in self._namespaces for view in self._engine.read.webhooks(ns)]
        known = self._endpoints
        self._endpoints = {}
        for view in views:
            webhook = view.webhook
            key = (webhook.ns, webhook.id)
            endpoint = known.get(key)
            if not webhook.is_enabled:
                continue
            if endpoint is None or endpoint.epoch != view.progress.epoch:
                endpoint = self._endpoint(view)
            elif endpoint.webhook.version != webhook.version:
                endpoint.configure(webhook)
            self._endpoints[key] = endpoint

    def _endpoint(self, view: WebhookView) -> Endpoint:
        webhook = view.webhook
        tries = self._engine.read.webhook_tries(webhook.ns, webhook.id)
        return Endpoint(view, self._pace, tries)

    async def _try(self, endpoint: Endpoint, pending: Pending) -> None:
        self.tries_total += 1
        result = await self._sender.send(endpoint.webhook, pending.record)
        was_suspended = endpoint.suspended_ms
        endpoint.finish(pending, result, self._clock.now_ms())
        if endpoint.suspended_ms and not was_suspended:
            self._telemetry.warning(
                "webhook suspended", url=endpoint.webhook.url, error=result.error
            )
        self._wake.set()

    # --- telling the machine ------------------------------------------------------------------

    def _maybe_save(self, now_ms: int) -> None:
        if self._is_saving:
            return
        since_ms = now_ms - self._saved_ms
        endpoints = self._endpoints.values()
        is_due = not self._is_refused and any(endpoint.is_urgent for endpoint in endpoints)
        if not is_due and since_ms >= self._pace.save_ms:
            is_due = any(endpoint.has_delivered or endpoint.is_urgent for endpoint in endpoints)
        if not is_due and since_ms >= self._pace.idle_save_ms:
            is_due = any(endpoint.has_news for endpoint in endpoints)
        if is_due:
            self._saved_ms = now_ms
            self._is_saving = True
            self._tasks.start("save", self._save())

    async def _save(self) -> None:
        told = [endpoint for endpoint in self._endpoints.values() if endpoint.has_news]
        reports = [endpoint.report() for endpoint in told]
        outcomes = await self._engine.sweep(list(reports))
        self._is_refused = False
        for endpoint, report, outcome in zip(told, reports, outcomes, strict=True):
            if isinstance(outcome, Rejected):
                self._is_refused = True
                endpoint.take_back(report)
            else:
                endpoint.saved_index = report.index
        self._is_saving = False
        self._wake.set()

    def _needed_index(self) -> int | None:
        """The last index no webhook needs any more; the feed is kept from there on."""
        return min((endpoint.saved_index for endpoint in self._endpoints.values()), default=None)

    # --- what people ask for ------------------------------------------------------------------

    def log(self, ns: int, webhook_id: bytes) -> list[Record]:
        """The latest deliveries of a webhook, newest first.

        The log of one that is at work is ahead of the stored one by what is not yet reported.
        """
        endpoint = self._endpoints.get((ns, webhook_id))
        if endpoint is not None:
            return list(reversed(endpoint.log.values()))
        found: dict[bytes, Record] = {}
        for line in self._engine.read.webhook_tries(ns, webhook_id):
            found.setdefault(line.delivery, of_line(line))
        for record in found.values():
            lapse(record)
        return list(found.values())

    def waiting(self, ns: int, webhook_id: bytes) -> int:
        """How many deliveries of a webhook are under way or wait for another try."""
        endpoint = self._endpoints.get((ns, webhook_id))
        return endpoint.outstanding_count if endpoint is not None else 0

    async def test(self, view: WebhookView) -> Record:
        """Send a test event now, whatever the state of the webhook."""
        return await self._send_by_hand(view, Record(self._engine.new_id(), None))

    async def redeliver(self, view: WebhookView, identifier: bytes) -> Record | None:
        """Send a delivery of the log or of the dead letters again; None when it is in neither."""
        record = self._find(view, identifier)
        return await self._send_by_hand(view, record) if record is not None else None

    def _find(self, view: WebhookView, identifier: bytes) -> Record | None:
        webhook = view.webhook
        for record in self.log(webhook.ns, webhook.id):
            if record.id == identifier:
                return record
        letters = self._engine.read.dead_letters(webhook.ns, webhook.id, limits.WEBHOOK_LETTERS_MAX)
        for letter in letters:
            if delivery_id(webhook.id, letter.seq) == identifier:
                return of_letter(webhook.id, letter)
        return None

    async def _send_by_hand(self, view: WebhookView, record: Record) -> Record:
        webhook = view.webhook
        endpoint = self._endpoints.get((webhook.ns, webhook.id))
        if endpoint is None:
            # A webhook that is switched off has no window; its report is made from what is stored.
            endpoint = self._endpoint(view)
        if endpoint.manual_count >= MANUAL_MAX:
            message = f"{MANUAL_MAX} deliveries of this webhook are under way by hand already"
            raise OverloadedError(message, retry_after_ms=webhook.timeout_ms)
        endpoint.manual_count += 1
        try:
            result = await self._sender.send(webhook, record)
        finally:
            endpoint.manual_count -= 1
        now_ms = self._clock.now_ms()
        if record.happening is None:
            endpoint.finish_test(record, result, now_ms)
        else:
            endpoint.finish_by_hand(record, result, now_ms)
        if self._endpoints.get((webhook.ns, webhook.id)) is endpoint:
            self._wake.set()
        else:
            await self._engine.sweep([endpoint.report()])
        return record

    def statistics(self) -> dict[str, int]:
        endpoints = self._endpoints.values()
        return {
            "webhooks_count": len(self._endpoints),
            "outstanding_count": sum(endpoint.outstanding_count for endpoint in endpoints),
            "running_count": sum(endpoint.running_count for endpoint in endpoints),
            "tries_total": self.tries_total,
        }


def of_letter(webhook_id: bytes, letter: DeadLetter) -> Record:
    """A dead letter as the delivery log shows it."""
    return Record(
        delivery_id(webhook_id, letter.seq),
        Happening(letter.seq, letter.at_ms, letter.event),
        letter.attempts,
        DEAD,
        Result(False, letter.status, letter.error, 0),
        letter.failed_ms,
    )
