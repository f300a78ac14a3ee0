"""Bars and questions: only where a person is."""

import sys

import click
import pytest

from corvo.cli.output import is_coloured, paint
from corvo.cli.progress import Bar, confirm
from tests.support.cli import Terminal


def test_a_bar_is_drawn_on_a_terminal_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """It grows, never leaves the line, and leaves nothing behind."""
    terminal = Terminal(is_terminal=True)
    monkeypatch.setattr(sys, "stderr", terminal)
    with Bar("moving", 10) as bar:
        bar.show(5)
        assert "[" + "#" * 15 + "-" * 15 + "] 5/10" in terminal.text
        bar.show(30, 20)
        assert "[" + "#" * 30 + "] 30/20" in terminal.text
    assert "\n" not in terminal.text
    assert terminal.text.endswith("\r")
    assert terminal.text.rsplit("\r", 2)[1].strip() == ""


def test_a_bar_without_a_terminal_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs of scripts stay clean."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with Bar("moving") as bar:
        bar.show(5, 10)
    assert stream.text == ""


@pytest.mark.parametrize(("answer", "is_gone_on"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_a_question_needs_a_yes(
    monkeypatch: pytest.MonkeyPatch, answer: str, is_gone_on: bool
) -> None:
    """Anything else stops, before anything was done."""
    monkeypatch.setattr(sys, "stdin", Terminal(answer.encode(), is_terminal=True))
    monkeypatch.setattr(sys, "stderr", Terminal(is_terminal=True))
    monkeypatch.setattr(sys, "stdout", Terminal(is_terminal=True))
    if is_gone_on:
        confirm("Go on?", is_sure=False)
    else:
        with pytest.raises(click.Abort):
            confirm("Go on?", is_sure=False)


def test_a_script_is_never_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input is then what was piped in, not an answer."""
    monkeypatch.setattr(sys, "stdin", Terminal(b"n\n"))
    confirm("Go on?", is_sure=False)
    monkeypatch.setattr(sys, "stdin", Terminal(b"n\n", is_terminal=True))
    confirm("Go on?", is_sure=True)


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR says no, whatever its value."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", Terminal(is_terminal=True))
    assert is_coloured()
    assert paint("x", "red") != "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert paint("x", "red") == "x"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert not is_coloured()
