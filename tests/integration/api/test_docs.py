"""The description of the API over a real socket: the document and the page that shows it."""

import re

from corvo.api.openapi import document
from corvo.api.openapi.catalog import CATALOG
from tests.support.server import Server


def test_the_document_is_served_with_and_without_the_prefix(server: Server):
    """OpenAPI 3.1, the same bytes under both paths."""
    made = document.encode(document.build(CATALOG))
    for path in ("/openapi.json", "/api/v1/openapi.json"):
        reply = server.request("GET", path)
        assert (reply.status, reply.body) == (200, made)
        assert reply.headers["content-type"] == "application/json"
    assert reply.json["openapi"] == "3.1.0"


def test_the_page_needs_nobody_but_this_server(server: Server):
    """Its policy allows no other origin and nothing inline, and all it names is served here."""
    reply = server.request("GET", "/docs")
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    page = reply.body.decode()
    named = re.findall(r'(?:href|src)="([^"]+)"', page)
    assert len(named) >= 3
    for path in named:
        assert path.startswith("/")
        found = server.request("GET", path)
        assert found.status == 200
        if path.startswith("/docs/"):
            assert not re.search(r"https?://", found.body.decode())
    assert "<style" not in page
    assert not re.search(r"<script(?![^>]*src=)", page)
    assert not re.search(r"\son\w+=", page)


def test_other_methods_are_refused(server: Server):
    """The document is read-only."""
    assert server.request("POST", "/openapi.json").headers["allow"] == "GET, HEAD"
    assert server.request("HEAD", "/docs").status == 200
