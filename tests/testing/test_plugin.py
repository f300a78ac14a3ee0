"""The pytest plugin, in a pytest of its own."""

import subprocess
import sys
from pathlib import Path

from tests.support.process import environment

APP = """
from corvo_sdk import Corvo

app = Corvo("shop")
sent = []

@app.task(queue="mail", retries=10)
async def send(to: str) -> None:
    sent.append(to)
"""

TESTS = """
from shop import app, send, sent

def test_mail_is_sent(corvo):
    send.enqueue("ada")
    corvo.assert_enqueued(send, to="ada")
    assert corvo.drain_sync(advance=True).completed == 1

def test_mail_is_sent_once(corvo):
    sent.clear()
    send.enqueue("ada")
    corvo.drain_sync(advance=True)
    assert sent == ["ada"]

def test_without_the_fixture():
    assert True
"""


def run_pytest(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest as a user would, in a directory of its own."""
    (directory / "shop.py").write_text(APP)
    (directory / "test_shop.py").write_text(TESTS)
    (directory / "pytest.ini").write_text("[pytest]\ncorvo_app = shop:app\npythonpath = .\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "corvo.testing.plugin",
        "-p",
        "no:cacheprovider",
    ]
    return subprocess.run(
        [*command, "-q", *arguments],
        cwd=directory,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_fixture_serves_the_app_named_in_the_configuration(tmp_path: Path):
    """`corvo_app` spares every test the call of `use`."""
    finished = run_pytest(tmp_path)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "3 passed" in finished.stdout


def test_chaos_names_the_smallest_failing_seed_and_how_to_repeat_it(tmp_path: Path):
    """A handler that is not idempotent fails, and the summary says which seed to run again."""
    finished = run_pytest(tmp_path, "--corvo-chaos=1", "--corvo-chaos-runs=12")
    assert finished.returncode == 1, finished.stdout + finished.stderr
    lines = finished.stdout.splitlines()
    named = next(line for line in lines if "smallest failing seed" in line)
    assert "test_mail_is_sent_once" in named
    seed = named.rsplit(" ", 1)[1]
    again = run_pytest(tmp_path, f"--corvo-chaos={seed}", "--corvo-chaos-runs=1")
    assert f"test_mail_is_sent_once[chaos={seed}]" in again.stdout
    assert "attempt 1:" in again.stdout, "what was done to the job is shown with the failure"
    assert "2 passed" in again.stdout


def test_plugin_imports_nothing_of_the_server_before_a_test_asks():
    """A run of pytest without the fixture does not pay for the kit."""
    script = (
        "import corvo.testing.plugin, sys; print([m for m in sys.modules if 'corvo.engine' in m])"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert finished.stdout.strip() == "[]"
