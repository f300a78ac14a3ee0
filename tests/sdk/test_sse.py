"""Server-sent events in any pieces."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo_sdk.errors import ConnectionFailedError, OverloadedError, ProtocolError
from corvo_sdk.protocol.following import Following, read_event
from corvo_sdk.sse import EVENT_BYTES_MAX, SseEvent, SseParser

TEXTS = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=20)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
LINES = st.one_of(
    st.builds("data:{}".format, TEXTS),
    st.builds("data: {}".format, TEXTS),
    st.builds("event: {}".format, TEXTS),
    st.builds("id: {}".format, TEXTS),
    st.builds(": {}".format, TEXTS),
    st.builds("retry: {}".format, st.integers(0, 99)),
    st.just("data"),
    st.just(""),
)


def _plain(lines: list[str]) -> tuple[list[SseEvent], str]:
    """What the standard says, line by line, about lines that are already apart."""
    found: list[SseEvent] = []
    kind, data, named, last = "", None, "", ""
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            last = named
            if data is not None:
                found.append(SseEvent(kind, "\n".join(data), last))
            kind, data = "", None
        elif name == "data":
            data = [*(data or []), value]
        elif name == "event":
            kind = value
        elif name == "id":
            named = value
    return found, last


@given(st.lists(st.tuples(LINES, ENDS), max_size=30), st.data())
def test_events_do_not_depend_on_the_pieces(
    parts: list[tuple[str, str]], draw: st.DataObject
) -> None:
    """However the bytes are cut, the same events come out, and the same last id."""
    # A line that ends in CR and an empty one that ends in LF would be one line end, not two.
    ends = [("\r\n" if end == "\r" else end) for _, end in parts]
    whole = "".join(line + end for (line, _), end in zip(parts, ends, strict=True)).encode()
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(whole)), max_size=12)))
    parser = SseParser()
    found: list[SseEvent] = []
    for start, until in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        found += parser.feed(whole[start:until])
    assert (found, parser.last_event_id) == _plain([line for line, _ in parts])


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_all_line_ends_are_understood(end: str) -> None:
    """CR, LF and both end a line, byte by byte."""
    text = f"\ufeffid: 7{end}event: a{end}data: x{end}data: y{end}{end}".encode()
    parser = SseParser()
    found = [event for byte in text for event in parser.feed(bytes([byte]))]
    found += parser.feed(b": end\n")
    assert found == [SseEvent("a", "x\ny", "7")]


def test_endless_event_is_refused() -> None:
    """A stream without line ends does not fill the memory."""
    parser = SseParser()
    with pytest.raises(ProtocolError):
        for _ in range(EVENT_BYTES_MAX // 65_536 + 2):
            parser.feed(b"x" * 65_536)


def test_id_of_a_heartbeat_is_where_the_stream_resumes() -> None:
    """A quiet stream moves on without events."""
    following = Following(read_event, patience_s=60, now_s=0)
    assert "last-event-id" not in following.headers()
    assert following.feed(b"retry: 1\nid: 41\n: corvo\n\n", 1) == []
    assert following.headers()["last-event-id"] == "41"


def test_half_an_event_is_forgotten_when_the_connection_breaks() -> None:
    """The part that came is not glued to what the next connection sends."""
    following = Following(read_event, last_event_id=4, patience_s=60, now_s=0)
    following.headers()
    following.feed(b'id: 4\ndata: {"seq":5,"ty', 1)
    assert following.headers()["last-event-id"] == "4"
    events = following.feed(
        b'id: 5\ndata: {"seq":5,"type":"dead","at":"2026-01-01T00:00:00Z"}\n\n', 2
    )
    assert [(event.seq, event.type) for event in events] == [(5, "dead")]
    assert events[0].at == datetime(2026, 1, 1, tzinfo=UTC)


def test_patience_counts_from_the_last_word() -> None:
    """Whoever was heard lately is tried again, and nobody for ever."""
    following = Following(read_event, patience_s=60, now_s=0)
    assert following.lost(None, 59, 1.0) > 0
    following.feed(b": beat\n\n", 100)
    assert following.lost(ConnectionFailedError("x", was_sent=False), 159, 1.0) > 0
    with pytest.raises(ConnectionFailedError):
        following.lost(None, 160, 1.0)


def test_time_of_a_refusal_counts_for_streams_too() -> None:
    """With too many streams open, the server's time is waited for."""
    following = Following(read_event, patience_s=60, now_s=0)
    assert following.lost(OverloadedError("x", retry_after_ms=9_000), 1, 1.0) == 9.0


def test_reset_and_closed_are_told_apart() -> None:
    """A reset is handed on, with what is left; the end of a stream is not an event."""
    following = Following(read_event, patience_s=60, now_s=0)
    events = following.feed(b'event: reset\nid: 9\ndata: {"oldest_seq":10}\n\n', 1)
    assert [(event.type, event.seq, event.data) for event in events] == [
        ("reset", 9, {"oldest_seq": 10})
    ]
    assert following.feed(b'event: closed\ndata: {"reason":"slow"}\n\n', 1) == []


def test_garbage_is_an_error() -> None:
    """Data that is no event ends the stream with an error, not with silence."""
    following = Following(read_event, patience_s=60, now_s=0)
    with pytest.raises(ProtocolError):
        following.feed(b"data: nothing\n\n", 1)
