# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The stub of apsw names a type that came with Python 3.12.
"""Full text: jobs by the words of their payload, tags, queue, id and error, the best ones first.

The client's text is no FTS5 expression: words are taken as they are, all of them must be there. Two
forms mean more: `"some words"` is a phrase, and a star at the end of a word takes any ending.
"""

import re
from time import monotonic
from typing import Any, Final

import apsw
import msgspec

from corvo.errors import RequestError
from corvo.model import limits
from corvo.view.budget import OVER, Budget
from corvo.view.queries import Parameters, encode_json, query
from corvo.view.summaries import summaries

_PART: Final = re.compile(r'"([^"]*)"?(\*?)|([^\s"]+)')
_WORD: Final = re.compile(r"\w+")
_PARTS_MAX: Final = 32
_AROUND: Final = 60  # characters shown on each side of a match
_HIGHLIGHTS_MAX: Final = 20

# How much a word counts where: id, queue, payload, tags, error.
_WEIGHTS: Final = "10.0, 2.0, 1.0, 3.0, 2.0"


def expression(text: str) -> tuple[str, list[str]]:
    """Make an FTS5 expression of a client's text, and the words to highlight. Raises."""
    parts: list[str] = []
    words: list[str] = []
    for phrase, star, word in _PART.findall(text.replace("\x00", " ")):
        found = _WORD.findall(phrase or word)
        is_prefix = star or word.endswith("*")
        if found:
            parts.append('"' + " ".join(found) + '"' + ("*" if is_prefix else ""))
            words += found
        if len(parts) > _PARTS_MAX:
            raise RequestError(f"more than {_PARTS_MAX} words", field="q")
    if not parts:
        raise RequestError("there is no word in this", field="q", hint="such as ?q=welcome")
    return " AND ".join(parts), words


@query("fulltext")
def fulltext(connection: apsw.Connection, parameters: Parameters) -> bytes:
    """`GET /search/fulltext`: `ns`, `q`, `limit`; optional `queue`, `state`."""
    started = monotonic()
    wanted, words = expression(parameters["q"])
    limit = parameters["limit"]
    where, values = "jobs_text MATCH ? AND j.ns = ?", [wanted, parameters["ns"]]
    for name in ("queue", "state"):
        if parameters.get(name) is not None:
            where, values = f"{where} AND j.{name} = ?", [*values, parameters[name]]
    tables = "FROM jobs_text JOIN jobs j ON j.n = jobs_text.rowid WHERE " + where
    ranked = f"SELECT j.n, bm25(jobs_text, {_WEIGHTS}) AS r {tables} ORDER BY r, j.id DESC LIMIT ?"
    is_partial = False
    try:
        with Budget(connection, parameters.get("budget_ms", limits.SEARCH_BUDGET_MS)):
            rows = list(connection.execute(ranked, (*values, limit + 1)))
    except OVER:
        # Too many to rank: the newest ones, which the index gives without looking at the rest.
        is_partial, rows = True, []
        newest = f"SELECT j.n, 0.0 AS r {tables} ORDER BY jobs_text.rowid DESC LIMIT ?"
        try:
            with Budget(connection, limits.SEARCH_COUNT_BUDGET_MS):
                rows = list(connection.execute(newest, (*values, limit + 1)))
        except OVER:
            pass
    jobs, shown = summaries(connection, rows[:limit])
    for job, row in zip(jobs, rows, strict=False):
        job["score"] = round(-row[1], 6)
        job.update(snippet(job, words))
    members = {
        "q": parameters["q"],
        "results": jobs,
        "has_more": len(rows) > shown,
        "partial": is_partial,
        "duration_ms": int((monotonic() - started) * 1_000),
    }
    return encode_json(members)


def snippet(job: dict[str, Any], words: list[str]) -> dict[str, Any]:
    """The first place in a job where one of the words stands, and where in it to look.

    Highlights are [start, end] in characters of the snippet; the text itself is not marked up, so
    whoever shows it need not tell marks from content.
    """
    pattern = re.compile("|".join(re.escape(word) for word in words), re.IGNORECASE)
    tags = msgspec.json.encode(job["tags"]).decode()
    payload = bytes(job["payload"]).decode() if job["payload"] is not None else ""
    texts = {"payload": payload, "error": job["last_error"] or "", "tags": tags}
    texts |= {"queue": job["queue"], "id": job["id"]}
    places = ((field, pattern.search(text)) for field, text in texts.items())
    # A word found without its accents is not found here: the beginning of the payload is shown.
    field, found = next((place for place in places if place[1] is not None), ("payload", None))
    text = texts[field]
    start = max(0, (found.start() if found else 0) - _AROUND)
    until = (found.end() if found else 0) + _AROUND
    shown = ("…" if start else "") + text[start:until] + ("…" if until < len(text) else "")
    marks = [list(match.span()) for match in pattern.finditer(shown)][:_HIGHLIGHTS_MAX]
    return {"snippet": shown, "snippet_field": field, "highlights": marks}
