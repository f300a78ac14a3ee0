"""One server for all tests of the command line; each test has queues of its own."""

import itertools
from collections.abc import Iterator

import pytest

from tests.support.cli import Shell
from tests.support.process import ServerProcess

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    data = tmp_path_factory.mktemp("cli")
    flags = ("--fsync", "off", "--shutdown-timeout", "1ms", "--webhook-allow", "127.0.0.0/8")
    with ServerProcess(data, *flags) as running:
        yield running
        assert running.stop() == 0


@pytest.fixture
def shell(server: ServerProcess) -> Shell:
    return Shell(server.url)


@pytest.fixture
def queue() -> str:
    """A name that no other test uses."""
    return f"queue-{next(_numbers)}"
