"""Encodings that sort as what they encode."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.keys import order


@pytest.mark.parametrize(
    ("pack", "unpack", "bits"),
    [
        (order.pack_u16, order.unpack_u16, 16),
        (order.pack_u32, order.unpack_u32, 32),
        (order.pack_u64, order.unpack_u64, 64),
    ],
)
def test_integers_round_trip_and_sort_as_numbers(
    pack: Callable[[int], bytes], unpack: Callable[[bytes], tuple[int]], bits: int
):
    """Bytes of unsigned integers sort as the integers do."""
    edges = sorted({0, 1, 255, 256, (1 << bits) - 1, 1 << bits - 1, (1 << bits - 1) - 1})
    assert edges == [unpack(pack(number))[0] for number in edges]
    assert [pack(number) for number in edges] == sorted(pack(number) for number in edges)


@given(st.binary(max_size=6).filter(lambda x: x.strip(b"\xff")), st.binary(max_size=6))
def test_successor_is_above_every_key_with_the_prefix(prefix: bytes, rest: bytes):
    """A scan from prefix to its successor sees exactly the keys that start with the prefix."""
    assert prefix + rest < order.successor(prefix)


@given(st.binary(min_size=1, max_size=4).filter(lambda x: x.strip(b"\xff")), st.binary(max_size=8))
def test_successor_is_not_above_other_keys(prefix: bytes, other: bytes):
    """No key without the prefix lies between prefix and successor."""
    inside = prefix <= other < order.successor(prefix)
    assert inside == other.startswith(prefix)
