"""docs/start.md, typed as it is printed."""

import re
import shutil
from pathlib import Path

import pytest

from tests.support.page import Page, blocks_of, free_port
from tests.support.process import ROOT
from tests.support.worker import wait_until

PAGE = ROOT / "docs" / "start.md"
pytestmark = pytest.mark.skipif(
    shutil.which("curl") is None or shutil.which("make") is None,
    reason="the page uses make and curl",
)


def type_until(page: Page, text: str) -> str:
    """Do blocks until one prints a text."""
    while (printed := page.step()) is not None:
        if text in printed:
            return printed
    raise AssertionError(f"nothing on the page printed {text!r}")


def test_start_works_as_printed(tmp_path: Path) -> None:
    """Server, task, worker, failure, repair, schedule, test, and the same again with curl."""
    folder, port = tmp_path / "start", free_port()
    folder.mkdir()
    with Page(PAGE, folder, f"http://127.0.0.1:{port}", ports={"8080": port}) as page:
        # What make would do, without installing anything: the environment is the one we run in.
        make = f"{shutil.which('make')} --no-print-directory --dry-run --directory {ROOT}"
        page.provide("make", f'eval "$({make} "$@" BIND=127.0.0.1:{port} | tail -1)"')
        first = type_until(page, '"state":"completed"')
        assert '"result":"report of January 2026"' in first
        failed = type_until(page, "dead")
        assert failed.count("ValueError") >= 2
        assert page.step() == ""  # the new jobs.py
        wait_until(lambda: page.log().count(" serves reports") == 2)
        assert '"result":"report of January 2026"' in (page.step() or "")
        assert "{'monthly': 'created'}" in type_until(page, "monthly")
        type_until(page, "1 passed")
        assert '"status":"retrying"' in type_until(page, '"next_attempt_at"')
        why = page.step() or ""
        assert "retrying" in why, why
        type_until(page, '"state":"completed"')
        assert len(page.rest()) == 1


def test_every_shell_block_of_the_page_is_typed() -> None:
    """No block in another language of the shell escapes the walk."""
    fences = re.findall(r"^```(\w*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    opened = [language for language in fences if language]
    assert set(opened) == {"bash", "python"}
    assert len(blocks_of(PAGE)) == len(opened)
