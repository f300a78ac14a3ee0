"""Identifiers: sixteen bytes inside, a prefix and 26 characters outside.

    Format:   48 bits  milliseconds since 1970        sorts by time
              12 bits  group (shard) the job lives in  any call can be routed without a look-up
              68 bits  monotone tail

The text form is the Crockford base 32 of a ULID behind a prefix that names the kind: `job_01J...`.
Generated ids come into the machine with the command; ids the machine needs itself (chain step,
callback) are derived from (parent id, run, purpose, ordinal), so that replay makes the same ones.
"""

from hashlib import blake2b

from ulid_transform import bytes_to_ulid, ulid_to_bytes

JOB = "job_"
BATCH = "batch_"
CHAIN = "chain_"
OPERATION = "op_"
BULK = "bulk_"
WEBHOOK = "wh_"
DELIVERY = "whd_"

ID_BYTES = 16
TEXT_CHARACTERS = 26
GROUP_BITS = 12
TAIL_BITS = 68
DEFAULT_NAMESPACE = 0


def make_id(at_ms: int, group: int, tail: int) -> bytes:
    """Assemble an identifier from its three parts."""
    assert 0 <= group < 1 << GROUP_BITS
    return (at_ms << 80 | group << TAIL_BITS | tail & (1 << TAIL_BITS) - 1).to_bytes(16, "big")


def group_of(identifier: bytes) -> int:
    """Name the group (shard) an identifier belongs to."""
    return (identifier[6] << 8 | identifier[7]) >> 4


def derive_id(parent: bytes, run: int, purpose: str, ordinal: int) -> bytes:
    """Derive a child identifier that every replica and every replay computes alike.

    It keeps the parent's time and group, so a derived job is routed where its parent lives.
    """
    digest = blake2b(parent, digest_size=8, salt=purpose.encode()[:16])
    digest.update(run.to_bytes(4, "big") + ordinal.to_bytes(4, "big"))
    head = int.from_bytes(parent[:8], "big") >> 4 << 4
    return head.to_bytes(8, "big") + digest.digest()


def render_id(prefix: str, identifier: bytes) -> str:
    """Write an identifier as text."""
    return prefix + bytes_to_ulid(identifier)


def parse_id(prefix: str, text: str) -> bytes | None:
    """Read an identifier; None when the text cannot be one of this kind."""
    if len(text) != len(prefix) + TEXT_CHARACTERS or not text.startswith(prefix):
        return None
    body = text[len(prefix) :]
    if not body.isascii():
        return None
    identifier = ulid_to_bytes(body)
    # Safety: the codec accepts any characters; only a text that renders back is an identifier.
    return identifier if bytes_to_ulid(identifier) == body else None
