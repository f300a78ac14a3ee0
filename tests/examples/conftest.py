"""One server for all examples, and each example in a copy of its folder."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from corvo_sdk import Client
from tests.support.page import Page, free_port
from tests.support.process import ROOT, ServerProcess


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

    def __call__(self, name: str, *ports: str, url: str = "") -> Page: ...


@pytest.fixture
def walk(server: ServerProcess, tmp_path: Path) -> Iterator[Start]:
    pages: list[Page] = []

    def start(name: str, *ports: str, url: str = "") -> Page:
        folder = tmp_path / name
        shutil.copytree(
            ROOT / "examples" / name, folder, ignore=shutil.ignore_patterns("__pycache__")
        )
        own = {port: free_port() for port in ports}
        pages.append(Page(folder / "README.md", folder, url or server.url, ports=own))
        return pages[-1]

    yield start
    for each in pages:
        each.__exit__()
