"""Webhooks in the machine: against an obvious model, in any grouping, and with bounds."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.keys.codec import encode_entry
from corvo.machine import MACHINE_VERSION, Machine, SweepPolicy, digest
from corvo.machine.audit import audit
from corvo.model import command as c
from corvo.model import event as e
from corvo.model import limits
from corvo.model import outcome as o
from corvo.model.command import Command, Entry
from corvo.model.webhook import DeadLetter, event_types
from corvo.storage.memory import MemoryStore
from tests.factories import START_MS, make_enqueue, make_other_id
from tests.model.profiles import SETTINGS
from tests.model.test_grouping import compare
from tests.model.webhooks import URL, WEBHOOK_IDS, draw_webhook_command


class Bench:
    """A machine fed by hand."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.machine = Machine(self.store)
        self.now_ms = START_MS
        self.log: list[bytes] = []

    def do(self, *commands: Command, advance_ms: int = 0) -> list[o.Outcome]:
        """Apply one entry; nothing may fail inside, and every invariant holds afterwards."""
        self.now_ms += advance_ms
        entry = Entry(MACHINE_VERSION, self.now_ms, list(commands))
        raw = encode_entry(entry)
        self.log.append(raw)
        applied = self.machine.apply(len(self.log), raw, entry)
        assert applied.faults == []
        assert audit(self.store) == []
        return applied.outcomes


class Model:
    """What is expected of webhooks, in dictionaries."""

    def __init__(self) -> None:
        self.hooks: dict[bytes, dict[str, object]] = {}

    def do(self, command: Command) -> None:
        """Follow one command."""
        assert isinstance(
            command, c.CreateWebhook | c.ReplaceWebhook | c.DeleteWebhook | c.RecordDeliveries
        )
        known = self.hooks.get(command.id)
        match command:
            case c.CreateWebhook() if known is None:
                self.hooks[command.id] = {
                    "secret": command.secret,
                    "enabled": command.is_enabled,
                    "delivered": 0,
                    "suspended": 0,
                    "letters": {},
                }
            case c.ReplaceWebhook() if known is not None:
                if command.secret is not None:
                    known["secret"] = command.secret
                known["enabled"] = command.is_enabled
                known["suspended"] = 0
            case c.DeleteWebhook():
                self.hooks.pop(command.id, None)
            case c.RecordDeliveries() if known is not None:
                assert isinstance(known["delivered"], int)
                known["delivered"] += command.delivered
                known["suspended"] = command.suspended_ms
                letters = known["letters"]
                assert isinstance(letters, dict)
                letters.update((letter.seq, letter) for letter in command.letters)
                for seq in command.revived:
                    letters.pop(seq, None)
            case _:
                return

    def seen(self, machine: Machine) -> dict[bytes, dict[str, object]]:
        """The same picture, read from a machine."""
        return {
            view.webhook.id: {
                "secret": view.webhook.secret,
                "enabled": view.webhook.is_enabled,
                "delivered": view.progress.delivered,
                "suspended": view.progress.suspended_ms,
                "letters": {
                    letter.seq: letter for letter in machine.dead_letters(0, view.webhook.id, 1_000)
                },
            }
            for view in machine.webhooks(0)
        }


@given(chance=st.randoms(use_true_random=False))
@SETTINGS
def test_webhooks_follow_the_obvious_model(chance: Random):
    """Whatever is asked in whatever order, the records are what a dictionary would hold."""
    bench, model = Bench(), Model()
    for number in range(12):
        commands = [draw_webhook_command(chance) for _ in range(chance.choice((1, 2, 5)))]
        bench.do(*commands, make_enqueue(number))
        for command in commands:
            model.do(command)
        assert model.hooks == model.seen(bench.machine)


@given(chance=st.randoms(use_true_random=False), count=st.integers(2, 12))
@SETTINGS
def test_grouping_of_webhook_commands_changes_nothing(chance: Random, count: int):
    """One commit for all commands or one for each: the same bytes, with jobs in between."""
    commands: list[Command] = []
    for number in range(count):
        commands += [draw_webhook_command(chance), make_enqueue(number)]
    entry = Entry(MACHINE_VERSION, START_MS, commands)
    raw = encode_entry(entry)
    grouped, stepwise = MemoryStore(), MemoryStore()
    one = Machine(grouped).apply(1, raw, entry)
    two = Machine(stepwise).apply_stepwise(1, raw, entry)
    assert one.outcomes == two
    compare(grouped, stepwise)
    assert audit(grouped) == []


def test_replay_gives_the_same_bytes():
    """A log with webhooks in it is as deterministic as any other."""
    bench, chance = Bench(), Random(7)
    for number in range(40):
        bench.do(draw_webhook_command(chance), make_enqueue(number), advance_ms=10)
    store = MemoryStore()
    machine = Machine(store)
    from corvo.keys.codec import decode_entry  # noqa: PLC0415

    for index, raw in enumerate(bench.log, start=1):
        machine.apply(index, raw, decode_entry(raw))
    assert digest(bench.store) == digest(store)


def create(number: int = 0, **fields: object) -> c.CreateWebhook:
    """The command that creates a webhook."""
    return c.CreateWebhook(0, WEBHOOK_IDS[number], URL, ("*",), **fields)  # type: ignore[arg-type]


def test_webhook_starts_after_its_own_creation():
    """Neither what happened before nor its own creation is delivered, what follows is."""
    bench = Bench()
    bench.do(make_enqueue(1))
    bench.do(make_enqueue(2), create(), make_enqueue(3))
    progress = bench.machine.webhooks(0)[0].progress
    following = [
        block.events[position].type
        for _, block in bench.machine.events(progress.index, 10)
        for position in range(len(block.events))
        if block.first_seq + position > progress.seq
    ]
    assert following == [e.ENQUEUED]


