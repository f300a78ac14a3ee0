"""The table of key families: order, round trip, no family inside another."""

from hypothesis import given
from hypothesis import strategies as st

from corvo.keys import space
from corvo.keys.order import successor

NS = st.integers(0, 0xFFFF)
NUMBERS = st.integers(0, 0xFFFF_FFFF)
TIMES = st.integers(0, (1 << 63) - 1)
IDS = st.binary(min_size=16, max_size=16)
NAMES = st.text("abcXYZ019._:/-", min_size=1, max_size=12)


def families() -> dict[str, bytes]:
    """Return every one-byte constant of the table."""
    constants = {name: getattr(space, name) for name in dir(space) if name.isupper()}
    blobs = {name for name in constants if name.startswith("BLOB_")}
    return {k: v for k, v in constants.items() if isinstance(v, bytes) and k not in blobs}


def test_every_family_has_its_own_byte():
    """Two families never share a prefix."""
    found = families()
    assert all(len(value) == 1 for value in found.values())
    assert len(set(found.values())) == len(found)


def test_the_table_in_the_docstring_names_every_family():
    """Whoever reads the table has seen the whole disk."""
    assert space.__doc__ is not None
    rows = {line.split()[0] for line in space.__doc__.splitlines() if line.startswith("    ")}
    assert {value.decode() for value in families().values()} <= rows


@given(TIMES, NS, NUMBERS, IDS)
def test_due_keys_give_back_what_they_hold(due_ms: int, ns: int, number: int, job_id: bytes):
    """The sweeps read time, space and job from the key alone."""
    key = space.due_key(due_ms, ns, number, job_id)
    assert (due_ms, number, job_id) == (space.due_of(key), space.space_of(key), space.job_of(key))
    key = space.active_key(due_ms, ns, job_id)
    assert (due_ms, job_id) == (space.due_of(key), space.job_of(key))
    key = space.waiting_key(ns, number, job_id)
    assert (number, job_id) == (space.space_of(key), space.job_of(key))
    key = space.held_key(ns, number, job_id)
    assert job_id == space.job_of(key)


@given(st.tuples(TIMES, NS, NUMBERS, IDS), st.tuples(TIMES, NS, NUMBERS, IDS))
def test_due_keys_sort_by_time_first(
    one: tuple[int, int, int, bytes], two: tuple[int, int, int, bytes]
):
    """A sweep that stops at the first key not due has seen all that are."""
    assert (space.due_key(*one) < space.due_key(*two)) == (one < two)


@given(NS, NUMBERS, NAMES, NAMES)
def test_no_gate_is_a_prefix_of_another(ns: int, queue_id: int, one: str, two: str):
    """Lanes waiting for one gate are never found under another."""
    gates = [space.queue_gate(ns, queue_id, one), space.queue_gate(ns, queue_id, two)]
    gates += [space.limit_gate(ns, one), space.limit_gate(ns, two)]
    prefixes = {space.slot_waiter_prefix(gate) for gate in gates}
    for a in prefixes:
        for b in prefixes:
            assert a == b or not a.startswith(b)


@given(NS, NUMBERS, NUMBERS, NUMBERS)
def test_prefixes_of_different_spaces_do_not_overlap(ns: int, one: int, two: int, lane: int):
    """Clearing a queue gives it a space of its own: scans of one never see the other."""
    a, b = space.ready_space_prefix(ns, one), space.ready_space_prefix(ns, two)
    assert space.ready_prefix(ns, one, lane).startswith(a)
    if one != two:
        assert successor(a) <= b or successor(b) <= a


@given(NS, IDS, NUMBERS)
def test_keys_of_one_job_stay_apart(ns: int, job_id: bytes, number: int):
    """Spec, record, blobs and errors of a job never share a key."""
    keys = [
        space.spec_key(ns, job_id),
        space.job_key(ns, job_id),
        space.error_key(ns, job_id, number),
        *(space.blob_key(ns, job_id, kind) for kind in (b"c", b"r", b"p", b"u")),
    ]
    assert len(set(keys)) == len(keys)
