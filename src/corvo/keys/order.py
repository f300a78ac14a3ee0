"""Order-preserving encodings: unsigned integers, big-endian, so that bytes sort as numbers do."""

from struct import Struct

pack_u16 = Struct(">H").pack
pack_u32 = Struct(">I").pack
pack_u64 = Struct(">Q").pack
unpack_u16 = Struct(">H").unpack_from
unpack_u32 = Struct(">I").unpack_from
unpack_u64 = Struct(">Q").unpack_from


def successor(prefix: bytes) -> bytes:
    """Return the smallest key greater than every key that starts with the prefix."""
    stripped = prefix.rstrip(b"\xff")
    assert stripped, "a prefix of only 0xff bytes has no successor"
    return stripped[:-1] + bytes((stripped[-1] + 1,))
