"""Streams take the slow lane whatever the listener prefers, so one lane is enough here."""

from collections.abc import Iterator

import pytest

from tests.support.server import Server, running


@pytest.fixture
def server() -> Iterator[Server]:
    """A fresh server."""
    with running("fast") as running_server:
        yield running_server
