"""The description of the API says what the router serves: nothing is missing, nothing is extra."""

import re
from pathlib import Path
from typing import Any

import pytest

from corvo.api.app import Surface
from corvo.api.errors import CODES
from corvo.api.openapi import document
from corvo.api.openapi.catalog import CATALOG
from tests.support.server import running

ROOT = Path(__file__).parents[3]
SPEC = ROOT / "spec" / "openapi.json"


@pytest.fixture(scope="module")
def served() -> set[tuple[str, str]]:
    """Method and path of everything a server answers."""
    with running("fast") as server:

        async def look() -> Surface:
            return server.surface()

        surface = server.run(look)
    return {(method, document.plain_path(path)) for method, path in surface.operations}


def test_every_route_is_described(served: set[tuple[str, str]]):
    """To repair: add one line per route to api/openapi/catalog.py and run `make openapi`."""
    described = {(item.method, item.path) for item in CATALOG}
    missing = sorted(f"{method} {path}" for method, path in served - described)
    assert missing == [], "add these to api/openapi/catalog.py, then run make openapi"


def test_routes_that_write_their_own_answers_are_among_them(served: set[tuple[str, str]]):
    """Streams and waits name their methods, too."""
    for path in ("events", "jobs/{id}/wait", "bulk/{id}/progress"):
        assert ("GET", f"/api/v1/{path}") in served


def test_nothing_is_described_that_is_not_served(served: set[tuple[str, str]]):
    """To repair: remove the lines from api/openapi/catalog.py and run `make openapi`."""
    described = {(item.method, item.path) for item in CATALOG}
    extra = sorted(f"{method} {path}" for method, path in described - served)
    assert extra == [], "remove these from api/openapi/catalog.py, then run make openapi"


def test_no_operation_is_described_twice():
    """One line per operation, and an id of its own for each."""
    pairs = [(item.method, item.path) for item in CATALOG]
    assert len(pairs) == len(set(pairs))
    paths = document.build(CATALOG)["paths"]
    names = [each["operationId"] for methods in paths.values() for each in methods.values()]
    assert len(names) == len(set(names)) == len(pairs)


def test_the_file_in_the_repository_is_the_document():
    """`spec/openapi.json` is what a server of this version serves; `make openapi` rewrites it."""
    made = document.encode(document.build(CATALOG))
    assert SPEC.read_bytes() == made, "run make openapi"


def test_every_reference_leads_somewhere():
    """No `$ref` dangles."""
    made = document.build(CATALOG)
    for target in set(re.findall(rb'"\$ref": ?"#/([^"]+)"', document.encode(made))):
        at: Any = made
        for key in target.decode().split("/"):
            assert key in at, target
            at = at[key]


def test_refusals_are_codes_of_the_error_table():
    """A code that the description names is one the server can answer."""
    for item in CATALOG:
        assert set(item.refuses) <= set(CODES), item.path
