"""What others wrote, as a terminal may see it."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from corvo.cli.visible import visible


@given(st.text())
def test_nothing_a_terminal_would_obey_is_left(text: str) -> None:
    """No control character, no line end, no change of direction."""
    shown = visible(text)
    assert not [sign for sign in shown if unicodedata.category(sign) in {"Cc", "Zl", "Zp"}]
    assert "\u202e" not in shown


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_what_can_be_read_stays(text: str) -> None:
    """Letters of every script, signs and pictures are printed as they are."""
    assert visible(text) == text
