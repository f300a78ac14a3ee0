"""What all shapes are made of, and the shape of every refusal."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

Instant = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]


Duration = Annotated[str, Meta(pattern=r"^(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?$")]


Count = Annotated[int, Meta(ge=0)]


Document = Any  # any JSON, byte for byte as it was sent


State = Literal[
    "scheduled", "pending", "active", "retrying", "held", "completed", "dead", "cancelled"
]


Members = dict[str, Any]  # an object whose members docs/reference/http.md lists


Counts = dict[str, Count]


class Error(Struct, kw_only=True):
    """What every refusal looks like. `code` is for programs and never renamed."""

    error: str
    code: str
    field: str | UnsetType = UNSET
    hint: str | UnsetType = UNSET
    state: State | UnsetType = UNSET
    unique_job_id: str | UnsetType = UNSET
    retry_after_ms: Count | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
