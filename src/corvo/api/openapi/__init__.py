"""The description of the HTTP API: OpenAPI 3.1 made from the wire types, and a page that shows it.

    from corvo.api.openapi import document
    served = document.build(CATALOG)

`catalog.py` has one line per operation; `shapes.py` the answers; `document.py` makes the document;
`page/` is what `/docs` serves. Requests are described by the very structs that decode them, so a
field cannot be accepted and undocumented. Tests hold the rest: every route of the router is in the
catalog and nothing else is, and a fuzzer compares real answers with the shapes.

Deliberately absent: anything that is asked at run time; the document is the same for every server
of a version. Read `catalog.py` first.
"""
