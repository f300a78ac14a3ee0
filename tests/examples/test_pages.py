"""No example is forgotten."""

from tests.support.page import blocks_of
from tests.support.process import ROOT

EXAMPLES = ROOT / "examples"


def test_every_example_has_a_page_a_line_in_the_index_and_a_test() -> None:
    """A folder that nobody walks would stop working, and nobody would know."""
    folders = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
    assert len(folders) == 8
    index = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for name in folders:
        assert f"[{name}]({name}/README.md)" in index
        assert blocks_of(EXAMPLES / name / "README.md") != []
        assert (ROOT / "tests" / "examples" / f"test_{name}.py").exists()
