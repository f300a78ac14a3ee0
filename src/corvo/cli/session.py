"""What every command shares: which server it talks to, and how it prints.

`connected` adds the options and hands the command a `Session`; `located` does the same for one that
shows screens and prints nothing, `printing` for those that need no server. The connection is made
at the first call, so that a mistake in the arguments is reported before anything is sent.
"""

import os
from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, Final, TypeVar

import click

from corvo.cli.client import API, DEFAULT_URL, Client
from corvo.cli.failure import SetupError
from corvo.cli.output import FORMS, Printer
from corvo.cli.profile import Profile, named_profile

Function = TypeVar("Function", bound=Callable[..., Any])

_OUTPUT_HELP: Final = "table for people, the others for programs  [CORVO_OUTPUT]"


class Session(Printer, frozen=True, dict=True):
    """A printer that knows a server."""

    url: str = DEFAULT_URL
    api_key: str | None = None

    @cached_property
    def client(self) -> Client:
        return Client(self.url, api_key=self.api_key, retries=2)

    def call(self, method: str, path: str, body: object = None, **options: Any) -> Any:
        """Send one request below the prefix of the API and return the body of the answer."""
        return self.client.call(method, API + path, body, **options).body


def session_of(
    url: str | None, api_key: str | None, profile: str | None, output: str | None
) -> Session:
    """Join options, environment and profile into what a command works with."""
    found = named_profile(os.environ, profile)
    # A profile named on the line was meant for this call and comes before the environment.
    first, last = (found, Profile()) if profile else (Profile(), found)
    environment = os.environ
    form = output or first.output or environment.get("CORVO_OUTPUT") or last.output
    if form is not None and form not in FORMS:
        raise SetupError(f"{form!r} is no form of output", hint=f"one of: {', '.join(FORMS)}")
    return Session(
        form=form or "table",
        is_named=form is not None,
        url=url or first.address or environment.get("CORVO_URL") or last.address or DEFAULT_URL,
        api_key=api_key or first.api_key or environment.get("CORVO_API_KEY") or last.api_key,
    )


def connected(function: Function) -> Function:
    """Add the options of a command that talks to a server; it gets `session`."""
    return located(_output_option(function))


def located(function: Function) -> Function:
    """Add the options that say which server, and no form of output; it gets `session`."""

    @wraps(function)
    def wrapped(
        *arguments: Any,
        url: str | None,
        api_key: str | None,
        profile: str | None,
        output: str | None = None,
        **options: Any,
    ) -> Any:
        session = session_of(url, api_key, profile, output)
        return function(*arguments, session=session, **options)

    for decorate in (
        click.option("--profile", help="named server of the profile file  [CORVO_PROFILE_NAME]"),
        click.option("--api-key", help="sent with every request  [CORVO_API_KEY]"),
        click.option(
            "--url",
            help=f"the server; several with commas  [CORVO_URL]  [default: {DEFAULT_URL}]",
        ),
    ):
        wrapped = decorate(wrapped)
    return wrapped  # pyright: ignore[reportReturnType] - a decorated function stands for its own


def printing(function: Function) -> Function:
    """Add `--output` to a command that needs no server; it gets `printer`."""

    @wraps(function)
    def wrapped(*arguments: Any, output: str | None, **options: Any) -> Any:
        session = session_of(None, None, None, output)
        return function(*arguments, printer=session, **options)

    return _output_option(wrapped)  # pyright: ignore[reportReturnType] - as above


def _output_option(function: Any) -> Any:
    return click.option("--output", type=click.Choice(FORMS), help=_OUTPUT_HELP)(function)
