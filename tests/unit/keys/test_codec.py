"""Commands and records survive the trip through bytes."""

from random import Random

import msgspec
import pytest

from corvo.keys import codec
from corvo.model import command as c
from corvo.model import job as j
from corvo.model.queue import Gate, QueueRecord, Rate, SettingsPatch
from tests.factories import START_MS, make_configure, make_job_id, make_spec
from tests.model.histories import Writer
from tests.model.oracle_state import World


@pytest.mark.parametrize("seed", range(20))
def test_entries_round_trip(seed: int):
    """The proposer applies the objects it encoded, a replay the decoded ones: same values."""
    world = World(now_ms=START_MS)
    writer = Writer(world, Random(seed))
    entry = c.Entry(1, START_MS, [writer.anything() for _ in range(50)])
    raw = codec.encode_entry(entry)
    assert entry == codec.decode_entry(raw)
    assert raw == codec.encode_entry(codec.decode_entry(raw))


def test_every_command_has_its_own_tag():
    """Tags are a disk format: unique, and none is reused. Features take them in blocks."""
    tags = [kind.__struct_config__.tag for kind in c.Command.__args__]
    assert len(set(tags)) == len(tags)
    assert all(tag > 0 for tag in tags)
    assert set(range(1, 33)) <= set(tags)


def test_absent_and_null_settings_stay_apart():
    """A patch that removes a setting is not a patch that leaves it alone."""
    entry = c.Entry(1, 2, [make_configure("mail", rate=None, max_concurrency=3)])
    (command,) = codec.decode_entry(codec.encode_entry(entry)).commands
    assert isinstance(command, c.ConfigureQueue)
    assert command.patch == SettingsPatch(rate=None, max_concurrency=3)
    assert command.patch.key_rate is msgspec.UNSET


def test_records_round_trip():
    """Decoders give back what was encoded, every field."""
    job_id = make_job_id(1)
    spec = make_spec(1, unique=j.Unique("k", 5), hold=j.Hold("r", 1, 2), limits=("a", "b"))
    job = j.Job(job_id, 0, j.ACTIVE, 1, 2, 3, b"key", 4, 5, rare=j.Rare(answer=(1, 2, 3)))
    queue = QueueRecord(1, 0, "mail", 2, 3)
    assert spec == codec.decode_spec(codec.encode(spec))
    assert job == codec.decode_job(codec.encode(job))
    assert queue == codec.decode_queue(codec.encode(queue))
    assert Gate(1, 2, 3) == codec.decode_gate(codec.encode(Gate(1, 2, 3)))


def test_records_of_an_older_release_decode():
    """A record written before a field existed gets the field's default."""
    job = j.Job(make_job_id(1), 0, j.PENDING, 1, 2, 3, b"key", 4, 5)
    short = msgspec.msgpack.encode(msgspec.to_builtins(job, builtin_types=(bytes,))[:9])
    assert job == codec.decode_job(short)
    assert Rate(1, 2, 3) == msgspec.msgpack.decode(codec.encode(Rate(1, 2, 3)), type=Rate)
