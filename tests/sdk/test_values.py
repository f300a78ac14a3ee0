"""Values in the server's form, settings of clients, and what importing costs."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from corvo.api.values import parse_duration
from corvo_sdk import Client
from corvo_sdk.errors import ValidationError
from corvo_sdk.protocol.session import addresses_of
from corvo_sdk.types import NewJob
from corvo_sdk.values import duration_text, instant_text, seconds_of, segment, with_query
from tests.support.process import environment


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        (0, 0),
        (5, 5_000),
        (0.25, 250),
        (timedelta(minutes=1, milliseconds=1), 60_001),
        ("1h30m", 5_400_000),
        ("7d", 604_800_000),
        ("250ms", 250),
        ("1m5ms", 60_005),
    ],
)
def test_durations_mean_the_same_on_both_sides(value: Any, milliseconds: int) -> None:
    """What the SDK renders is what the server reads, and what the SDK waits for."""
    assert parse_duration(duration_text(value), "x") == milliseconds
    assert seconds_of(value) == pytest.approx(milliseconds / 1_000)


@pytest.mark.parametrize("value", [-1, timedelta(seconds=-1), float("nan"), float("inf"), 1e15])
def test_impossible_durations_are_refused_here(value: Any) -> None:
    """A negative or endless duration does not leave the process."""
    with pytest.raises(ValidationError):
        duration_text(value)


@pytest.mark.parametrize("text", ["x", "5x", "m5", "5 s"])
def test_text_that_is_no_duration_is_refused_for_waits(text: str) -> None:
    """A time-out on this side needs a number."""
    with pytest.raises(ValidationError):
        seconds_of(text)


def test_time_without_zone_is_refused() -> None:
    """Nobody knows when a naive datetime is."""
    assert instant_text(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "2026-01-02T03:04:05+00:00"
    with pytest.raises(ValidationError):
        instant_text(datetime(2026, 1, 2))  # noqa: DTZ001 - that is the point


def test_segments_are_quoted_and_never_climb() -> None:
    """A name can not leave its place in a path."""
    assert segment("a/b c?d#e%") == "a%2Fb%20c%3Fd%23e%25"
    for name in ("", ".", ".."):
        with pytest.raises(ValidationError):
            segment(name)


def test_query_leaves_out_what_is_not_given() -> None:
    """None is absent, booleans are words, text is quoted."""
    assert with_query("/x", {"a": None}) == "/x"
    assert with_query("/x", {"a": 1, "b": True, "c": "x&y", "d": None}) == "/x?a=1&b=true&c=x%26y"


def test_new_job_is_in_the_form_of_the_server() -> None:
    """Durations and times are rendered when the job is made."""
    job = NewJob(
        "q",
        unique_period=timedelta(hours=1),
        scheduled_at=datetime(2026, 1, 1, tzinfo=UTC),
        hold={"timeout": 90},
    )
    assert job.unique_period == "3600000ms"
    assert job.scheduled_at == "2026-01-01T00:00:00+00:00"
    assert job.hold == {"timeout": "90000ms"}


def test_addresses_are_read_from_text_and_lists() -> None:
    """Commas, spaces, missing schemes, slashes at the end and repetitions do not matter."""
    text = " http://a:1/ , b:2,https://c/prefix/,http://a:1"
    assert addresses_of(text) == ("http://a:1", "http://b:2", "https://c/prefix")
    assert addresses_of(["http://[::1]:8080"]) == ("http://[::1]:8080",)


@pytest.mark.parametrize(
    "url",
    ["ftp://a", "http://", ",", "http://a:x", "http://u:p@a", "http://a/?b", "http://a:99999"],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    """A wrong address is told at once, not at the first call."""
    with pytest.raises(ValidationError):
        Client(url)


def test_address_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """CORVO_URL may list several; an argument comes first; else this machine."""
    monkeypatch.setenv("CORVO_URL", "http://one:1,http://two:2")
    assert Client().urls == ("http://one:1", "http://two:2")
    assert Client("http://three").urls == ("http://three",)
    monkeypatch.delenv("CORVO_URL")
    assert Client().urls == ("http://127.0.0.1:8080",)


@pytest.mark.parametrize(
    "options",
    [
        {"timeout_s": 0},
        {"retries": -1},
        {"deadline_s": -1},
        {"bearer_token": "a", "token_provider": lambda: "b"},
        {"headers": {"x": "a\r\nb: c"}},
        {"api_key": "a\nb"},
    ],
)
def test_impossible_settings_are_refused(options: dict[str, Any]) -> None:
    """A client that could never work is not made."""
    with pytest.raises(ValidationError):
        Client("http://a", **options)


def _python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
        timeout=30,
    ).stdout.strip()


def test_import_loads_nothing_that_is_not_used() -> None:
    """Neither transport is loaded by the import, and each client loads only its own."""
    loaded = "import sys; print([n for n in ('aiohttp', 'urllib3', 'corvo') if n in sys.modules])"
    assert _python(f"import corvo_sdk; {loaded}") == "[]"
    assert _python(f"from corvo_sdk import Client; Client('http://a'); {loaded}") == "['urllib3']"
    code = "from corvo_sdk import AsyncClient, types, errors"
    assert _python(f"{code}; AsyncClient('http://a'); {loaded}") == "['aiohttp']"


def test_import_is_quick() -> None:
    """`import corvo_sdk` takes at most 150 ms; the best of three, since the machine is shared."""
    code = (
        "import time; began = time.perf_counter(); import corvo_sdk;"
        " print(time.perf_counter() - began)"
    )
    assert min(float(_python(code)) for _ in range(3)) < 0.15


def test_unknown_names_are_attribute_errors() -> None:
    """The lazy module is an ordinary one: it lists its names and refuses others."""
    import corvo_sdk  # noqa: PLC0415 - beside what it is about

    assert {"Client", "AsyncClient", "Corvo", "Worker"} <= set(dir(corvo_sdk))
    with pytest.raises(AttributeError):
        _ = corvo_sdk.nothing
