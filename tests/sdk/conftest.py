"""A server, a client of either kind, and a rude server in between."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.rude import RudeServer, rude
from tests.support.sdk import SHELLS, client_of
from tests.support.server import Server, SystemClock, running


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
