"""From a line of a scenario to a command of the machine."""

import shlex
from collections.abc import Callable
from typing import Any

from corvo.model import command as c
from corvo.model import job as j
from corvo.model import retry as r
from corvo.model.queue import Rate, SettingsPatch
from tests.factories import make_job_id, make_other_id

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_duration(text: str) -> int:
    """Read `250ms`, `5s`, `10m`, `1h`, `7d`."""
    digits = text.rstrip("mshd")
    return int(digits) * UNITS_MS[text[len(digits) :]]


def parse_rate(text: str) -> Rate | None:
    """Read `2/10s` or, with a burst, `2/10s/5`."""
    if text == "none":
        return None
    rate, period, *burst = text.split("/")
    return Rate(int(rate), parse_duration(period), int(burst[0]) if burst else int(rate))


class Line:
    """Words and `name=value` options of one command."""

    def __init__(self, text: str, now_ms: int) -> None:
        words = shlex.split(text)
        self.verb = words[0]
        self.words = [word for word in words[1:] if not is_option(word)]
        self.options = dict(word.split("=", 1) for word in words[1:] if is_option(word))
        self.now_ms = now_ms

    def take(self, name: str, default: str = "") -> str:
        """Take an option out; what is left at the end is a spelling mistake."""
        return self.options.pop(name, default)

    def take_ms(self, name: str, default: int = 0) -> int:
        """Take a duration out."""
        text = self.take(name)
        return parse_duration(text) if text else default

    def take_bytes(self, name: str) -> bytes | None:
        """Take a document out."""
        text = self.take(name)
        return text.encode() if text else None

    def has(self, word: str) -> bool:
        """Whether a bare word is among the arguments."""
        return word in self.words


def is_option(word: str) -> bool:
    """Whether a word is `name=value`."""
    name, equals, _ = word.partition("=")
    return bool(equals) and name.replace("_", "").isalpha()


