"""Rewriting of a request that asks for a protocol we do not speak, to serve it in this one."""

_HOP_NAMES = frozenset((b"upgrade", b"http2-settings"))


def head_without_upgrade(
    method: bytes, url: bytes, version: str, headers: list[tuple[bytes, bytes]]
) -> bytes:
    """Return the head of the same request without its wish for an upgrade."""
    lines = [b"%b %b HTTP/%b" % (method, url, version.encode("ascii"))]
    for name, value in headers:
        lowered = name.lower()
        if lowered in _HOP_NAMES:
            continue
        if lowered == b"connection":
            tokens = [token.strip() for token in value.split(b",")]
            kept = [token for token in tokens if token.lower() not in _HOP_NAMES]
            if not kept:
                continue
            lines.append(name + b": " + b", ".join(kept))
        else:
            lines.append(name + b": " + value)
    return b"\r\n".join(lines) + b"\r\n\r\n"
