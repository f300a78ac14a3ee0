"""The engine on real files: RocksDB, segments, kernel syncs and a fast loop."""

import asyncio
from pathlib import Path

import pytest
import uvloop

from corvo.engine import Engine, Hooks
from corvo.errors import StorageError
from corvo.machine import digest
from corvo.machine.audit import audit
from corvo.model.command import AckJob, EnqueueJob
from corvo.model.job import Spec
from corvo.replication import FsyncPolicy, LocalLog, RealDisk, make_sync
from corvo.runtime.clock import SystemClock
from corvo.storage.rocks import RocksStore
from tests.support.rig import NS, Poll, fetching

FAILURES: list[BaseException] = []


def open_log(directory: Path, fsync: str) -> LocalLog:
    """Open the log of a data directory."""
    loop = asyncio.get_running_loop()
    directory.mkdir(exist_ok=True)
    return LocalLog.open(
        RealDisk(),
        str(directory / "wal"),
        policy=FsyncPolicy.parse(fsync),
        cluster_id=bytes(16),
        node_id=1,
        segment_bytes=1 << 16,
        syncer=make_sync(loop, str(directory)),
        on_failure=FAILURES.append,
    )


def open_engine(directory: Path, fsync: str) -> tuple[Engine, RocksStore]:
    """Open and start an engine on a directory."""
    log = open_log(directory, fsync)
    store = RocksStore(str(directory / "store"))
    hooks = Hooks(
        fatal=FAILURES.append,
        reply_failed=FAILURES.append,
        fault=lambda index, ordinal, text: FAILURES.append(AssertionError((index, ordinal, text))),
    )
    engine = Engine.open(store=store, log=log, clock=SystemClock(), hooks=hooks)
    engine.start()
    return engine, store


async def lifecycle(engine: Engine, worker: int) -> None:
    """Enqueue, fetch and ack, one after the other, as a client does."""
    for _ in range(10):
        spec = Spec(engine.new_id(), NS, f"q{worker}", b'{"n":1}')
        await engine.perform(EnqueueJob(spec))
        fetched = await Poll(engine, fetching(f"q{worker}"), 10_000).answer
        claim = fetched.claims[0]
        await engine.perform(AckJob(NS, claim.spec.id, claim.token, b"1"))


@pytest.mark.parametrize("fsync", ["always", "interval=5ms", "off"])
def test_work_survives_a_restart_on_real_files(tmp_path: Path, fsync: str):
    """Thirty concurrent clients work, the engine flushes meanwhile, and a restart finds it all."""

    async def run() -> None:
        FAILURES.clear()
        engine, store = open_engine(tmp_path, fsync)
        work = [lifecycle(engine, worker) for worker in range(30)]
        await asyncio.gather(*work, engine.flush())
        await engine.flush()
        await engine.perform(EnqueueJob(Spec(engine.new_id(), NS, "left", b"{}")))
        before = digest(store), engine.index
        assert audit(store) == []
        with pytest.raises(StorageError):
            open_log(tmp_path, fsync)
        await engine.close()
        engine, store = open_engine(tmp_path, fsync)
        assert (digest(store), engine.index) == before
        fetched = await Poll(engine, fetching("left"), 1_000).answer
        assert len(fetched.claims) == 1
        await engine.close()
        assert FAILURES == []

    uvloop.run(run())
