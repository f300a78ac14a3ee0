"""Header blocks that were parsed before: a client sends the same ones again and again.

A block is everything between the request line and the empty line, byte for byte. It is learnt only
from a request that the parser accepted, that came alone in one read, and whose headers asked
nothing special of the transport (no Connection, Expect, Upgrade or Transfer-Encoding; JSON; a
length). Equal bytes parse equally, so a known block needs no parser.
"""

Fields = list[tuple[bytes, bytes]]
Head = dict[bytes, bytes]  # values by lower-case name; the first one where a name stands twice

_BLOCKS_COUNT_MAX = 2_048  # one per client, header set and body length
_BLOCK_BYTES_MAX = 1_024
_LINE_START = b"POST "
_LINE_END = b" HTTP/1.1"
_UNFIT_NAMES = frozenset((b"transfer-encoding", b"upgrade", b"connection", b"expect", b"trailer"))


class KnownHeads:
    """A bounded memory of header blocks."""

    __slots__ = ("_blocks",)

    def __init__(self) -> None:
        self._blocks: dict[bytes, tuple[Head, int]] = {}

    def find(self, data: bytes) -> tuple[bytes, Head, int] | None:
        """Return target, headers and where the body begins, if `data` is one known request."""
        line_at = data.find(b"\r\n")
        end_at = data.find(b"\r\n\r\n", line_at)
        known = self._blocks.get(data[line_at:end_at])
        if known is None:
            return None
        head, body_size = known
        body_at = end_at + 4
        if len(data) - body_at != body_size:
            return None
        line = data[:line_at]
        if not (line.startswith(_LINE_START) and line.endswith(_LINE_END)):
            return None
        return line[len(_LINE_START) : -len(_LINE_END)], head, body_at

    def learn(self, data: bytes, fields: Fields) -> None:
        """Remember the headers of a request that was parsed from exactly this read."""
        line_at = data.find(b"\r\n")
        end_at = data.find(b"\r\n\r\n", line_at)
        block = data[line_at:end_at]
        if line_at < 0 or end_at < 0 or len(block) > _BLOCK_BYTES_MAX:
            return
        names = [name.lower() for name, _ in fields]
        if names.count(b"content-length") != 1 or not _UNFIT_NAMES.isdisjoint(names):
            return
        size = int(fields[names.index(b"content-length")][1])
        is_whole = len(data) - end_at - 4 == size
        line = data[:line_at]
        if not (is_whole and line.startswith(_LINE_START) and line.endswith(_LINE_END)):
            return
        if len(self._blocks) >= _BLOCKS_COUNT_MAX:
            self._blocks.clear()
        head = {name.lower(): value for name, value in reversed(fields)}
        self._blocks[block] = (head, size)
