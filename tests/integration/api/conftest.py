"""Every test of this folder runs against a real socket, once through each lane."""

from collections.abc import Iterator

import pytest

from tests.support.server import LANES, Server, running


@pytest.fixture(params=LANES)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A fresh server; at the end nothing was reported and every invariant holds."""
    with running(request.param) as running_server:
        yield running_server