class Reader:
    """Knows the names a scenario gives to jobs, batches and tokens."""

    def __init__(self) -> None:
        self.names: dict[bytes, str] = {}
        self.ids: dict[str, bytes] = {}
        self.tokens: dict[str, int] = {}
        self.others = 0

    def job(self, name: str) -> bytes:
        """Return the id of a job by its number or by the name of a derived one."""
        if name not in self.ids:
            self.bind(name, make_job_id(int(name)))
        return self.ids[name]

    def bind(self, name: str, job_id: bytes) -> None:
        """Give a job a name."""
        self.ids[name], self.names[job_id] = job_id, name

    def name(self, job_id: bytes) -> str:
        """Return the name of a job; one the machine made is d1, d2 and so on."""
        if job_id not in self.names:
            derived = sum(name.startswith("d") for name in self.ids)
            self.bind(f"d{derived + 1}", job_id)
        return self.names[job_id]

    def token(self, line: Line) -> int:
        """Return the lease token a command carries."""
        text = line.take("token")
        if not text:
            return 0
        return self.tokens[text] if text in self.tokens else int(text)

    def other(self, name: str) -> bytes:
        """Return the id of a batch, chain or operation."""
        if name not in self.ids:
            self.others += 1
            self.bind(name, make_other_id(self.others))
        return self.ids[name]

    # --- producing ----------------------------------------------------------------------------

    def spec(self, line: Line, name: str, queue: str) -> j.Spec:
        """Build a job from the options of its line."""
        payload = line.options.get("payload", '{"n":%s}' % name)
        scheduled_ms = (
            line.now_ms + parse_duration(line.options["in"]) if "in" in line.options else 0
        )
        limits = line.options.get("limits", "")
        depends = line.options.get("depends", "")
        spec = j.Spec(
            id=self.job(name),
            ns=0,
            queue=queue,
            payload=payload.encode(),
            tier=j.TIER_NAMES.index(line.options.get("priority", "normal")),
            retry=self.retry(line),
            unique=self.unique(line),
            scheduled_ms=scheduled_ms,
            expire_after_ms=parse_duration(line.options.get("expire", "0s")),
            group=line.options.get("group", ""),
            limit_key=line.options.get("key", ""),
            limits=tuple(limits.split(",")) if limits else (),
            cost=int(line.options.get("cost", "1")),
            checkpoint=line.options["checkpoint"].encode()
            if "checkpoint" in line.options
            else None,
            depends_on=tuple(self.job(x) for x in depends.split(",")) if depends else (),
            on_dependency_failure=j.DEPENDENCY_POLICY_NAMES.index(
                line.options.get("on_dependency_failure", "fail")
            ),
            chain=self.chain(line, queue),
            hold=self.hold(line),
        )
        return spec

    def retry(self, line: Line) -> r.RetryPolicy:
        """Read `attempts`, `backoff`, `base`."""
        return r.RetryPolicy(
            max_attempts=int(line.options.get("attempts", "3")),
            backoff=r.BACKOFF_NAMES.index(line.options.get("backoff", "exponential")),
            base_ms=parse_duration(line.options.get("base", "5s")),
        )

    def unique(self, line: Line) -> j.Unique | None:
        """Read `unique=key:mode:period`."""
        if "unique" not in line.options:
            return None
        key, *rest = line.options["unique"].split(":")
        mode = j.UNIQUE_MODE_NAMES.index(rest[0]) if rest else 0
        return j.Unique(key, parse_duration(rest[1]) if len(rest) > 1 else 3_600_000, mode)

    def hold(self, line: Line) -> j.Hold | None:
        """Read `hold=reason:timeout:action`."""
        if "hold" not in line.options:
            return None
        reason, *rest = line.options["hold"].split(":")
        timeout_ms = parse_duration(rest[0]) if rest else 0
        action = j.HOLD_ACTION_NAMES.index(rest[1]) if len(rest) > 1 else 0
        return j.Hold(reason, timeout_ms, action)

    def chain(self, line: Line, queue: str) -> j.Chain | None:
        """Read `chain=mail,video` with `step_payload`, `on_failure` and `on_exit`."""
        if "chain" not in line.options:
            return None
        names = line.options["chain"].split(",")
        assert names[0] == queue
        payload = line.options.get("step_payload", "{}").encode()
        steps = tuple(j.Step(name, payload) for name in names)
        handlers = [line.options.get(name) for name in ("on_failure", "on_exit")]
        on_failure, on_exit = (None if name is None else j.Step(name) for name in handlers)
        self.others += 1
        return j.Chain(make_other_id(self.others), steps, on_failure, on_exit)

    def idempotency(self, line: Line) -> c.Idempotency | None:
        """Read `idempotency=key:fingerprint`."""
        text = line.options.get("idempotency")
        if text is None:
            return None
        key, fingerprint = text.split(":")
        return c.Idempotency(key, fingerprint.encode())

    def enqueue(self, line: Line) -> c.Command:
        """`enqueue 1 mail priority=high`."""
        name, queue = line.words
        command = c.EnqueueJob(self.spec(line, name, queue), self.idempotency(line))
        line.options.clear()
        return command

    def batch(self, line: Line) -> c.Command:
        """`batch b1 1:mail 2:mail callback=done`; `batch - …` is a plain enqueue of several."""
        name, *jobs = line.words
        callback, payload = line.take("callback"), line.take_bytes("callback_payload")
        specs = [self.spec(line, *job.split(":")) for job in jobs]
        batch = None if name == "-" else j.BatchSpec(self.other(name), callback, payload)
        command = c.EnqueueBatch(specs, batch, self.idempotency(line))
        line.options.clear()
        return command

    # --- working and operating ----------------------------------------------------------------

    def command(self, text: str, now_ms: int) -> c.Command:
        """Turn a line into a command."""
        line = Line(text, now_ms)
        command = VERBS[line.verb](self, line)
        assert not line.options, f"unknown options {sorted(line.options)} in {text!r}"
        return command


def parse_settings(line: Line) -> SettingsPatch:
    """Read every option of `set`."""
    patch: dict[str, Any] = {}
    for name in list(line.options):
        text = line.take(name)
        if name.endswith("rate"):
            patch[name] = parse_rate(text)
        elif text == "none":
            patch[name] = None
        elif name.endswith("_ms"):
            patch[name] = parse_duration(text)
        elif name == "weights":
            pairs = (pair.split(":") for pair in text.split(","))
            patch[name] = {group: int(weight) for group, weight in pairs}
        else:
            patch[name] = text == "true" if name == "require_token" else int(text)
    return SettingsPatch(**patch)


def fetch(reader: Reader, line: Line) -> c.Command:
    """`fetch mail video worker=w1 count=2 lease=5s`."""
    return c.FetchJobs(
        0,
        line.words,
        line.take("worker", "w1"),
        count=int(line.take("count", "1")),
        lease_ms=line.take_ms("lease"),
        rotation=int(line.take("rotation", "0")),
    )


