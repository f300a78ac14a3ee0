"""The table of codes, the reference page and the machine's codes are one list."""

import re
from pathlib import Path

import msgspec
import pytest

from corvo import errors as exceptions
from corvo.api import errors
from corvo.api.http import replies
from corvo.errors import OverloadedError, RequestError, UnavailableError
from corvo.model import outcome
from corvo.model.job import DEAD
from corvo.model.outcome import Rejected

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "errors.md"
ROW = re.compile(r"^\| `([A-Z_]+)` \| (\d{3}) \| (.*?) \| (.*?) \|$", re.MULTILINE)


def test_the_reference_page_lists_exactly_the_table():
    """Code, status, meaning and hint of the page are those of the table."""
    listed = {
        code: (int(status), meaning, hint)
        for code, status, meaning, hint in ROW.findall(PAGE.read_text())
    }
    table = {
        code: (known.status, known.meaning, known.hint) for code, known in errors.CODES.items()
    }
    assert table == listed


def test_every_code_of_the_machine_has_a_place_in_the_table():
    """A rejection can always be answered with its own status."""
    codes = {
        value
        for name, value in vars(outcome).items()
        if isinstance(value, str) and name == value and name.isupper()
    }
    assert len(codes) >= 10
    assert codes <= set(errors.CODES)


def test_every_code_of_the_transport_has_a_place_in_the_table():
    """What the transport refuses by itself has the status of the table."""
    refusals = [value for value in vars(replies).values() if isinstance(value, replies.Refusal)]
    refusals += [replies.head_too_large(1), replies.body_too_large(1)]
    assert len(refusals) >= 8
    for refusal in refusals:
        assert refusal.code in errors.CODES
        if refusal is not replies.TOO_MANY_PIPELINED:
            assert errors.CODES[refusal.code].status == refusal.status


def test_codes_of_exceptions_that_reach_a_client_are_in_the_table():
    """The default codes of request, overload and unavailable errors are known."""
    for kind in (exceptions.CorvoError, RequestError, OverloadedError, UnavailableError):
        assert kind.code in errors.CODES
        assert errors.CODES[kind.code].status == kind.status


def test_a_rejection_carries_field_state_and_holder():
    """The envelope holds what a client needs to act."""
    rejected = Rejected("UNIQUE_CONFLICT", "taken", "unique_key", "", DEAD, bytes(16))
    status, body = errors.of_rejection(rejected)
    assert status == 409
    assert msgspec.json.decode(body) == {
        "error": "taken",
        "code": "UNIQUE_CONFLICT",
        "field": "unique_key",
        "hint": errors.CODES["UNIQUE_CONFLICT"].hint,
        "state": "dead",
        "unique_job_id": "job_" + "0" * 26,
    }


@pytest.mark.parametrize(("retry_after_ms", "seconds"), [(1, 1), (999, 1), (1_000, 1), (1_001, 2)])
def test_overload_says_when_to_come_back(retry_after_ms: int, seconds: int):
    """429 has an integer Retry-After, rounded up, and the finer figure in the body."""
    error = OverloadedError("full", retry_after_ms=retry_after_ms)
    status, body, extra = errors.of_error(error)
    assert status == 429
    assert msgspec.json.decode(body)["retry_after_ms"] == retry_after_ms
    assert extra == b"retry-after: %d\r\n" % seconds


def test_unavailable_says_when_to_come_back():
    """503 has Retry-After, whatever the reason."""
    for code in ("DRAINING", "STARTING", "DISK_FULL"):
        status, body, extra = errors.of_error(UnavailableError("no", code=code))
        assert status == 503
        assert msgspec.json.decode(body)["code"] == code
        assert extra.startswith(b"retry-after: ")


def test_an_unknown_code_is_answered_as_a_bug():
    """A code nobody put into the table does not get a friendly status."""
    assert errors.of_rejection(Rejected("NEVER_HEARD_OF", "x"))[0] == 500
