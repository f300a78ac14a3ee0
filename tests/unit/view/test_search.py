# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The stub of apsw names a type that came with Python 3.12.
"""Search against a naive filter, pages that do not shift, and input that means harm."""

import json
import random
from collections.abc import Callable
from typing import Any, cast

import apsw
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corvo.errors import RequestError
from corvo.view import budget, search
from corvo.view.filters import SORTS, Filter, Page, Range, parameters
from tests.support.view_rows import STATES, TIMES, insert, make_job, open_memory

NASTY = (
    "it's",
    'a"b',
    "%",
    "_",
    "a\x00b",
    "\\",
    "'; DROP TABLE jobs; --",
    "é",
    "É",
    "[x]",
    "!",
    "{}",
    ": ",
    "\U0010ffff",
    "$.a",
)
words = st.sampled_from(("a", "B", "ab", "x y", *NASTY))
few = st.sampled_from(("a", "b", "c"))
times = st.integers(0, 6)
maybe_times = st.none() | times
payloads = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(few, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def job_lists(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Some jobs with small values, so that filters match by chance and sort values repeat."""
    jobs: list[dict[str, Any]] = []
    for number in range(1, draw(st.integers(1, 12)) + 1):
        payload = draw(payloads)
        spaces = draw(st.sampled_from((None, 1)))
        fields: dict[str, Any] = {name: draw(maybe_times) for name in TIMES}
        fields |= {
            "ns": draw(st.sampled_from((0, 0, 0, 1))),
            "queue": draw(few),
            "state": draw(st.sampled_from(STATES)),
            "priority": draw(st.integers(0, 2)),
            "attempt": draw(st.integers(0, 3)),
            "created_ms": draw(times),
            "worker_id": draw(st.none() | few),
            "workers": draw(st.lists(few, max_size=2)),
            "batch_id": draw(st.none() | few),
            "parent_id": draw(st.none() | few),
            "chain_id": draw(st.none() | few),
            "unique_key": draw(st.none() | words),
            "group_name": draw(st.none() | few),
            "tags": draw(st.dictionaries(words, words, max_size=2)),
            "errors": draw(st.lists(words, max_size=2)),
            "payload": json.dumps(payload, indent=spaces, ensure_ascii=draw(st.booleans())),
        }
        jobs.append(make_job(number, **fields))
    return jobs


ranges = st.builds(Range, maybe_times, maybe_times)
filters = st.fixed_dictionaries(
    {},
    optional={
        "queue": few | words,
        "states": st.lists(st.sampled_from(STATES), max_size=4),
        "priority": st.integers(0, 2),
        "tags": st.dictionaries(words, words, max_size=1),
        "payload_contains": words,
        "payload_jq": st.sampled_from((".a == 1", ".a != null", '.a == "ab"', "length > 0")),
        "error_contains": words,
        "has_errors": st.booleans(),
        "worker_id": few,
        "batch_id": few,
        "parent_id": few,
        "chain_id": few,
        "unique_key": words,
        "group": few,
        "job_id_prefix": st.sampled_from(("", "job_", "job_00000000000000000000000001", "%")),
        "attempt_min": st.integers(0, 3),
        "attempt_max": st.integers(0, 3),
        "created": ranges,
        "scheduled": ranges,
        "started": ranges,
        "completed": ranges,
        "expire": ranges,
    },
)


def _lower(text: str) -> str:
    return text.encode().lower().decode()


def _contains(text: str, needle: str) -> bool:
    """Part of the compact JSON, in the escapes it was sent with or as one escapes in ASCII."""
    compact = json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=text.isascii())
    needles = {needle, json.dumps(needle)[1:-1]} if not needle.isascii() else {needle}
    return any(_lower(part) in _lower(compact) for part in needles)


def _length(value: Any) -> int:
    if isinstance(value, bool):
        return 0
    if isinstance(value, int):
        return abs(value)
    return 0 if value is None else len(value)


def _jq(text: str, payload: Any) -> bool:
    found: Any = None
    if text == "length > 0":
        return _length(payload) > 0
    if payload is not None and not isinstance(payload, dict):
        return False
    if isinstance(payload, dict):
        found = cast("dict[str, Any]", payload).get("a")
    if text == ".a != null":
        return found is not None
    if text == ".a == 1":
        return type(found) is int and found == 1
    return found == "ab"


def is_match(job: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """The filter, as obvious as possible."""
    checks: dict[str, Callable[[Any], bool]] = {
        "queue": lambda value: job["queue"] == value,
        "states": lambda value: not value or job["state"] in value,
        "priority": lambda value: job["priority"] == value,
        "tags": lambda value: value.items() <= job["tags"].items(),
        "payload_contains": lambda value: _contains(job["payload"], value),
        "payload_jq": lambda value: _jq(value, json.loads(job["payload"])),
        "error_contains": lambda value: any(_lower(value) in _lower(e) for e in job["errors"]),
        "has_errors": lambda value: bool(job["errors"]) == value,
        "worker_id": lambda value: value == job["worker_id"] or value in job["workers"],
        "batch_id": lambda value: job["batch_id"] == value,
        "parent_id": lambda value: job["parent_id"] == value,
        "chain_id": lambda value: job["chain_id"] == value,
        "unique_key": lambda value: job["unique_key"] == value,
        "group": lambda value: job["group_name"] == value,
        "job_id_prefix": job["id"].startswith,
        "attempt_min": lambda value: job["attempt"] >= value,
        "attempt_max": lambda value: job["attempt"] <= value,
    }
    for name, value in wanted.items():
        if isinstance(value, Range):
            at = job[f"{name}_ms"]
            if value.after_ms is not None and (at is None or at <= value.after_ms):
                return False
            if value.before_ms is not None and (at is None or at >= value.before_ms):
                return False
        elif not checks[name](value):
            return False
    return job["ns"] == 0


def in_order(jobs: list[dict[str, Any]], sort: str, order: str) -> list[str]:
    """Identifiers in the order asked for: without a value last, ties by creation or id."""
    column = SORTS[sort]
    sign = -1 if column == "priority" else 1

    def key(job: dict[str, Any]) -> Any:
        value = job[column]
        return (job["created_ms"] if value is None else sign * value, job["id"])

    is_down = order == "desc"
    valued = sorted((job for job in jobs if job[column] is not None), key=key, reverse=is_down)
    others = sorted((job for job in jobs if job[column] is None), key=key, reverse=is_down)
    return [job["id"] for job in valued + others]


def ask(connection: apsw.Connection, wanted: Filter, **page: Any) -> Any:
    """One page."""
    query = {"filter": parameters(wanted), "page": parameters(Page(**page))}
    return msgspec.json.decode(search.search_jobs(connection, query))


@settings(max_examples=100, deadline=None)
@given(
    jobs=job_lists(),
    wanted=filters,
    sort=st.sampled_from(tuple(SORTS)),
    order=st.sampled_from(("asc", "desc")),
    limit=st.integers(1, 5),
    short=st.sampled_from((0, 3, search.SHORT)),
)
def test_pages_together_equal_a_naive_filter(
    jobs: list[dict[str, Any]],
    wanted: dict[str, Any],
    sort: str,
    order: str,
    limit: int,
    short: int,
) -> None:
    """Every filter, sort and way of finding gives all matches once, in order, and their number."""
    connection = open_memory(jobs)
    expected = in_order([job for job in jobs if is_match(job, wanted)], sort, order)
    found: list[str] = []
    cursor = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "SHORT", short)
        patch.setattr(search, "SAMPLE_HITS", 1)
        while True:
            answer = ask(
                connection,
                Filter(ns=0, **wanted),
                sort=sort,
                order=order,
                limit=limit,
                cursor=cursor,
            )
            assert not answer["partial"]
            assert answer["total"] == len(expected)
            assert not answer["total_is_estimate"]
            found += [job["id"] for job in answer["jobs"]]
            cursor = answer["cursor"]
            assert answer["has_more"] == (cursor is not None)
            if cursor is None:
                break
    assert found == expected


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("sort", ["created_at", "started_at", "priority"])
def test_jobs_that_come_and_go_do_not_shift_pages(sort: str, order: str) -> None:
    """Whoever was there all the time is seen exactly once, whatever happens between pages."""
    jobs = [make_job(n * 10, started_ms=n if n % 3 else None) for n in range(1, 21)]
    connection = open_memory(jobs)
    seen: list[str] = []
    cursor = None
    added = 0
    while True:
        answer = ask(connection, Filter(ns=0), sort=sort, order=order, limit=3, cursor=cursor)
        seen += [job["id"] for job in answer["jobs"]]
        cursor = answer["cursor"]
        if cursor is None:
            break
        # One job before and one after the cursor, and the one the cursor stands on is deleted.
        for number in (1 + added, 301 + added):
            insert(connection, [make_job(number, started_ms=number)])
        added += 1
        connection.execute("DELETE FROM jobs WHERE id = ?", (seen[-1],))
    old = [job["id"] for job in jobs]
    assert sorted(name for name in seen if name in old) == old
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize("text", NASTY)
def test_hostile_text_is_only_text(text: str) -> None:
    """Quotes, wildcards, NUL and SQL in any field find exactly the job that has them."""
    plain = make_job(1, payload='{"k":"plain"}')
    errors = [f"before {text} after"]
    tagged = make_job(2, tags={text: text}, unique_key=text, errors=errors, worker_id=text)
    tagged["payload"] = json.dumps({text: text})
    connection = open_memory([plain, tagged])
    escaped = json.dumps(text)
    finding: tuple[dict[str, Any], ...] = (
        {"tags": {text: text}},
        {"unique_key": text},
        {"error_contains": text},
        {"worker_id": text},
        {"payload_jq": f".[{escaped}] == {escaped}"},
        {"payload_jq": f".[{escaped}] | contains({escaped})"},
        {"payload_jq": f"has({escaped})"},
    )
    for fields in finding:
        answer = ask(connection, Filter(ns=0, **fields))
        assert [job["id"] for job in answer["jobs"]] == [tagged["id"]], fields
    for name in ("queue", "batch_id", "job_id_prefix"):
        missing: dict[str, Any] = {name: text}
        assert ask(connection, Filter(ns=0, **missing))["jobs"] == []
    assert ask(connection, Filter(ns=0, tags={}))["total"] == 2


def test_summaries_hold_what_an_operator_needs() -> None:
    """Error, hold reason, progress, tags and the exact payload are part of a summary."""
    fields = {
        "payload": '{"big": 123456789012345678901234567890, "x":1.10}',
        "errors": ["SMTP timeout 1", "SMTP timeout 2"],
        "hold_reason": "needs a look",
        "progress": '{"done": 3}',
        "tags": {"tenant": "acme"},
        "state": "held",
    }
    connection = open_memory([make_job(1, **fields)])
    query = {"filter": parameters(Filter(ns=0)), "page": parameters(Page())}
    body = search.search_jobs(connection, query)
    assert b'{"big": 123456789012345678901234567890, "x":1.10}' in body
    (job,) = msgspec.json.decode(body)["jobs"]
    assert job["last_error"] == "SMTP timeout 2"
    assert job["hold_reason"] == "needs a look"
    assert job["progress"] == {"done": 3}
    assert job["tags"] == {"tenant": "acme"}
    assert job["priority"] == "normal"


def test_total_beyond_the_bound_is_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting stops at a bound and says so; counters have none."""
    monkeypatch.setattr(search.limits, "SEARCH_TOTAL_MAX", 5)
    connection = open_memory([make_job(n, priority=n % 2) for n in range(1, 21)])
    answer = ask(connection, Filter(ns=0, priority=0), limit=2)
    assert (answer["total"], answer["total_is_estimate"]) == (5, True)
    answer = ask(connection, Filter(ns=0, states=["pending"]), limit=2)
    assert (answer["total"], answer["total_is_estimate"]) == (20, False)


def test_without_time_the_answer_is_a_part_and_says_so() -> None:
    """A search that runs out of time answers with what it has."""
    text = "".join(random.Random(1).choices("ab", k=100_000))
    connection = open_memory([make_job(n, payload=json.dumps({"a": text})) for n in range(1, 20)])
    wanted = Filter(ns=0, payload_jq='.a | test("(a|b)*a(a|b){80}c")')
    query = {"filter": parameters(wanted), "page": parameters(Page())}
    answer = msgspec.json.decode(
        search.search_jobs(connection, query | {"budget_ms": 20, "count_ms": 20})
    )
    assert answer["partial"]
    assert answer["total_is_estimate"]
    # Not even one job was looked at: there is no place to go on from, and the answer says so.
    assert (answer["has_more"], answer["cursor"]) == (False, None)
    assert "created_at" in answer["hint"]


class SlowClock:
    """A clock that a look at it moves on by a millisecond: time is what SQLite does."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 0.001
        return self.now_s


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("sort", ["created_at", "started_at", "completed_at"])
@pytest.mark.parametrize(
    "wanted",
    [
        {"payload_jq": ".n == 7"},
        {"payload_contains": "seven"},
        {"payload_jq": ".n == 7", "states": ["pending", "dead"]},
        {"priority": 1, "queue": "q"},
        {"priority": 1, "states": ["dead", "pending", "held"]},
    ],
)
def test_answers_that_are_a_part_go_on_without_gap_or_repeat(
    sort: str, order: str, wanted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever follows the cursors sees every match once, however little time each page has."""
    monkeypatch.setattr(budget, "monotonic", SlowClock())
    monkeypatch.setattr(budget, "_STEPS", 25)
    monkeypatch.setattr(search, "WINDOW_FIRST", 16)
    monkeypatch.setattr(search, "SHORT", 0)
    jobs = [
        make_job(
            n,
            created_ms=1_000 + n // 3,
            state=STATES[n % 7],
            payload='{"n": 7, "t": "seven"}' if n % 211 == 5 else '{"n": 1, "t": "one"}',
            priority=1 if n % 307 == 5 else 2,
            started_ms=n // 2 if n % 4 else None,
        )
        for n in range(1, 2_001)
    ]
    connection = open_memory(jobs)
    matches = [job for job in jobs if _is_wanted(job, wanted)]
    found: list[str] = []
    parts = 0
    cursor: str | None = None
    for _ in range(500):
        page = Page(sort=sort, order=order, cursor=cursor, limit=50)
        query = {"filter": parameters(Filter(ns=0, **wanted)), "page": parameters(page)}
        answer = msgspec.json.decode(search.search_ids(connection, query | {"budget_ms": 200}))
        found += [name for name, _ in answer["jobs"]]
        parts += answer["partial"]
        cursor = answer["cursor"]
        assert answer["has_more"] == (cursor is not None)
        if cursor is None:
            break
    assert cursor is None
    assert not answer["partial"]
    assert found == in_order(matches, sort, order)
    assert parts > 0


def _is_wanted(job: dict[str, Any], wanted: dict[str, Any]) -> bool:
    if "states" in wanted and job["state"] not in wanted["states"]:
        return False
    if "priority" in wanted:
        return job["priority"] == 1
    return "seven" in job["payload"]


def test_pages_of_large_payloads_end_early_and_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer grows beyond its bound; the cursor goes on after what was shown."""
    monkeypatch.setattr(search.limits, "SEARCH_PAGE_BYTES_MAX", 1_000)
    jobs = [make_job(n, payload=json.dumps("x" * 400)) for n in range(1, 8)]
    connection = open_memory(jobs)
    first = ask(connection, Filter(ns=0), order="asc")
    assert [job["id"] for job in first["jobs"]] == [job["id"] for job in jobs[:2]]
    second = ask(connection, Filter(ns=0), order="asc", cursor=first["cursor"])
    assert second["jobs"][0]["id"] == jobs[2]["id"]


@pytest.mark.parametrize(
    "cursor",
    ["x", "!!!!", "AAAA", "A" * 2_000, "é", "\x00", "lqphc2NlbmRpbmc", "eyJvZmZzZXQiOjUwfQ"],
)
def test_foreign_cursors_are_refused(cursor: str) -> None:
    """A cursor that is none of ours is a mistake of the client."""
    connection = open_memory([make_job(1)])
    with pytest.raises(RequestError) as caught:
        ask(connection, Filter(ns=0), cursor=cursor)
    assert caught.value.field == "cursor"


def test_cursor_of_another_order_is_refused() -> None:
    """Going on in another order would skip jobs."""
    connection = open_memory([make_job(n) for n in range(1, 4)])
    cursor = ask(connection, Filter(ns=0), limit=1)["cursor"]
    with pytest.raises(RequestError):
        ask(connection, Filter(ns=0), limit=1, order="asc", cursor=cursor)


def test_identifiers_of_all_matches_are_walked_for_bulk() -> None:
    """`search_ids` gives each match once with its state, page by page."""
    jobs = [make_job(n, state="dead" if n % 2 else "pending") for n in range(1, 12)]
    connection = open_memory(jobs)
    found: list[list[str]] = []
    cursor = None
    while True:
        page = Page(limit=2, cursor=cursor, order="asc")
        query = {"filter": parameters(Filter(ns=0, states=["dead"])), "page": parameters(page)}
        answer = msgspec.json.decode(search.search_ids(connection, query | {"count": True}))
        assert answer["total"] == 6
        found += answer["jobs"]
        cursor = answer["cursor"]
        if cursor is None:
            break
    assert found == [[job["id"], "dead"] for job in jobs if job["state"] == "dead"]
