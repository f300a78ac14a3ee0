"""One server for the tests of a module; each test has queues of its own."""

from collections.abc import Iterator

import pytest

from tests.support.process import ServerProcess
from tests.support.screen import Caller


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server as a person would start it."""
    with ServerProcess(tmp_path_factory.mktemp("top") / "data") as running:
        yield running


@pytest.fixture
def caller(server: ServerProcess) -> Caller:
    """Somebody who enqueues, fetches and looks, beside the screen."""
    return Caller(server.port)
