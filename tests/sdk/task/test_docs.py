"""The pages about tasks and the outbox are true: their code runs, in order, on a real server."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import Server

ROOT = Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", ["tasks", "outbox"])
def test_the_code_of_a_page_runs(
    name: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every block, one after the other, as a reader would paste them."""
    monkeypatch.setenv("CORVO_URL", f"http://127.0.0.1:{server.port}")
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / "docs/sdk" / f"{name}.md").read_text(encoding="utf-8"))
    assert len(blocks) >= 3
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, f"{name}.md", "exec"), names)
    names["app"].close()
