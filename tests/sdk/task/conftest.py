"""A real server on a socket, and an app that enqueues there."""

from collections.abc import Iterator

import pytest

from corvo_sdk import Corvo
from tests.support.server import Server, SystemClock, running


@pytest.fixture
def server() -> Iterator[Server]:
    with running("fast", clock=SystemClock()) as server:
        yield server


@pytest.fixture
def app(server: Server) -> Iterator[Corvo]:
    app = Corvo("shop", url=f"http://127.0.0.1:{server.port}")
    yield app
    app.close()
