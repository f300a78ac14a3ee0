"""`corvo top` without a terminal: the real application, pressed and read like one."""

import asyncio
import http.client
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import Input

from corvo.cli.top.app import TopApp
from corvo.cli.top.source import connect
from corvo.runtime.clock import SystemClock

PATIENCE_S = 40
GLANCE_S = 0.1  # reading the whole screen costs a good part of that


class Watch:
    """An application under way, with what a test does to it and reads from it."""

    def __init__(self, app: TopApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    def text(self) -> str:
        """The screen as it is seen, line by line."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips)

    def line(self, word: str) -> str:
        """The first line that holds a word; empty when none does."""
        return next((line for line in self.text().splitlines() if word in line), "")

    def cells(self, word: str) -> list[str]:
        """What stands in the row that holds a word, without the signs of cursor and mark."""
        return self.line(word).replace("▌", " ").replace("●", " ").split()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def paste(self, text: str) -> None:
        """Put a text into the field that has the focus, as a terminal pastes it."""
        field = self.app.screen.focused
        assert isinstance(field, Input)
        field.post_message(Paste(text))
        await self.until(lambda: text in field.value)

    async def until(self, fact: Callable[[], Any]) -> None:
        """Wait for a fact; what is on the screen is told when it never comes."""
        loop = asyncio.get_running_loop()
        late = loop.time() + PATIENCE_S
        while not fact():
            assert loop.time() < late, f"never came true, on the screen:\n{self.text()}"
            await self.pilot.pause(GLANCE_S)

    async def sees(self, *words: str) -> None:
        """Wait until all words are on the screen."""
        await self.until(lambda: all(word in self.text() for word in words))

    async def misses(self, word: str) -> None:
        """Wait until a word is gone from the screen."""
        await self.until(lambda: word not in self.text())


def watch(
    url: str,
    story: Callable[[Watch], Awaitable[None]],
    *,
    size: tuple[int, int] = (160, 40),
    queue: str = "",
) -> None:
    """Start the application, play a story with it, end it."""

    async def play() -> None:
        app = TopApp(connect(url, None), SystemClock(), interval_s=0.2, queue=queue)
        async with app.run_test(size=size) as pilot:
            await story(Watch(app, pilot))

    asyncio.run(play())


class Caller:
    """A plain client, for what a test wants done to the server meanwhile."""

    def __init__(self, port: int) -> None:
        self._port = port

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send one request on a connection of its own; returns the decoded body."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        encoded = None if body is None else msgspec.json.encode(body)
        connection.request(method, "/api/v1" + path, encoded, {"content-type": "application/json"})
        response = connection.getresponse()
        content = response.read()
        connection.close()
        assert response.status < 500, content
        return msgspec.json.decode(content) if content else None

    def enqueue(self, queue: str, **fields: Any) -> str:
        return self.call("POST", "/enqueue", {"queue": queue} | fields)["job_id"]

    def fetch(self, queue: str, worker: str = "w", **fields: Any) -> Any:
        body = {"queues": [queue], "worker_id": worker, "timeout": 0} | fields
        return self.call("POST", "/fetch", body)

    def kill(self, queue: str, error: str) -> str:
        """Make a dead job; returns its id."""
        job_id = self.enqueue(queue, max_retries=1)
        fetched = self.fetch(queue)
        assert fetched["job_id"] == job_id
        self.call("POST", f"/fail/{job_id}", {"error": error, "backtrace": "line one\nline two"})
        return job_id

    def job(self, job_id: str) -> Any:
        return self.call("GET", f"/jobs/{job_id}")

    def state(self, job_id: str) -> str:
        return self.job(job_id).get("state", "gone")

    def queue(self, name: str) -> Any:
        return self.call("GET", f"/queues/{name}")
