"""Which addresses may be posted to.

Whoever may create a webhook makes this server send requests, so without a guard it could be used to
reach what only this server can reach: itself, the private network, a cloud's metadata. Public
addresses are fine; others need to be in the operator's allow-list.

Safety: names are resolved here, and the connection is made to the address that was checked. Were
the name handed on, a second look-up could give another answer (DNS rebinding).
"""

import asyncio
import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

ADDRESSES_MAX = 4  # of one name; further ones are not tried
_NAT64 = ip_network("64:ff9b::/96")
NOTHING = "none"


class GuardError(Exception):
    """The address may not be posted to."""


def parse_networks(text: str) -> tuple[Network, ...]:
    """Read a list of networks such as `10.0.0.0/8,127.0.0.1`; `none` is none. Raises ValueError."""
    if text.strip() == NOTHING:
        return ()
    return tuple(ip_network(part.strip()) for part in text.split(","))


class Guard:
    """Resolves and decides."""

    def __init__(self, allowed: tuple[Network, ...] = ()) -> None:
        self._allowed = allowed

    def is_open(self, address: Address) -> bool:
        """Whether an address may be posted to."""
        inner = _embedded(address)
        if inner is not None:
            # An address that is carried inside another is where the packet ends up.
            return self.is_open(inner)
        if any(address in network for network in self._allowed):
            return True
        return address.is_global and not address.is_multicast and not address.is_reserved

    def check_literal(self, host: str) -> None:
        """Refuse a host that is written as a forbidden address; names are checked when used."""
        try:
            address = ip_address(host)
        except ValueError:
            if host.rstrip(".") == "localhost" or host.rstrip(".").endswith(".localhost"):
                self._refuse_unless_open(ip_address("127.0.0.1"), host)
            return
        self._refuse_unless_open(address, host)

    def _refuse_unless_open(self, address: Address, host: str) -> None:
        if not self.is_open(address):
            raise GuardError(f"{host} is not a public address")

    async def resolve(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host that may be used. Raises GuardError, OSError."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        # A zone such as %eth0 belongs to link-local addresses, which are never public.
        texts = dict.fromkeys(str(entry[4][0]) for entry in found)
        usable = [text for text in texts if "%" not in text and self.is_open(ip_address(text))]
        if not usable:
            shown = ", ".join(texts) or "nothing"
            raise GuardError(f"{host} resolves to {shown}, which is not a public address")
        return usable[:ADDRESSES_MAX]


def _embedded(address: Address) -> IPv4Address | None:
    if isinstance(address, IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None
