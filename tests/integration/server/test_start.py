"""Starting: the lock, the log, the address; each refusal says what to do."""

from pathlib import Path

from corvo.cli.client import API
from tests.support.process import ServerProcess, corvo


def start_and_fail(data: Path, *flags: str) -> tuple[int, str]:
    finished = corvo("server", "--bind", "127.0.0.1:0", "--data-dir", str(data), *flags)
    return finished.returncode, finished.stderr


def test_second_server_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    """The refusal names the process that has the directory, and has an exit code of its own."""
    with ServerProcess(tmp_path) as server:
        code, errors = start_and_fail(tmp_path)
        assert code == 4
        assert str(server.process.pid) in errors
        assert "DIRECTORY_LOCKED" in errors
        assert corvo("fsck", "--data-dir", str(tmp_path)).returncode == 4
        assert server.stop() == 0


def test_data_directory_holds_log_store_and_lock(tmp_path: Path) -> None:
    """The layout that documents and tools rely on."""
    data = tmp_path / "made" / "on" / "demand"
    with ServerProcess(data) as server:
        assert server.stop() == 0
    assert {"LOCK", "wal", "store"} <= {path.name for path in data.iterdir()}


def test_jobs_survive_a_clean_stop(tmp_path: Path) -> None:
    """What was enqueued before a stop is there after the next start."""
    with ServerProcess(tmp_path) as server:
        job_id = corvo("enqueue", "q", '{"n": 12345678901234567890}', url=server.url).stdout.strip()
        assert server.stop() == 0
    with ServerProcess(tmp_path) as server:
        inspected = corvo("inspect", job_id, "--output", "json", url=server.url)
        assert "12345678901234567890" in inspected.stdout
        assert server.stop() == 0


def test_ephemeral_server_leaves_nothing_behind(tmp_path: Path) -> None:
    """With --ephemeral no directory is made."""
    data = tmp_path / "data"
    with ServerProcess(data, "--ephemeral") as server:
        client = server.client()
        assert client.call("POST", f"{API}/enqueue", {"queue": "q"}).status == 201
        client.close()
        assert server.stop() == 0
    assert not data.exists()


def test_damaged_log_is_refused_until_somebody_repairs_it(tmp_path: Path) -> None:
    """Corruption is not guessed away: the start names the tool, the tool names the place."""
    with ServerProcess(tmp_path) as server:
        client = server.client()
        for number in range(20):
            client.call("POST", f"{API}/enqueue", {"queue": "q", "payload": {"n": number}})
        client.close()
        server.kill()
    segment = min((tmp_path / "wal").glob("*.wal"))
    content = bytearray(segment.read_bytes())
    at = content.index(b'"n":3') if b'"n":3' in content else content.index(b'"n": 3')
    content[at] ^= 0xFF
    segment.write_bytes(content)
    code, errors = start_and_fail(tmp_path)
    assert code == 5
    assert "corvo wal" in errors
    verified = corvo("wal", "verify", "--data-dir", str(tmp_path))
    assert verified.returncode == 5
    assert segment.name in verified.stdout
    assert corvo("wal", "dump", "--data-dir", str(tmp_path)).returncode == 0
    repaired = corvo("wal", "repair", "--yes", "--data-dir", str(tmp_path))
    assert repaired.returncode == 0
    assert "kept aside" in repaired.stdout
    assert corvo("wal", "verify", "--data-dir", str(tmp_path)).returncode == 0
    with ServerProcess(tmp_path) as server:
        assert server.stop() == 0


def test_address_in_use_is_refused_with_a_hint(tmp_path: Path) -> None:
    """Two servers on one port: the second says so."""
    with ServerProcess(tmp_path / "one") as server:
        code, errors = start_and_fail(tmp_path / "two", "--bind", f"127.0.0.1:{server.port}")
        assert code == 2
        assert "--bind" in errors
        assert server.stop() == 0


def test_foreign_log_is_refused(tmp_path: Path) -> None:
    """A directory of another cluster is not opened by accident."""
    with ServerProcess(tmp_path, "--cluster-name", "one") as server:
        assert server.stop() == 0
    code, errors = start_and_fail(tmp_path, "--cluster-name", "two")
    assert code in {5, 6}
    assert "error:" in errors


def test_flags_of_the_single_node_command_start_a_server(tmp_path: Path) -> None:
    """Flags that mean nothing here are accepted with a notice."""
    flags = ("--bootstrap", "--view", "off", "--raft-store", "badger", "--lifecycle-events")
    with ServerProcess(tmp_path, *flags) as server:
        assert server.stop() == 0
        assert server.errors().count("no effect") == 2
