"""The pages about the clients are true: their examples run, their lists are complete."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corvo_sdk import Client
from corvo_sdk.errors import CorvoError
from corvo_sdk.protocol.call import Call, Repeat, Reply, Request
from tests.sdk.test_completeness import OWN, SAMPLES, Recorder, public, sample
from tests.support.process import ServerProcess
from tests.tidy.source import ROOT

PAGE = ROOT / "docs/sdk/client.md"
START = ROOT / "sdks/python/README.md"
NAMES = re.compile(r"`(\w+)`")


class Watched(Client):
    """A client that says how each call would be repeated."""

    repeat: Repeat | None = None

    def _exchange(
        self, call: Call[Any], timeout_s: float | None, send: Callable[[str, Request], Reply]
    ) -> Reply:
        self.repeat = call.repeat
        return super()._exchange(call, timeout_s, send)


def _not_repeated() -> set[str]:
    found: set[str] = set()
    # With a token, as a worker reports.
    tokens = {name: {"job_id": "x", "lease_token": 1} for name in ("ack", "fail", "release")}
    tokens["snooze"] = {"job_id": "x", "lease_token": 1, "delay": 1}
    for name, method in public(Client).items():
        if name in OWN:
            continue
        client = Watched("http://nowhere", transport=Recorder())
        try:
            result = getattr(client, name)(**(tokens.get(name) or sample(name, method)))
            if inspect.isgenerator(result):
                next(result, None)
        except CorvoError:
            pass  # the answer is not that of this call
        assert client.repeat is not None, name
        if client.repeat is Repeat.UNLESS_SENT:
            found.add(name)
    return found


def test_page_lists_what_is_not_repeated() -> None:
    """The list is that of the endpoints, so nobody relies on a repetition that does not happen."""
    text = PAGE.read_text(encoding="utf-8")
    listed = text.split("<!-- not repeated -->")[1].split("<!-- end -->")[0]
    assert set(NAMES.findall(listed)) == _not_repeated()


def test_page_lists_every_method() -> None:
    """The table of methods has all there are and no others."""
    text = PAGE.read_text(encoding="utf-8")
    table = text.split("## Methods")[1].split("###")[0]
    assert set(NAMES.findall(table)) == public(Client).keys() - {"close"}
    assert SAMPLES.keys() <= public(Client).keys()


@pytest.mark.parametrize("page", [START, PAGE], ids=lambda page: page.stem)
def test_examples_run(page: Path, process: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block of Python on the page runs against a real server, in order."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 4
    monkeypatch.setenv("CORVO_URL", process.url)
    space: dict[str, Any] = {"__name__": "page"}
    for block in blocks:
        exec(block.replace("http://127.0.0.1:8080", process.url), space)
    space["client"].close()
