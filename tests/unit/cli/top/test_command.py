"""`corvo top` where it can not be shown."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from corvo.cli.failure import SetupError
from corvo.cli.main import cli
from corvo.cli.top import app, command, source
from corvo.cli.top.command import TerminalError

PROFILES = """\
profile = "usual"
[profiles.usual]
url = "http://usual:1"
api_key = "usual-key"
[profiles.other]
url = ["http://one:1", "http://two:2"]
"""


def test_without_a_terminal_it_says_what_to_use_instead() -> None:
    """A pipe gets a sentence and a hint, not a screen."""
    result = CliRunner().invoke(cli, ["top"])
    assert isinstance(result.exception, TerminalError)
    assert "needs a terminal" in result.exception.message
    assert result.exception.hint == "for scripts: corvo queues --output json"


def test_an_interval_out_of_bounds_is_refused() -> None:
    """Nobody looks a thousand times a second by mistake."""
    assert CliRunner().invoke(cli, ["top", "--interval", "0.001"]).exit_code == 2


@pytest.mark.parametrize(
    ("line", "variables", "called"),
    [
        ([], {}, ("http://usual:1", "usual-key")),
        ([], {"CORVO_URL": "http://env:1"}, ("http://env:1", "usual-key")),
        (
            ["--profile", "other"],
            {"CORVO_URL": "http://env:1"},
            ("http://one:1,http://two:2", None),
        ),
        ([], {"CORVO_PROFILE_NAME": "other"}, ("http://one:1,http://two:2", None)),
        (
            ["--profile", "other", "--url", "http://line:1", "--api-key", "k"],
            {},
            ("http://line:1", "k"),
        ),
    ],
)
def test_the_server_is_found_as_other_commands_find_it(
    line: list[str],
    variables: dict[str, str],
    called: tuple[str, str | None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An option, then the profile it names, then the environment, then the usual profile."""
    for name in ("CORVO_URL", "CORVO_API_KEY", "CORVO_PROFILE_NAME", "CORVO_OUTPUT"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "profiles.toml"
    path.write_text(PROFILES, encoding="utf-8")
    seen: list[tuple[str, str | None]] = []
    connect = source.connect

    def noted(url: str, api_key: str | None) -> source.Source:
        seen.append((url, api_key))
        return connect(url, api_key)

    def run(self: app.TopApp, *_: Any, **__: Any) -> None:
        self._return_code = 0

    monkeypatch.setattr(command, "_check_terminal", lambda: None)
    monkeypatch.setattr(source, "connect", noted)
    monkeypatch.setattr(app.TopApp, "run", run)
    variables = {"CORVO_CLI_CONFIG": str(path)} | variables
    result = CliRunner().invoke(cli, ["top", *line], env=variables, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert seen == [called]


def test_a_profile_that_is_not_there_is_told(tmp_path: Path) -> None:
    """With the names there are, as everywhere."""
    path = tmp_path / "profiles.toml"
    path.write_text(PROFILES, encoding="utf-8")
    variables = {"CORVO_CLI_CONFIG": str(path)}
    result = CliRunner().invoke(cli, ["top", "--profile", "none"], env=variables)
    assert isinstance(result.exception, SetupError)
    assert result.exception.hint == "there are: other, usual"
