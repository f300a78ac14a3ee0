"""Print the document: `make openapi` keeps it in spec/openapi.json."""

import sys

from corvo.api.openapi import document
from corvo.api.openapi.catalog import CATALOG

sys.stdout.buffer.write(document.encode(document.build(CATALOG)))
