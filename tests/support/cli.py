"""The command line in this process, against whatever server a test has: a real socket, no fork."""

import io
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from corvo.cli.client import API, Client
from corvo.cli.main import run
from tests.support.process import environment


class Outcome(msgspec.Struct):
    """What a command did."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.stdout)

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()


class Terminal(io.TextIOWrapper):
    """A stream of text that may claim to be a terminal."""

    def __init__(self, content: bytes = b"", *, is_terminal: bool = False) -> None:
        super().__init__(io.BytesIO(content), encoding="utf-8", write_through=True)
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    @property
    def text(self) -> str:
        content = self.buffer
        assert isinstance(content, io.BytesIO)
        return content.getvalue().decode()


class Shell:
    """Runs commands one after the other with the same variables."""

    def __init__(self, url: str) -> None:
        self.variables = {**environment(), "CORVO_URL": url}

    def __call__(
        self,
        *arguments: str,
        stdin: str = "",
        terminal: bool = False,
        variables: Mapping[str, str] | None = None,
    ) -> Outcome:
        """Run one command. `terminal`: all three streams say that a person is there."""
        streams = (
            Terminal(stdin.encode(), is_terminal=terminal),
            Terminal(is_terminal=terminal),
            Terminal(is_terminal=terminal),
        )
        with _standing_in(streams, self.variables | dict(variables or {})):
            try:
                code = run(list(arguments))
            except SystemExit as error:
                code = error.code if isinstance(error.code, int) else 0
        return Outcome(code, streams[1].text, streams[2].text)

    def ok(self, *arguments: str, **options: Any) -> Outcome:
        """Run a command that succeeds."""
        outcome = self(*arguments, **options)
        assert outcome.code == 0, f"{arguments}: {outcome.stderr}{outcome.stdout}"
        return outcome

    def json(self, *arguments: str, **options: Any) -> Any:
        """Run a command that succeeds, and read its result as a program would."""
        return self.ok(*arguments, "--output", "json", **options).json


def finish(shell: Shell, queue: str, error: str = "") -> str:
    """Be the worker of one job: complete it, or fail it with an error."""
    client = Client(shell.variables["CORVO_URL"])
    body = {"queues": [queue], "worker_id": "w", "timeout": 5}
    job = client.call("POST", f"{API}/fetch", body).body
    token = {"lease_token": job["lease_token"]}
    if error:
        client.call("POST", f"{API}/fail/{job['job_id']}", token | {"error": error})
    else:
        client.call("POST", f"{API}/ack/{job['job_id']}", token | {"result": {"n": 1}})
    client.close()
    return job["job_id"]


def kill(shell: Shell, queue: str, error: str = "boom") -> str:
    """A job that has died of an error."""
    job_id = shell.json("enqueue", queue, "{}", "--max-retries", "1")["job_id"]
    assert finish(shell, queue, error) == job_id
    return job_id


@contextmanager
def _standing_in(
    streams: tuple[Terminal, Terminal, Terminal], variables: dict[str, str]
) -> Iterator[None]:
    kept = sys.stdin, sys.stdout, sys.stderr, dict(os.environ)
    sys.stdin, sys.stdout, sys.stderr = streams
    os.environ.clear()
    os.environ.update(variables)
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = kept[:3]
        os.environ.clear()
        os.environ.update(kept[3])
