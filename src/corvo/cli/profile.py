"""Profiles: where servers are and how to be known there, kept in a file.

    profile = "local"                     # the one to use when none is named

    [profiles.local]
    url = "http://127.0.0.1:8080"

    [profiles.production]
    url = ["https://one.example.com", "https://two.example.com"]
    api_key = "…"
    output = "json"

Precedence: an option of the command; the profile it names with `--profile`; the environment
(`CORVO_URL`, `CORVO_API_KEY`, `CORVO_OUTPUT`); the profile named by `CORVO_PROFILE_NAME` or by the
file; the default.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from corvo.cli.failure import SetupError

FILE_VARIABLE: Final = "CORVO_CLI_CONFIG"
NAME_VARIABLE: Final = "CORVO_PROFILE_NAME"
FILE_BYTES_MAX: Final = 1 << 20


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One named server, or several that are one cluster."""

    url: str | list[str] | None = None
    api_key: str | None = None
    output: str | None = None

    @property
    def address(self) -> str | None:
        return ",".join(self.url) if isinstance(self.url, list) else self.url


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    profile: str | None = None
    profiles: dict[str, Profile] = {}


def path_of(environment: Mapping[str, str]) -> Path:
    """Where the file lies, whether or not there is one."""
    named = environment.get(FILE_VARIABLE)
    if named:
        return Path(named)
    home = environment.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    return Path(home) / "corvo" / "config.toml"


def named_profile(environment: Mapping[str, str], name: str | None) -> Profile:
    """The profile of this name; without one, the one the environment or the file names, if any."""
    path = path_of(environment)
    found = _read(path, is_required=FILE_VARIABLE in environment)
    wanted = name or environment.get(NAME_VARIABLE) or found.profile
    if wanted is None:
        return Profile()
    profile = found.profiles.get(wanted)
    if profile is None:
        listed = ", ".join(sorted(found.profiles)) or "none"
        raise SetupError(f"no profile {wanted!r} in {path}", hint=f"there are: {listed}")
    return profile


def names(environment: Mapping[str, str]) -> list[str]:
    """The names of all profiles, sorted."""
    return sorted(_read(path_of(environment), is_required=False).profiles)


def _read(path: Path, *, is_required: bool) -> _File:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        if is_required:
            raise SetupError(f"{path} does not exist", hint=f"see {FILE_VARIABLE}") from error
        return _File()
    except OSError as error:
        raise SetupError(f"{path} can not be read: {error.strerror}") from error
    if len(content) > FILE_BYTES_MAX:
        raise SetupError(f"{path} is larger than {FILE_BYTES_MAX} bytes")
    try:
        return msgspec.convert(tomllib.loads(content.decode()), _File)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        hint = "it holds profile = NAME and [profiles.NAME] with url, api_key, output"
        raise SetupError(f"{path} can not be used: {error}", hint=hint) from error
