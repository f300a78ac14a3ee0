"""A fuzzer sends whatever the description allows: no 5xx, and no answer that is not described.

The document is narrowed a little for it, so that requests get somewhere: identifiers and names are
often those of things that exist, durations and instants are well-formed, and no fetch waits. Shapes
of answers are closed: a member that is sent and not described is a failure.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from corvo.api.openapi import document, shapes
from corvo.api.openapi.catalog import CATALOG, JSON
from tests.support.server import Server, running

EXAMPLES = 10
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
# A fetch that is malformed in just the right way is a fetch that waits for half a minute.
WAITING = ("/api/v1/fetch", "/api/v1/fetch/batch")
# A stream without end; tests/integration/live reads it.
ENDLESS = ("/api/v1/events",)
OPERATIONS = [f"{item.method} {item.path}" for item in CATALOG if item.path not in ENDLESS]
# No view runs here, so what asks it answers 503; that this is described is checked all the same.
VIEWED = {f"{item.method} {item.path}" for item in CATALOG if "VIEW_DOWN" in item.refuses}
BODIES = [
    f"{item.method} {item.path}"
    for item in CATALOG
    # Where anything may be sent, no body breaks the description.
    if item.takes not in (None, Any) and item.takes_media == JSON and item.path not in WAITING
]
NAMES = {"enum": ["mail", "video"]}
DURATION = {"enum": [1, "5s", "1h30m", "250ms"]}
INSTANT = {"enum": ["2026-02-11T10:00:00Z", "2030-01-31T09:00:00.5+02:00"]}


@schemathesis.serializer("application/x-ndjson")
def write_lines(_context: Any, value: Any) -> bytes:
    """Lines of JSON are sent as they are drawn."""
    return str(value).encode(errors="replace")


def narrowed(ids: list[str], others: dict[str, list[str]]) -> dict[str, Any]:
    """The document, with values that lead somewhere and closed answers."""
    made = document.build(CATALOG)
    for path, methods in made["paths"].items():
        kind = path.removeprefix("/api/v1/").partition("/")[0]
        known = {"enum": others.get(kind, ids) if "/{id}" in path else ["mail"]}
        for operation in methods.values():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path":
                    parameter["schema"] = {"anyOf": [known, parameter["schema"]]}
                if parameter["name"] == "timeout":
                    parameter |= {"required": True, "schema": {"const": 0}}
    schemas = made["components"]["schemas"]
    for name, schema in schemas.items():
        properties = schema.get("properties", {})
        if hasattr(shapes, name):
            if name not in shapes.OPEN:
                schema["additionalProperties"] = False
            continue
        fields = {
            "queue": NAMES,
            "callback_queue": NAMES,
            "worker_id": {"enum": ["w1", "w2"]},
            "job_id": {"enum": ids},
            "parent_id": {"enum": ids},
            "scheduled_at": INSTANT,
            "until": INSTANT,
            "group": NAMES,
            "limit_key": NAMES,
            "move_to_queue": NAMES,
            "cron": {"enum": ["0 9 * * *", "@hourly", "*/5 * * * *"]},
            "timezone": {"enum": ["UTC", "Europe/Berlin"]},
            "start_at": INSTANT,
            "end_at": INSTANT,
            "from": {"enum": ["2023-11-14T10:00:00Z", "2023-11-14T12:00:00Z"]},
            "to": {"enum": ["2023-11-14T20:00:00Z"]},
            # A name that leads nowhere: nothing is sent to anybody.
            "url": {"enum": ["http://hooks.invalid/"]},
        }
        fields |= {
            each: DURATION
            for each in properties
            if each.endswith(("_delay", "_after", "period", "delay", "_duration", "retention"))
        }
        properties.update({each: fields[each] for each in fields.keys() & properties.keys()})
        for each, values in (("queues", NAMES), ("job_ids", {"enum": ids}), ("limits", NAMES)):
            if each in properties:
                properties[each] = {"type": "array", "items": values, "minItems": 1, "maxItems": 3}
    fetch = schemas["FetchRequest"]
    fetch["properties"]["timeout"] = {"const": 0}
    fetch["required"].append("timeout")
    return made


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server for all operations: what one leaves behind the next one meets."""
    with running("fast") as started:
        yield started


@pytest.fixture(scope="module")
def described(server: Server) -> dict[str, Any]:
    """The operations of the document by method and path, for a server that has something."""
    ids = [server.enqueue("mail") for _ in range(6)]
    ids.append(server.enqueue("video", hold=True))
    ids.append(server.enqueue("mail", scheduled_at="2030-01-01T00:00:00Z", max_retries=1))
    server.fetch("mail")
    server.request("PUT", "/api/v1/limits/mail", {"max": 5})
    reply = server.post("/enqueue/batch", {"jobs": [{"queue": "mail"}], "batch": {}})
    others = {"batches": [reply.json["batch_id"]]}
    reply = server.post("/jobs/bulk", {"action": "hold", "job_ids": ids[-1:]})
    others["bulk"] = [reply.json["bulk_operation_id"]]
    cron = {"name": "daily", "queue": "mail", "cron": "0 9 * * *"}
    others["schedules"] = [server.post("/schedules", cron).json["id"], "daily"]
    reply = server.post("/webhooks", {"url": "http://hooks.invalid/"})
    others["webhooks"] = [reply.json["id"]]
    schema = schemathesis.openapi.from_dict(narrowed(ids, others))
    found = [result.ok() for result in schema.get_all_operations()]
    return {f"{each.method.upper()} {each.path}": each for each in found}


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_answer_is_as_described(server: Server, described: dict[str, Any], name: str):
    """Status, media type, headers and body are those of the document, whatever is asked."""
    fuzz_operation(server, described[name], GenerationMode.POSITIVE)


@pytest.mark.parametrize("name", BODIES)
def test_bodies_that_break_the_description_are_refused_as_described(
    server: Server, described: dict[str, Any], name: str
):
    """A body of the wrong shape gets a described refusal, or is one that is allowed after all."""
    fuzz_operation(server, described[name], GenerationMode.NEGATIVE)


def test_the_fuzzer_notices_what_is_not_described(server: Server):
    """With a member taken out of the description, the answer that has it fails."""
    made = narrowed(["job_x"], {})
    del made["components"]["schemas"]["Info"]["properties"]["features"]
    made["components"]["schemas"]["Info"]["required"].remove("features")
    schema = schemathesis.openapi.from_dict(made)
    with pytest.raises(FailureGroup):
        fuzz_operation(server, schema["/api/v1/info"]["GET"], GenerationMode.POSITIVE)


def fuzz_operation(server: Server, operation: Any, mode: GenerationMode) -> None:
    """Send requests to one operation and compare every answer."""
    session = requests.Session()
    is_viewed = f"{operation.method.upper()} {operation.path}" in VIEWED
    checks = CHECKS[1:] if is_viewed else CHECKS

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def fuzz(case: Any) -> None:
        is_webhook = operation.path.startswith("/api/v1/webhooks/{id}")
        if is_webhook and not str(case.path_parameters["id"]).startswith("wh_"):
            # Any other text leads to another route, the incoming webhooks.
            case.path_parameters["id"] = "wh_0"
        base = f"http://127.0.0.1:{server.port}"
        case.call_and_validate(base_url=base, session=session, checks=checks, timeout=10)

    try:
        fuzz()
    finally:
        session.close()
