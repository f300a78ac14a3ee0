"""The questions `top` asks before it changes something, and the page that lists its keys."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.suggester import SuggestFromList
from textual.widgets import Button, Input, Static

from corvo.cli.top.actions import Action, Target
from corvo.cli.top.palette import STYLES
from corvo.cli.top.wording import plain, plural

SHOWN_IDS = 5

KEYS: Sequence[tuple[str, Sequence[tuple[str, str]]]] = (
    (
        "Everywhere",
        (
            ("1 2 3 4", "Queues, Jobs, Failures, Workers"),
            ("/", "filter; Enter applies it, Escape leaves it as it was"),
            ("Escape", "drop the marks, then the filter"),
            ("s  S", "sort by the next column, or turn; or click a heading"),
            ("↑ ↓ PgUp PgDn Home End", "move; also j k g G"),
            ("F5", "look again now"),
            ("?  q", "this page; quit"),
        ),
    ),
    (
        "Queues",
        (("Enter", "the jobs of the queue"), ("p", "pause or resume: marked ones, else this one")),
    ),
    (
        "Jobs and Failures",
        (
            ("Enter", "the job: fields, errors, timeline, why it does not run"),
            ("Space  a", "mark; mark all that are shown"),
            ("A", "mean all that match the filter, on every page"),
            ("r c m d", "retry, cancel, move, delete; asks first, with the count"),
            ("u", "take back the last cancel, move or delete"),
            ("f", "the next state: pending, active, … (Jobs)"),
            ("n  b", "next page, page before (Jobs)"),
            ("y", "copy the id"),
            ("Tab", "between kinds of errors and their jobs (Failures)"),
        ),
    ),
    (
        "Filter of Jobs",
        (
            ("queue:emails state:dead,held", "exact queue, any of these states"),
            ("tag:tenant=acme error:timeout", "a tag; part of an error"),
            ("worker:w1 id:job_01 kind:…", "worker, beginning of the id, kind of error"),
            ('jq:".amount > 100" hello', "an expression; words of the payload"),
        ),
    ),
)


class ConfirmDialog(ModalScreen[bool]):
    """Asks before an action, with the number of jobs it is about."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape", "answer(False)", "No"),
        Binding("left,right", "app.focus_next", show=False),
    ]

    def __init__(self, action: Action, target: Target) -> None:
        super().__init__()
        self._action = action
        self._target = target

    def compose(self) -> ComposeResult:
        asked = f"{self._action.verb} {plural(self._target.count, 'job')}?"
        with Vertical(classes="dialog"):
            yield Static(Text(asked), classes="title", id="question")
            yield Static(_about(self._action, self._target), classes="body")
            with Horizontal():
                # The harmless answer has the focus: Enter pressed once too often does nothing.
                yield Button("No  n", id="no")
                yield Button(
                    f"{self._action.verb}  y",
                    id="yes",
                    variant="error" if self._action.name == "delete" else "primary",
                )

    def on_mount(self) -> None:
        self.query_one("#no", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, answer: bool) -> None:  # noqa: FBT001 - Textual calls it by position
        self.dismiss(answer)


class MoveDialog(ModalScreen[str | None]):
    """Asks which queue jobs are to be put into."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "No")]

    def __init__(self, action: Action, target: Target, queues: Sequence[str]) -> None:
        super().__init__()
        self._action = action
        self._target = target
        self._queues = queues

    def compose(self) -> ComposeResult:
        asked = f"Move {plural(self._target.count, 'job')} to which queue?"
        with Vertical(classes="dialog"):
            yield Static(Text(asked), classes="title", id="question")
            yield Static(_about(self._action, self._target), classes="body")
            yield Input(
                placeholder="name of a queue",
                max_length=200,
                suggester=SuggestFromList(self._queues, case_sensitive=True),
                id="queue",
                compact=True,
            )
            yield Static(Text("Enter moves them · Escape does not"), classes="body")

    def on_mount(self) -> None:
        self.query_one("#queue", Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        name = event.value.strip()
        if name:
            self.dismiss(name)

    def action_leave(self) -> None:
        self.dismiss(None)


def _about(action: Action, target: Target) -> Text:
    text = Text()
    if target.label:
        text.append(plain(target.label) + "\n")
    for job_id in target.job_ids[:SHOWN_IDS]:
        text.append(f"{plain(job_id)}\n", STYLES["plain"])
    if len(target.job_ids) > SHOWN_IDS:
        text.append(f"… and {len(target.job_ids) - SHOWN_IDS} more\n")
    text.append(action.note)
    return text


class HelpScreen(ModalScreen[None]):
    """All keys on one page."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "leave", "Close")
    ]

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog help"):
            yield Static(_keys())

    def action_leave(self) -> None:
        self.dismiss(None)


def _keys() -> Text:
    text = Text()
    for heading, keys in KEYS:
        text.append(f"{heading}\n", STYLES["title"])
        for key, meaning in keys:
            text.append(f"  {key:<32}", STYLES["accent"])
            text.append(f"{meaning}\n", STYLES["dim"])
        text.append("\n")
    text.append("Escape closes this page", STYLES["dim"])
    return text
