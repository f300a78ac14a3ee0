"""`corvo top` where it can not be shown."""

from click.testing import CliRunner

from corvo.cli.main import cli
from corvo.cli.top.command import TerminalError


def test_without_a_terminal_it_says_what_to_use_instead() -> None:
    """A pipe gets a sentence and a hint, not a screen."""
    result = CliRunner().invoke(cli, ["top"])
    assert isinstance(result.exception, TerminalError)
    assert "needs a terminal" in result.exception.message
    assert result.exception.hint == "for scripts: corvo queues --output json"


def test_an_interval_out_of_bounds_is_refused() -> None:
    """Nobody looks a thousand times a second by mistake."""
    assert CliRunner().invoke(cli, ["top", "--interval", "0.001"]).exit_code == 2
