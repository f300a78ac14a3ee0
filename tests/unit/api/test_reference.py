"""The reference page names what the server serves."""

import re
from pathlib import Path

from corvo.api import wire
from corvo.api.filters import SearchRequest
from corvo.api.hot import HotRoutes
from corvo.api.routes.bulk import BulkRoutes
from corvo.api.routes.jobs import JobRoutes
from corvo.api.routes.limits import LimitRoutes
from corvo.api.routes.queues import QueueRoutes
from corvo.api.routes.schedules import ScheduleRoutes
from corvo.api.routes.search import SearchRoutes
from corvo.api.routes.server import ServerRoutes
from corvo.api.routes.view import ViewRoutes
from corvo.api.routes.webhooks import WebhookRoutes

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "http.md").read_text()


def test_every_route_is_on_the_page():
    """Each path of each table is written on the reference page."""
    nothing = object()
    tables = (
        BulkRoutes(nothing, nothing, 0).table(),  # type: ignore[arg-type]
        JobRoutes(nothing, nothing).table(),  # type: ignore[arg-type]
        QueueRoutes(nothing).table(),  # type: ignore[arg-type]
        LimitRoutes(nothing).table(),  # type: ignore[arg-type]
        ScheduleRoutes(nothing, nothing).table(),  # type: ignore[arg-type]
        SearchRoutes(nothing).table(),  # type: ignore[arg-type]
        ServerRoutes(nothing, str).table(),  # type: ignore[arg-type]
        ServerRoutes(nothing, nothing).table(),  # type: ignore[arg-type]
        ViewRoutes(nothing).table(),  # type: ignore[arg-type]
        WebhookRoutes(nothing, nothing, nothing).table(),  # type: ignore[arg-type]
    )
    paths = {path for table in tables for path in table}
    hot = [name for name in vars(HotRoutes) if not name.startswith("_") and name != "index"]
    paths |= {f"/api/v1/{name.replace('_', '/')}" for name in hot}
    assert len(paths) > 30
    for path in paths:
        short = path.removeprefix("/api/v1").replace(":path}", "}").replace(":webhook}", "}")
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
