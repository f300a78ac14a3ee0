"""A crawler that never asks a site more often than agreed, however many workers there are."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin, urlsplit

from aiohttp import ClientSession, ClientTimeout

from corvo_sdk import Context, Corvo, Discard, Retry, Unique

app = Corvo("crawler")
BYTES_MAX = 1_000_000
LIMIT = "example-site"  # its numbers are kept by the server: see crawl.py


class Links(HTMLParser):
    """Collects the links of a page, and its title."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.title = ""
        self._is_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_title = tag == "title"
        self.links += [value for name, value in attrs if tag == "a" and name == "href" and value]

    def handle_data(self, data: str) -> None:
        if self._is_title:
            self.title += data.strip()


@app.lifespan
async def session() -> AsyncIterator[ClientSession]:
    """Keep connections for all jobs of a worker; `ctx.state` is what is yielded."""
    async with ClientSession(timeout=ClientTimeout(total=20)) as session:
        yield session


@app.task(
    queue="crawl",
    retries=5,
    timeout="30s",
    # A page is asked for once an hour, however many pages link to it.
    unique=Unique("{url}", period="1h", mode="window"),
    # A job of this limit is handed out when the limit has room. Until then it waits at the server
    # and takes up no slot of a worker.
    limits=[LIMIT],
)
async def crawl(ctx: Context, url: str, depth: int = 0) -> int:
    """Read one page and enqueue those it links to; gives how many of them are new."""
    session: ClientSession = ctx.state
    async with session.get(url, allow_redirects=False) as answer:
        if answer.status == 429:  # the site asks for more patience than agreed
            raise Retry(after=answer.headers.get("Retry-After", "10") + "s", error="429")
        if 400 <= answer.status < 500:  # asking again would not help
            raise Discard(f"{answer.status} {answer.reason}")
        answer.raise_for_status()
        text = (await answer.content.read(BYTES_MAX)).decode(errors="replace")
    page = Links()
    page.feed(text)
    save(url, page.title)
    if depth == 0:
        return 0
    targets = {urldefrag(urljoin(url, link)).url for link in page.links}
    here = [each for each in sorted(targets) if urlsplit(each).netloc == urlsplit(url).netloc]
    handles = await crawl.aenqueue_many([crawl.call(each, depth - 1) for each in here])
    return sum(not handle.is_duplicate for handle in handles)


def save(url: str, title: str) -> None:
    with closing(sqlite3.connect("pages.db", timeout=10)) as pages, pages:
        pages.execute("CREATE TABLE IF NOT EXISTS pages (url TEXT PRIMARY KEY, title TEXT)")
        pages.execute("INSERT OR REPLACE INTO pages VALUES (?, ?)", (url, title))
