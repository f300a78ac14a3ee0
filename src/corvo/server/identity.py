"""How names of a cluster and of a node are written into the log."""

from hashlib import blake2b


def cluster_id(name: str) -> bytes:
    """Format: the log keeps sixteen bytes; a name of any length becomes that."""
    return blake2b(name.encode(), digest_size=16, person=b"corvo.cluster").digest()


def node_id(name: str) -> int:
    """Format: the log keeps a number of 63 bits."""
    digest = blake2b(name.encode(), digest_size=8, person=b"corvo.node").digest()
    return int.from_bytes(digest, "big") >> 1
