"""Pages that repeat what the code decides are generated from it."""

from corvo.machine.transitions import TRANSITIONS, diagram
from corvo.model.job import STATE_NAMES
from tests.tidy.source import ROOT


def test_the_lifecycle_page_shows_the_table_the_machine_decides_by() -> None:
    """The diagram and the rows of the page are those of machine/transitions.py."""
    page = (ROOT / "docs/concepts/job-lifecycle.md").read_text()
    generated = page.split("<!-- generated: transitions -->")[1].split("<!-- end -->")[0]
    assert diagram() in generated
    rows = [
        f"| {STATE_NAMES[row.source]} | {row.verb} | {STATE_NAMES[row.target]} |"
        for row in TRANSITIONS
    ]
    shown = [line for line in generated.splitlines() if line.startswith("| ")]
    assert shown == ["| from | what happens | to |", *rows]
