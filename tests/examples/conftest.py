"""One server for all examples, and each example in a copy of its folder."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from corvo_sdk import Client
from tests.support.process import ROOT, ServerProcess
from tests.support.walk import Walk, free_port


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("examples") / "data", "--view", "off") as server:
        yield server


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client


class Start(Protocol):
    """Opens the page of an example."""

    def __call__(self, name: str, *ports: str, url: str = "") -> Walk: ...


@pytest.fixture
def walk(server: ServerProcess, tmp_path: Path) -> Iterator[Start]:
    walks: list[Walk] = []

    def start(name: str, *ports: str, url: str = "") -> Walk:
        folder = tmp_path / name
        shutil.copytree(
            ROOT / "examples" / name, folder, ignore=shutil.ignore_patterns("__pycache__")
        )
        own = {port: free_port() for port in ports}
        walks.append(Walk(folder / "README.md", folder, url or server.url, ports=own))
        return walks[-1]

    yield start
    for each in walks:
        each.__exit__()