def test_webhook_switched_on_again_starts_from_now():
    """What happened while it was off is not delivered, and reports from before are void."""
    bench = Bench()
    bench.do(create())
    old = bench.machine.webhooks(0)[0].progress
    bench.do(c.ReplaceWebhook(0, WEBHOOK_IDS[0], URL, ("*",), is_enabled=False))
    bench.do(make_enqueue(1))
    bench.do(c.ReplaceWebhook(0, WEBHOOK_IDS[0], URL, ("*",)))
    seq = bench.machine.seq
    bench.do(c.RecordDeliveries(0, WEBHOOK_IDS[0], old.epoch, 1, seq + 5, [seq + 9], 3))
    progress = bench.machine.webhooks(0)[0].progress
    assert (progress.seq, progress.done, progress.delivered) == (seq, [], 3)


def test_cursor_never_goes_back():
    """A report that comes late does not undo a later one."""
    bench = Bench()
    bench.do(create(), make_enqueue(1), make_enqueue(2), make_enqueue(3))
    epoch, seq = bench.machine.webhooks(0)[0].progress.epoch, bench.machine.seq
    bench.do(c.RecordDeliveries(0, WEBHOOK_IDS[0], epoch, 1, seq, []))
    bench.do(c.RecordDeliveries(0, WEBHOOK_IDS[0], epoch, 0, seq - 1, [seq]))
    progress = bench.machine.webhooks(0)[0].progress
    assert (progress.index, progress.seq, progress.done) == (1, seq, [])


def test_dead_letters_are_bounded_and_the_oldest_goes_first():
    """A webhook that fails for ever does not fill the disk."""
    bench = Bench()
    bench.do(create())
    event = e.Event(e.DEAD, b"", "mail")
    letters = [DeadLetter(n, 1, event, 1, 500, "no", 2) for n in range(1, 1_011)]
    for start in range(0, len(letters), 200):
        part = tuple(letters[start : start + 200])
        bench.do(c.RecordDeliveries(0, WEBHOOK_IDS[0], 0, 0, 0, [], letters=part))
    kept = bench.machine.dead_letters(0, WEBHOOK_IDS[0], 5_000)
    assert [letter.seq for letter in kept] == list(range(11, 1_011))
    bench.do(c.DeleteWebhook(0, WEBHOOK_IDS[0]))
    assert bench.machine.dead_letters(0, WEBHOOK_IDS[0], 5_000) == []


def test_number_of_webhooks_is_bounded():
    """Each webhook costs a reader of the feed, so there is a limit and it is an answer."""
    bench = Bench()
    made = [
        c.CreateWebhook(0, make_other_id(n), URL, ("*",)) for n in range(limits.WEBHOOKS_MAX + 1)
    ]
    answers = bench.do(*made)
    assert answers[:-1] == [o.WebhookChanged("created")] * limits.WEBHOOKS_MAX
    assert isinstance(answers[-1], o.Rejected)
    assert answers[-1].code == o.TOO_MANY_WEBHOOKS


def test_report_says_when_an_endpoint_falls_ill_and_recovers():
    """Only the change is an event: a report by itself is silent, or it would never end."""
    bench = Bench()
    bench.do(create())
    kinds: list[list[int]] = []
    for suspended_ms in (0, 50, 60, 0, 0):
        before = bench.machine.index
        report = c.RecordDeliveries(
            0, WEBHOOK_IDS[0], 0, 0, 0, [], delivered=1, suspended_ms=suspended_ms
        )
        bench.do(report)
        blocks = bench.machine.events(before, 10)
        kinds.append([event.type for _, block in blocks for event in block.events])
    assert kinds == [[], [e.WEBHOOK_SUSPENDED], [], [e.WEBHOOK_RESUMED], []]


def test_events_a_consumer_needs_outlive_their_retention_up_to_a_cap():
    """Trimming stops at the cursor of a consumer, and goes on when it lags four times too far."""
    bench = Bench()
    for number in range(8):
        bench.do(make_enqueue(number), advance_ms=1_000)
    policy = SweepPolicy(events_keep_ms=2_000, events_keep_count=100)
    held = SweepPolicy(events_keep_ms=2_000, events_keep_count=100, events_keep_from=3)
    bench.now_ms += 1_000
    assert c.TrimEvents(2_000, 100) in bench.machine.due_upkeep(bench.now_ms, policy)
    (trim,) = bench.machine.due_upkeep(bench.now_ms, held)
    bench.do(trim)
    assert bench.machine.event_floor == 3
    # Nothing can go now, so nothing is proposed: an idle server writes nothing.
    assert bench.machine.due_upkeep(bench.now_ms, held) == []
    bench.now_ms += 4_500
    (trim,) = bench.machine.due_upkeep(bench.now_ms, held)
    bench.do(trim)
    assert bench.machine.event_floor > 3


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*", set(e.EVENT_NAMES)),
        ("job.*", {name for name in e.EVENT_NAMES if "." not in name}),
        ("completed", {"completed"}),
        ("job.completed", {"completed"}),
        ("queue.*", {name for name in e.EVENT_NAMES if name.startswith("queue.")}),
        ("queue.paused", {"queue.paused"}),
        ("queue", set()),
        ("nothing.*", set()),
        ("", set()),
        ("com*", set()),
    ],
)
def test_pattern_names_events(pattern: str, names: set[str]):
    """A pattern is everything, one kind, or one event; anything else names none."""
    assert names == {e.EVENT_NAMES[number] for number in event_types(pattern)}
