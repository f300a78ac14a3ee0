"""Every conversation in this folder is held with the machine, word for word.

    # prose: what is shown and why it matters
    > command arguments        consecutive commands are one entry: one group commit
    answer                     one line per command
      . event                  what was recorded, in order
    + 5s                       time passes
    ? job 1                    a look at the state

`make scenarios ARGS=--rewrite` writes down what the machine says now.
"""

from pathlib import Path

import pytest

from tests.scenarios.conversation import Conversation

FOLDER = Path(__file__).parent
SCENARIOS = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path, request: pytest.FixtureRequest):
    """The machine answers as written, its audit stays clean, a replay ends in the same state."""
    text = path.read_text()
    said = Conversation().hold(text)
    if request.config.getoption("--rewrite", default=False):
        path.write_text(said)
    assert text == said


def test_every_scenario_says_what_it_is_about():
    """A scenario starts with prose, so that whoever breaks it knows what broke."""
    assert [path.name for path in SCENARIOS if not path.read_text().startswith("# ")] == []
    assert len(SCENARIOS) >= 25
