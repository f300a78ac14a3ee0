"""A server, a client of either kind, and a rude server in between."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.process import ServerProcess
from tests.support.rude import RudeServer, rude
from tests.support.sdk import SHELLS, client_of
from tests.support.server import Server, SystemClock, running


@pytest.fixture(scope="session")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server as a person starts it; one for all tests that need a view or a directory."""
    data: Path = tmp_path_factory.mktemp("sdk") / "data"
    with ServerProcess(data, "--webhook-allow", "127.0.0.1") as process:
        yield process


@pytest.fixture
def server() -> Iterator[Server]:
    with running("fast", clock=SystemClock()) as server:
        yield server


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def client(server: Server, shell: str) -> Iterator[Any]:
    with client_of(shell, f"http://127.0.0.1:{server.port}") as client:
        yield client


@pytest.fixture
def middle(server: Server) -> Iterator[RudeServer]:
    with rude(server.port) as middle:
        yield middle
