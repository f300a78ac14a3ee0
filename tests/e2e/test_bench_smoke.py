"""The figures of bench/ run: tiny, with their own checks, proving nothing about speed."""

import subprocess
import sys

import pytest

from tests.support.process import ROOT, environment


@pytest.mark.parametrize(
    "figure",
    [
        "enqueue",
        "mixed",
        "engine",
        "batch",
        "latency",
        "parked",
        "gated",
        "backlog",
        "restart",
        "search",
        "kept",
        "view",
        "peers",  # skips itself where the other systems are not installed
        "worker",
        "catchup",
        "rebuild",
        "stream",
    ],
)
def test_figure_runs_and_verifies_itself(figure: str) -> None:
    """A figure that can not run, or whose run is wrong, fails here first."""
    finished = subprocess.run(
        [sys.executable, "-m", "bench", figure, "--quick"],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "FAILED" not in finished.stdout
