"""The rules of repeating, without sockets: all paths through the state machine are bounded."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo_sdk.errors import ConnectionFailedError, DeadlineExceededError
from corvo_sdk.protocol.call import Repeat, Reply
from corvo_sdk.protocol.exchange import (
    Exchange,
    Failed,
    Finished,
    Policy,
    Refresh,
    Send,
    Servers,
    Step,
    Wait,
)

URLS = ("http://a", "http://b", "http://c")
OK = Reply(200, {}, b"{}")
BUSY = Reply(429, {}, b'{"error":"","code":"OVERLOADED","retry_after_ms":500}')
DRAINING = Reply(503, {}, b'{"error":"","code":"DRAINING","retry_after_ms":5000}')
UNKNOWN = Reply(503, {}, b"")
REFUSED = Reply(401, {}, b'{"error":"","code":"UNAUTHORIZED"}')
UNSENT = ConnectionFailedError("x", was_sent=False)
SENT = ConnectionFailedError("x", was_sent=True)
LATE = DeadlineExceededError("x", was_sent=True)
HAPPENINGS = st.sampled_from([OK, BUSY, DRAINING, UNKNOWN, REFUSED, UNSENT, SENT, LATE])


class Run:
    """Plays a script of happenings against an exchange, on a clock of its own."""

    def __init__(
        self, script: list[Any], *, urls: int = 1, tries_s: float = 0.0, **options: Any
    ) -> None:
        self.now_s = 1_000.0
        self.servers = options.pop("servers", None) or Servers(URLS[:urls])
        policy = options.pop("policy", Policy())
        options = {"repeat": Repeat.ALWAYS, "chance": lambda: 0.5} | options
        self.exchange = Exchange(self.servers, policy, now_s=self.now_s, **options)
        self.script = list(script)
        self.tries_s = tries_s
        self.sent: list[Send] = []
        self.waits: list[float] = []
        self.refreshes = 0

    def play(self) -> Finished | Failed:
        step: Step = self.exchange.start(self.now_s)
        while True:
            match step:
                case Send():
                    self.sent.append(step)
                    self.now_s += min(self.tries_s, step.timeout_s)
                    step = self._happen(self.script.pop(0) if self.script else OK)
                case Wait():
                    self.waits.append(step.seconds)
                    self.now_s += step.seconds
                    step = self.exchange.on_waited(self.now_s)
                case Refresh():
                    self.refreshes += 1
                    step = self.exchange.on_refreshed(self.now_s)
                case Finished() | Failed():
                    return step

    def _happen(self, happening: Any) -> Step:
        if isinstance(happening, Reply):
            return self.exchange.on_reply(happening, self.now_s)
        return self.exchange.on_failure(happening, self.now_s)


@given(
    script=st.lists(HAPPENINGS, max_size=30),
    urls=st.integers(1, 3),
    retries=st.integers(0, 6),
    repeat=st.sampled_from(Repeat),
    tries_s=st.floats(0, 12),
    chance=st.floats(0, 1),
    has_token_provider=st.booleans(),
)
def test_every_call_ends_within_its_bounds(
    *,
    script: list[Any],
    urls: int,
    retries: int,
    repeat: Repeat,
    tries_s: float,
    chance: float,
    has_token_provider: bool,
) -> None:
    """Whatever happens: bounded tries, no try after the deadline, no unsafe repetition."""
    policy = Policy(10, 30, retries)
    run = Run(
        script,
        urls=urls,
        tries_s=tries_s,
        policy=policy,
        repeat=repeat,
        chance=lambda: chance,
        has_token_provider=has_token_provider,
    )
    ended = run.play()
    assert len(run.sent) <= retries + 1 + run.refreshes
    assert run.refreshes <= 1
    assert run.now_s - 1_000 <= 30 + 1e-6
    assert all(0 < step.timeout_s <= 10 for step in run.sent)
    assert all(wait >= 0 for wait in run.waits)
    if repeat is Repeat.UNLESS_SENT:
        unsure = [happening in (SENT, LATE, UNKNOWN) for happening in script[: len(run.sent)]]
        assert not any(unsure[: len(run.sent) - 1]), "nothing follows a try that may have arrived"
    if isinstance(ended, Finished):
        assert run.servers.url(run.servers.index) == run.sent[-1].base_url


def test_servers_are_tried_in_turn_before_anybody_waits() -> None:
    """A whole round costs no time; the wait comes before the second one."""
    run = Run([UNSENT] * 3, urls=3)
    assert isinstance(run.play(), Finished)
    assert [step.base_url for step in run.sent] == ["http://a", "http://b", "http://c", "http://a"]
    assert len(run.waits) == 1


def test_busy_server_is_waited_for() -> None:
    """An overloaded service is not made busier by asking all its servers."""
    run = Run([BUSY], urls=3)
    run.play()
    assert [step.base_url for step in run.sent] == ["http://a", "http://a"]
    assert 0.5 <= run.waits[0] <= 0.625


def test_waits_grow_and_are_spread() -> None:
    """Without a time from the server, each wait may be twice the one before, up to a bound."""
    policy = Policy(10, 1_000, 12)
    least = Run([UNSENT] * 12, policy=policy, chance=lambda: 0.0)
    most = Run([UNSENT] * 12, policy=policy, chance=lambda: 1.0)
    least.play()
    most.play()
    assert most.waits[:4] == pytest.approx([0.1, 0.2, 0.4, 0.8])
    assert most.waits[-1] == 5.0
    assert least.waits == pytest.approx([wait / 2 for wait in most.waits])


def test_server_that_answered_is_asked_first_next_time() -> None:
    """The order is remembered between calls."""
    first = Run([UNSENT], urls=3)
    first.play()
    second = Run([], servers=first.servers)
    second.play()
    assert second.sent[0].base_url == "http://b"


def test_wait_of_the_server_is_added_to_the_time_out() -> None:
    """A long poll of thirty seconds is cut by neither the time-out nor the deadline."""
    run = Run([LATE], policy=Policy(10, 20, 0), wait_s=30.0, tries_s=40)
    run.play()
    assert run.sent[0].timeout_s == 40
