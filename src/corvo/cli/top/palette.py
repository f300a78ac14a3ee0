"""The colours, few and quiet: one accent, and three that mean something."""

from typing import Final

from rich.style import Style
from textual.theme import Theme

GROUND: Final = "#0f1216"
RAISED: Final = "#171b21"
PANEL: Final = "#20262e"
LETTERS: Final = "#d3d8df"
QUIET: Final = "#7b8592"
ACCENT: Final = "#82aad0"
GOOD: Final = "#93b97b"
WARN: Final = "#d8ad5a"
BAD: Final = "#de7c74"

THEME: Final = Theme(
    name="corvo",
    primary=ACCENT,
    secondary=QUIET,
    accent=ACCENT,
    warning=WARN,
    error=BAD,
    success=GOOD,
    foreground=LETTERS,
    background=GROUND,
    surface=RAISED,
    panel=PANEL,
    dark=True,
    variables={
        "footer-background": RAISED,
        "footer-key-foreground": ACCENT,
        "footer-description-foreground": QUIET,
        "scrollbar": PANEL,
        "scrollbar-hover": QUIET,
        "scrollbar-active": QUIET,
        "scrollbar-background": GROUND,
        "scrollbar-background-hover": GROUND,
        "scrollbar-background-active": GROUND,
        "scrollbar-corner-color": GROUND,
    },
)

STYLES: Final[dict[str, Style]] = {
    "plain": Style(color=LETTERS),
    "dim": Style(color=QUIET),
    "good": Style(color=GOOD),
    "warn": Style(color=WARN),
    "bad": Style(color=BAD),
    "accent": Style(color=ACCENT),
    "title": Style(color=LETTERS, bold=True),
}

# The sign says what the colour says, for terminals and eyes without colours.
STATE_SIGNS: Final[dict[str, tuple[str, str]]] = {
    "pending": ("○", "plain"),
    "blocked": ("◌", "warn"),
    "active": ("▶", "accent"),
    "scheduled": ("◷", "dim"),
    "retrying": ("↻", "warn"),
    "held": ("‖", "warn"),
    "completed": ("✓", "good"),
    "dead": ("✗", "bad"),
    "cancelled": ("⊘", "dim"),
}

SHEET: Final = """
Screen { background: $background; color: $foreground; }
Overview { height: auto; padding: 0 1; background: $surface; }
TabBar { height: 1; padding: 0 1; margin-top: 1; background: $background; }
.-short TabBar { margin-top: 0; }
ContentSwitcher { height: 1fr; }
Page { height: 1fr; }
Table {
    height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; scrollbar-gutter: stable;
    background: $background;
}
Table > .table--plain { color: $foreground; background: $background; }
Table > .table--dim { color: $secondary; }
Table > .table--good { color: $success; }
Table > .table--warn { color: $warning; }
Table > .table--bad { color: $error; }
Table > .table--accent { color: $accent; }
Table > .table--head { color: $secondary; background: $background; }
Table > .table--head-sorted { color: $accent; background: $background; text-style: bold; }
Table > .table--cursor { color: $foreground; background: #2b3644; text-style: bold; }
Table > .table--cursor-blurred { color: $foreground; background: $panel; }
Table > .table--marked { color: $foreground; background: #1b222b; }
#filter { display: none; height: 1; border: none; padding: 0 1; background: $panel; }
#filter.shown { display: block; }
StatusLine { height: 1; padding: 0 1; background: $surface; color: $secondary; }
Footer { background: $surface; }
#failures-split { height: 1fr; }
#groups { height: 2fr; }
#dead { height: 3fr; }
.caption { height: 1; padding: 0 1; color: $secondary; background: $background; }
ModalScreen { align: center middle; background: $background 60%; }
.dialog {
    width: 72; max-width: 95%; height: auto; max-height: 90%; padding: 1 2;
    background: $surface; border: round $secondary;
}
.dialog .title { text-style: bold; margin-bottom: 1; }
.dialog .body { color: $secondary; margin-bottom: 1; }
.dialog Input { height: 1; border: none; background: $panel; padding: 0 1; margin-bottom: 1; }
.dialog Horizontal { height: 1; }
.dialog Button { height: 1; width: auto; min-width: 0; border: none; margin-right: 2; }
.dialog Button:focus { text-style: bold reverse; }
.dialog.help { width: 100; scrollbar-size-vertical: 1; }
#detail-columns { height: 1fr; }
#detail-columns > VerticalScroll {
    width: 1fr; height: 1fr; padding: 0 1; scrollbar-size-vertical: 1;
}
#detail-right { width: 1fr; height: 1fr; border-left: solid $panel; }
#detail-right > VerticalScroll { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }
#timeline { text-wrap: nowrap; text-overflow: ellipsis; }
#timeline-scroll { border-top: solid $panel; }
.-narrow #detail-columns { layout: vertical; }
.-narrow #detail-right { border-left: none; border-top: solid $panel; }
#detail-title { height: 1; padding: 0 1; background: $surface; }
"""
