"""The reference page names what the server serves."""

import re
from pathlib import Path

from corvo.api import wire
from corvo.api.filters import SearchRequest
from corvo.api.openapi.catalog import CATALOG

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "http.md").read_text()


def test_every_route_is_on_the_page():
    """Each path of the catalog, which is the router's, is written on the reference page."""
    paths = {item.path for item in CATALOG}
    assert len(paths) > 30
    for path in paths:
        short = path.removeprefix("/api/v1")
        last = short.rpartition("/")[2]
        assert short in PAGE or f"`/{last}`" in PAGE, path


def test_every_field_of_a_job_is_on_the_page():
    """Each field of enqueue, fetch and the settings is written on the reference page."""
    shapes = (wire.EnqueueRequest, wire.FetchRequest, wire.SettingsRequest, wire.FailRequest)
    shapes += (wire.ScheduleRequest, wire.PreviewRequest)
    shapes += (wire.BulkRequest,)
    shapes += (SearchRequest,)
    shapes += (wire.WebhookRequest,)
    for shape in shapes:
        for name in shape.__struct_encode_fields__:
            assert re.search(rf"\b{name}\b", PAGE), name