def fail(reader: Reader, line: Line) -> c.Command:
    """`fail 1 token=t1 error=boom after=5s`; `fail 1 final` does not retry."""
    after = line.take("after")
    return c.FailJob(
        0,
        reader.job(line.words[0]),
        reader.token(line),
        line.take("error", "boom"),
        is_retryable=not line.has("final"),
        retry_after_ms=parse_duration(after) if after else None,
    )


def ack(reader: Reader, line: Line) -> c.Command:
    """`ack 1 token=t1 result={}`; `ack 1 exit` leaves the chain."""
    job_id, token, result = reader.job(line.words[0]), reader.token(line), line.take_bytes("result")
    checkpoint = line.take_bytes("checkpoint")
    return c.AckJob(0, job_id, token, result, checkpoint, is_exit=line.has("exit"))


def hold(reader: Reader, line: Line) -> c.Command:
    """`hold 1 reason=look timeout=5s action=cancel`."""
    return c.HoldJob(
        0,
        reader.job(line.words[0]),
        reader.token(line),
        line.take("reason"),
        line.take_ms("timeout"),
        j.HOLD_ACTION_NAMES.index(line.take("action", "none")),
    )


def move(reader: Reader, line: Line) -> c.Command:
    """`move 1 video`; `reset` forgets attempts, `normal` forgets the priority."""
    job_id, queue = reader.job(line.words[0]), line.words[1]
    return c.MoveJob(0, job_id, queue, line.has("reset"), not line.has("normal"))


def limit(reader: Reader, line: Line) -> c.Command:
    """`limit api max=2 rate=5/1s`."""
    rate = parse_rate(line.take("rate", "none"))
    return c.SetLimit(0, line.words[0], int(line.take("max", "0")), rate)


def beat(reader: Reader, line: Line) -> c.Command:
    """`beat 1 token=t1 progress=50 checkpoint={}`."""
    job_id, token = reader.job(line.words[0]), reader.token(line)
    return c.HeartbeatJob(
        0, job_id, token, line.take_bytes("progress"), line.take_bytes("checkpoint")
    )


VERBS: dict[str, Callable[[Reader, Line], c.Command]] = {
    "enqueue": Reader.enqueue,
    "batch": Reader.batch,
    "fetch": fetch,
    "ack": ack,
    "fail": fail,
    "release": lambda s, x: c.ReleaseJob(
        0, s.job(x.words[0]), s.token(x), x.take_bytes("checkpoint")
    ),
    "snooze": lambda s, x: c.SnoozeJob(0, s.job(x.words[0]), s.token(x), x.take_ms("for")),
    "beat": beat,
    "cancel": lambda s, x: c.CancelJob(0, s.job(x.words[0])),
    "retry": lambda s, x: c.RetryJob(0, s.job(x.words[0])),
    "requeue": lambda s, x: c.RequeueJob(0, s.job(x.words[0])),
    "move": move,
    "delete": lambda s, x: c.DeleteJob(0, s.job(x.words[0])),
    "priority": lambda s, x: c.ChangePriority(0, s.job(x.words[0]), j.TIER_NAMES.index(x.words[1])),
    "hold": hold,
    "approve": lambda s, x: c.ApproveJob(0, s.job(x.words[0]), x.take("by")),
    "reject": lambda s, x: c.RejectJob(0, s.job(x.words[0]), x.take("by"), x.take("reason")),
    "pause": lambda s, x: c.PauseQueue(0, x.words[0]),
    "resume": lambda s, x: c.ResumeQueue(0, x.words[0]),
    "drain": lambda s, x: c.DrainQueue(0, x.words[0]),
    "clear": lambda s, x: c.ClearQueue(0, x.words[0], s.other(f"clear-{x.words[0]}")),
    "delete-queue": lambda s, x: c.DeleteQueue(0, x.words[0], s.other(f"drop-{x.words[0]}")),
    "set": lambda s, x: c.ConfigureQueue(0, x.words[0], parse_settings(x), s.other("set")),
    "limit": limit,
    "drop-limit": lambda s, x: c.DeleteLimit(0, x.words[0]),
    "promote": lambda s, x: c.PromoteJobs(int(x.take("limit", "500"))),
    "reclaim": lambda s, x: c.ReclaimLeases(int(x.take("limit", "500"))),
    "deadlines": lambda s, x: c.FireDeadlines(int(x.take("limit", "500"))),
    "purge": lambda s, x: c.PurgeSettled(x.take_ms("retention", 604_800_000)),
    "trim": lambda s, x: c.TrimEvents(keep_ms=x.take_ms("keep", 604_800_000)),
    "step": lambda s, x: c.StepOperations(int(x.take("limit", "500"))),
}
