"""Every module that holds queries, so that whoever imports this one has them registered."""

from typing import Final

from corvo.view import fulltext, graph, overviews, queries, search

MODULES: Final = (fulltext, graph, overviews, search)
QUERIES: Final = queries.REGISTRY
