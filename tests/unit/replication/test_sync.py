"""The strategies that wait for the disk, on real files and a real loop."""

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from corvo.errors import StorageError
from corvo.replication import FsyncPolicy, LocalLog, RealDisk, make_sync
from corvo.replication.sync import AioSync, DurableSync, ThreadSync
from tests.replication_kit import CLUSTER_ID, contents, open_log, payload

Maker = Callable[[asyncio.AbstractEventLoop], DurableSync]


def _make_aio(loop: asyncio.AbstractEventLoop) -> DurableSync:
    try:
        return AioSync(loop)
    except OSError as error:
        pytest.skip(f"no kernel AIO here: {error}")


@pytest.fixture(params=[_make_aio, ThreadSync], ids=["aio", "thread"])
def maker(request: pytest.FixtureRequest) -> Maker:
    """Each strategy in turn."""
    return request.param


async def _wait_sync(
    syncer: DurableSync, files: tuple[int, ...], directories: tuple[int, ...]
) -> None:
    done = asyncio.get_running_loop().create_future()
    syncer.start(files, directories, lambda: done.set_result(None), done.set_exception)
    await asyncio.wait_for(done, 10)


def test_files_and_directories_are_synced_and_the_loop_is_told(
    maker: Maker, tmp_path: Path
) -> None:
    """Several syncs in a row, of several files and a directory, each call back once."""

    async def scenario() -> None:
        syncer = maker(asyncio.get_running_loop())
        disk = RealDisk()
        handles = tuple(disk.create(f"{tmp_path}/{name}") for name in "ab")
        folder = disk.open_directory(str(tmp_path))
        for turn in range(5):
            for handle in handles:
                disk.pwrite(handle, b"x" * 100, turn * 100)
            await _wait_sync(syncer, handles, (folder,) if turn % 2 else ())
        syncer.close()

    asyncio.run(scenario())


def test_a_failed_sync_is_told_as_a_failure(maker: Maker) -> None:
    """A handle that cannot be synced ends in the failure callback, never in the other one."""

    async def scenario() -> None:
        syncer = maker(asyncio.get_running_loop())
        reader, writer = os.pipe()
        with pytest.raises(OSError, match=r"Invalid|Read-only") as failure:
            await _wait_sync(syncer, (writer,), ())
        assert failure.value.errno in (errno.EINVAL, errno.EROFS)
        os.close(reader)
        os.close(writer)
        syncer.close()

    asyncio.run(scenario())


def test_the_log_is_synced_in_the_background(maker: Maker, tmp_path: Path) -> None:
    """Entries of many rotations are acknowledged in order and are all there afterwards."""
    directory = f"{tmp_path}/log"

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        log = _open(directory, maker(loop))
        for index in range(1, 30):
            log.append(payload(index, 900))
            done = loop.create_future()
            log.sync(lambda done=done: done.set_result(None))
            # What is appended while a sync is under way belongs to the next one.
            if index == 10:
                assert log.is_syncing
                assert log.synced_index == 9
            await asyncio.wait_for(done, 10)
            assert log.synced_index == index
        assert len(log.segments) > 3
        log.close()

    asyncio.run(scenario())
    again = open_log(RealDisk(), directory=directory)
    assert contents(again) == [(index, payload(index, 900)) for index in range(1, 30)]
    again.close()


def test_entries_appended_during_a_sync_wait_for_the_next(maker: Maker, tmp_path: Path) -> None:
    """A sync vouches only for what was written before it began, across a rotation too."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        log = _open(f"{tmp_path}/log", maker(loop))
        log.append(payload(1))
        first = loop.create_future()
        log.sync(lambda: first.set_result(None))
        for index in range(2, 12):
            log.append(payload(index, 2000))
        await asyncio.wait_for(first, 10)
        assert log.synced_index == 1
        second = loop.create_future()
        log.sync(lambda: second.set_result(None))
        await asyncio.wait_for(second, 10)
        assert log.synced_index == 11
        log.close()

    asyncio.run(scenario())


def test_a_log_whose_sync_fails_tells_its_owner_and_stops(maker: Maker, tmp_path: Path) -> None:
    """The owner gets one coded failure, and the next append raises it."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        failures: list[StorageError] = []
        told = asyncio.Event()

        def on_failure(failure: StorageError) -> None:
            failures.append(failure)
            told.set()

        log = _open(f"{tmp_path}/log", maker(loop), on_failure)
        log.append(b"one")
        # The directory handle of a pipe: a stand-in for a device that fails its flush.
        reader, writer = os.pipe()
        wal = log._wal
        wal._retired.append(writer)
        log.sync(lambda: pytest.fail("acknowledged"))
        await asyncio.wait_for(told.wait(), 10)
        assert [failure.code for failure in failures] == ["STORAGE_FAILED"]
        with pytest.raises(StorageError, match="syncing the log failed"):
            log.append(b"two")
        log.close()
        os.close(reader)

    asyncio.run(scenario())


def test_make_sync_returns_a_strategy_that_works(tmp_path: Path) -> None:
    """Whatever is chosen on this machine syncs a file of the directory it was probed on."""

    async def scenario() -> None:
        syncer = make_sync(asyncio.get_running_loop(), str(tmp_path))
        handle = RealDisk().create(f"{tmp_path}/file")
        await _wait_sync(syncer, (handle,), ())
        syncer.close()
        syncer.close()

    asyncio.run(scenario())


def _open(
    directory: str,
    syncer: DurableSync,
    on_failure: Callable[[StorageError], None] = lambda failure: pytest.fail(str(failure)),
) -> LocalLog:
    return LocalLog.open(
        RealDisk(), directory, policy=FsyncPolicy.always(), cluster_id=CLUSTER_ID, node_id=7,
        segment_bytes=8192, syncer=syncer, on_failure=on_failure,
    )  # fmt: skip
