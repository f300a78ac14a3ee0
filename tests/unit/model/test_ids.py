"""Identifiers: order, round trip, derivation."""

from hypothesis import given
from hypothesis import strategies as st

from corvo.model import ids

TIMES = st.integers(0, (1 << 48) - 1)
GROUPS = st.integers(0, (1 << 12) - 1)
TAILS = st.integers(0, (1 << 68) - 1)
IDENTIFIERS = st.builds(ids.make_id, TIMES, GROUPS, TAILS)


@given(TIMES, GROUPS, TAILS)
def test_an_identifier_carries_its_group(at_ms: int, group: int, tail: int):
    """A call with an id can be routed without a look-up."""
    identifier = ids.make_id(at_ms, group, tail)
    assert len(identifier) == ids.ID_BYTES
    assert ids.group_of(identifier) == group


@given(st.tuples(TIMES, GROUPS, TAILS), st.tuples(TIMES, GROUPS, TAILS))
def test_identifiers_sort_as_their_parts_do(one: tuple[int, int, int], two: tuple[int, int, int]):
    """Bytes sort by time, then group, then tail."""
    assert (one < two) == (ids.make_id(*one) < ids.make_id(*two))


@given(IDENTIFIERS, st.sampled_from((ids.JOB, ids.BATCH, ids.CHAIN, ids.OPERATION)))
def test_text_form_round_trips(identifier: bytes, prefix: str):
    """What is rendered is parsed to the same bytes."""
    assert ids.parse_id(prefix, ids.render_id(prefix, identifier)) == identifier


@given(IDENTIFIERS, IDENTIFIERS)
def test_text_form_sorts_as_bytes_do(one: bytes, two: bytes):
    """Sorting ids as text or as bytes gives the same order."""
    assert (ids.render_id(ids.JOB, one) < ids.render_id(ids.JOB, two)) == (one < two)


@given(st.text(max_size=40))
def test_any_text_is_refused_or_renders_back(text: str):
    """Parsing never raises, and never accepts two spellings of one identifier."""
    for prefix in (ids.JOB, ids.BATCH):
        identifier = ids.parse_id(prefix, text)
        assert identifier is None or ids.render_id(prefix, identifier) == text


@given(
    IDENTIFIERS, st.text("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcz-_é", min_size=26, max_size=26)
)
def test_any_body_of_the_right_length_is_refused_or_renders_back(identifier: bytes, body: str):
    """Letters outside the alphabet and overflowing values are refused."""
    found = ids.parse_id(ids.JOB, ids.JOB + body)
    assert found is None or ids.render_id(ids.JOB, found) == ids.JOB + body


def test_kinds_are_not_mixed_up():
    """The id of a batch is no id of a job."""
    text = ids.render_id(ids.BATCH, ids.make_id(1, 0, 1))
    assert ids.parse_id(ids.JOB, text) is None


@given(IDENTIFIERS, st.integers(0, 1_000), st.integers(0, 64))
def test_derived_ids_keep_time_and_group_of_the_parent(parent: bytes, run: int, ordinal: int):
    """A derived job is routed where its parent lives."""
    child = ids.derive_id(parent, run, "chain", ordinal)
    assert len(child) == ids.ID_BYTES
    assert ids.group_of(child) == ids.group_of(parent)
    assert child[:6] == parent[:6]
    assert child == ids.derive_id(parent, run, "chain", ordinal)


def test_derived_ids_differ_by_parent_run_purpose_and_ordinal():
    """Nothing that a job derives can collide with another thing it derives."""
    derived = {
        ids.derive_id(ids.make_id(5, 0, tail), run, purpose, ordinal)
        for tail in range(4)
        for run in range(4)
        for purpose in ("chain", "callback", "on_exit")
        for ordinal in range(4)
    }
    assert len(derived) == 4 * 4 * 3 * 4
