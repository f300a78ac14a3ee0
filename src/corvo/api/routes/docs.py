"""The description of the API: the OpenAPI document, and a page that shows it."""

from functools import cache
from importlib import resources
from typing import Final

from corvo.api.openapi import document
from corvo.api.openapi.catalog import CATALOG
from corvo.api.routing import Answer, Call, Operation, Table

# No third-party origin, nothing inline: the page can load its own two files and the document.
_POLICY: Final = (
    b"content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    b"connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    b"frame-ancestors 'none'\r\n"
    b"x-content-type-options: nosniff\r\n"
    b"referrer-policy: no-referrer\r\n"
    b"cache-control: no-cache\r\n"
)


@cache
def _document() -> bytes:
    return document.encode(document.build(CATALOG))


@cache
def _file(name: str) -> bytes:
    return resources.files("corvo.api.openapi").joinpath("page", name).read_bytes()


def _page(name: str, kind: bytes) -> Operation:
    async def serve(_call: Call) -> Answer:
        return Answer(200, _file(name), _POLICY, kind=kind)

    return serve


class DocsRoutes:
    """What describes the server to programs and to people; the same for every server."""

    def table(self) -> Table:
        """Paths, methods and operations."""
        return {
            "/openapi.json": {"GET": self.openapi},
            "/api/v1/openapi.json": {"GET": self.openapi},
            "/docs": {"GET": _page("index.html", b"text/html; charset=utf-8")},
            "/docs/page.js": {"GET": _page("page.js", b"text/javascript; charset=utf-8")},
            "/docs/page.css": {"GET": _page("page.css", b"text/css; charset=utf-8")},
        }

    async def openapi(self, _call: Call) -> Answer:
        """`GET /openapi.json`: OpenAPI 3.1, made from the types that decode requests."""
        return Answer(200, _document(), b"cache-control: no-cache\r\n")
