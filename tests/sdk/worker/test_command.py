"""The command: discovery, options, environment, logs, reload."""

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL, SIGTERM

import pytest

from corvo_sdk.app import Corvo
from corvo_sdk.worker import command, discovery
from corvo_sdk.worker.discovery import AppNotFoundError
from corvo_sdk.worker.logs import JsonFormatter
from corvo_sdk.worker.reload import snapshot
from corvo_sdk.worker.settings import WorkerSettingsError
from tests.support.server import Server, SystemClock, running
from tests.support.worker import WorkerProcess, wait_state, wait_until

ONE = """
from corvo_sdk import Corvo
app = Corvo("one")

@app.task(queue="q")
async def answer() -> int:
    return 1
"""


@pytest.fixture
def server() -> Iterator[Server]:
    with running("fast", clock=SystemClock()) as server:
        yield server


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that is the current one and importable, with its modules forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    known = set(sys.modules)
    discovery.extend_path(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_app_is_found_by_name_and_without(project: Path) -> None:
    """`module:app` and `module` name the same app when there is only one."""
    (project / "found_one.py").write_text(ONE)
    assert isinstance(discovery.load("found_one:app"), Corvo)
    assert discovery.load("found_one") is discovery.load("found_one:app")


def test_app_in_the_source_layout_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package below `src` needs no installation."""
    (tmp_path / "src" / "laid_out").mkdir(parents=True)
    (tmp_path / "src" / "laid_out" / "__init__.py").touch()
    (tmp_path / "src" / "laid_out" / "work.py").write_text(ONE)
    monkeypatch.setattr(sys, "path", [*sys.path])
    discovery.extend_path(tmp_path)
    assert discovery.load("laid_out.work").name == "one"


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [
        ("missing_module:app", "there is no module"),
        ("broken_two", "has 2 apps"),
        ("broken_two:neither", "has no 'neither'"),
        ("broken_two:number", "is a int"),
        ("./broken_two.py", "names no module"),
        ("folder/broken_two.py", "is a file"),
        ("", "names no module"),
    ],
)
def test_wrong_reference_says_what_to_write(project: Path, reference: str, complaint: str) -> None:
    """Every way to get it wrong has its own sentence."""
    (project / "broken_two.py").write_text(ONE + "\nother = Corvo('two')\nnumber = 3\n")
    with pytest.raises(AppNotFoundError, match=complaint):
        discovery.load(reference)


def test_import_error_inside_the_module_is_shown_as_it_is(project: Path) -> None:
    """A missing dependency is not taken for a missing app."""
    (project / "broken_import.py").write_text("import no_such_library_at_all\n")
    with pytest.raises(ModuleNotFoundError, match="no_such_library_at_all"):
        discovery.load("broken_import")


@pytest.mark.parametrize(
    ("text", "meaning"), [("emails", ("emails", 0)), ("a=b=3", ("a=b", 3)), (" x=10", ("x", 10))]
)
def test_queue_is_read(text: str, meaning: tuple[str, int]) -> None:
    """A name, or a name and its slots."""
    assert command.parse_queue(text) == meaning


@pytest.mark.parametrize("text", ["=3", "a=", "a=0", "a=-1", "a=many"])
def test_wrong_queue_is_refused(text: str) -> None:
    """Slots are a number from one."""
    with pytest.raises(WorkerSettingsError):
        command.parse_queue(text)


@pytest.mark.parametrize(
    "arguments",
    [
        ["found_two", "-q", "q=0"],
        ["found_two", "-q", "other"],
        ["nowhere:app"],
        ["found_two", "--lease", "soon"],
        ["found_two", "--lease", "1ms"],
    ],
)
def test_wrong_settings_end_with_code_two_and_one_line(
    project: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is fetched, and the reason is said in one line."""
    (project / "found_two.py").write_text(ONE)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        assert command.main([*arguments, "--health-port", "off"]) == 2
    finally:
        root.handlers[:], root.level = handlers, level
    assert capsys.readouterr().err.count("corvo-worker: ") == 1


@pytest.mark.parametrize(
    "arguments", [["a", "--concurrency", "0"], ["a", "--health-port", "x"], []]
)
def test_wrong_options_are_usage_errors(arguments: list[str]) -> None:
    """What can not be read is told by the parser."""
    with pytest.raises(SystemExit) as raised:
        command.main(arguments)
    assert raised.value.code == 2


def test_reload_options_are_not_passed_to_the_child() -> None:
    """The child runs the same command without watching."""
    given = ["m:app", "--reload", "-q", "a", "--reload-dir", "src", "--reload-dir=lib"]
    assert command._without_reload(given) == ["m:app", "-q", "a"]


def test_json_log_line_holds_what_was_added() -> None:
    """Message, level, extra fields and the traceback, in one line of JSON."""
    error = ValueError("ü")
    record = logging.getLogger("corvo.test").makeRecord(
        "corvo.test",
        logging.INFO,
        "f",
        1,
        "did %s",
        ("x",),
        (ValueError, error, None),
        extra={"job_id": "job_1"},
    )
    line = JsonFormatter().format(record)
    assert "\n" not in line
    fields = json.loads(line)
    assert (fields["message"], fields["level"], fields["job_id"]) == ("did x", "info", "job_1")
    assert "ValueError: ü" in fields["backtrace"]


def test_environment_names_queues_and_slots(server: Server, tmp_path: Path) -> None:
    """CORVO_URL, CORVO_QUEUES and CORVO_CONCURRENCY are enough for a container."""
    (tmp_path / "jobs.py").write_text(ONE)
    job_id = server.enqueue("q")
    with WorkerProcess(
        tmp_path,
        f"http://127.0.0.1:{server.port}",
        "--log-format",
        "json",
        app="jobs",
        variables={"CORVO_QUEUES": "q=3", "CORVO_CONCURRENCY": "7"},
    ) as process:
        assert wait_state(server, job_id, "completed")["result"] == 1
        process.send(SIGTERM)
        assert process.wait() == 0
    lines = [json.loads(line) for line in process.log().splitlines()]
    assert any("serves q: 3 slots" in line["message"] for line in lines)


def test_snapshot_sees_sources_only(tmp_path: Path) -> None:
    """Hidden and generated folders are not watched."""
    for name in ("a.py", "b.txt", ".hidden/c.py", "__pycache__/d.py", "package/e.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert sorted(Path(name).name for name in snapshot([tmp_path])) == ["a.py", "e.py"]


def test_reload_runs_new_code_soon_and_keeps_the_job(server: Server, tmp_path: Path) -> None:
    """A change starts the worker anew; the job the old one held is run by the new code."""
    old = ONE.replace("    return 1", "    import asyncio\n    await asyncio.sleep(600)")
    (tmp_path / "jobs.py").write_text(old)
    job_id = server.enqueue("q")
    url = f"http://127.0.0.1:{server.port}"
    with WorkerProcess(tmp_path, url, "--reload") as process:
        wait_state(server, job_id, "active")
        (tmp_path / "jobs.py").write_text("this is no Python")
        process.wait_log("SyntaxError")
        (tmp_path / "jobs.py").write_text(ONE.replace("return 1", "return 20"))
        job = wait_state(server, job_id, "completed")
        process.send(SIGTERM)
        assert process.wait() == 0
    assert job["result"] == 20
    assert job["attempt"] == 1
    wait_until(lambda: "ended" in process.log())


def test_worker_ends_with_the_reloader_that_started_it(server: Server, tmp_path: Path) -> None:
    """A reloader that is killed leaves no worker behind; the job in hand is given back."""
    slow = ONE.replace("    return 1", "    import asyncio\n    await asyncio.sleep(600)")
    (tmp_path / "jobs.py").write_text(slow)
    job_id = server.enqueue("q")
    url = f"http://127.0.0.1:{server.port}"
    with WorkerProcess(tmp_path, url, "--reload") as process:
        wait_state(server, job_id, "active")
        process.send(SIGKILL)
        process.wait()
        job = wait_state(server, job_id, "pending")
    assert job["errors"] == [], "it was released; a lease that ran out would be an error"
