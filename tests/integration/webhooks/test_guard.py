"""Addresses that are not public are out of reach, however they are spelt."""

import asyncio
import socket
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

import pytest

from corvo.webhooks import Guard, GuardError
from corvo.webhooks.guard import parse_networks
from tests.integration.webhooks.stage import Stage, staged
from tests.support.receiver import Receiver, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An endpoint on this machine."""
    with receiving() as found:
        yield found


@pytest.fixture
def guarded() -> Iterator[Stage]:
    """A server as it is by default: loopback is not allowed."""
    with staged(allow="none") as found:
        yield found


PRIVATE = [
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "255.255.255.255",
    "224.0.0.1",
    "198.18.0.1",
    "::1",
    "::",
    "fe80::1",
    "fc00::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "2002:7f00:1::",
    "64:ff9b::7f00:1",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_address_that_is_not_public_is_refused(address: str):
    """Loopback, private, link-local, multicast, and each of them inside another address."""
    assert not Guard().is_open(ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_public_address_is_open(address: str):
    """What anybody can reach, this server may reach."""
    assert Guard().is_open(ip_address(address))


def test_allow_list_opens_what_it_names_and_nothing_else():
    """Networks and single addresses, both families, also when carried inside another address."""
    guard = Guard(parse_networks("10.0.0.0/8, 127.0.0.1,fc00::/7"))
    for address in ("10.9.9.9", "127.0.0.1", "fc00::5", "::ffff:10.0.0.1"):
        assert guard.is_open(ip_address(address))
    for address in ("127.0.0.2", "192.168.0.1", "::1"):
        assert not guard.is_open(ip_address(address))


@pytest.mark.parametrize("text", ["", "10.0.0.1/8", "everything", "10.0.0.0/8,"])
def test_bad_allow_list_is_refused(text: str):
    """A typing error must not open or close anything by accident."""
    with pytest.raises(ValueError):
        parse_networks(text)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "[::1]",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost",
        "[::ffff:127.0.0.1]",
        "169.254.169.254",
    ],
)
def test_webhook_to_a_private_address_is_not_accepted(guarded: Stage, host: str):
    """The refusal names the field and the flag an operator may use."""
    reply = guarded.post("/webhooks", {"url": f"http://{host}:9/"})
    assert (reply.status, reply.json["field"]) == (400, "url")
    assert "--webhook-allow" in reply.json["hint"]


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "127.1", "0177.0.0.1"])
def test_odd_spelling_of_loopback_does_not_reach_it(guarded: Stage, receiver: Receiver, host: str):
    """The resolver understands these; what it answers is what is checked."""
    reply = guarded.post("/webhooks", {"url": f"http://{host}:{receiver.port}/", "enabled": False})
    if reply.status == 201:
        sent = guarded.post(f"/webhooks/{reply.json['id']}/test").json
        assert sent["status"] == "failed"
    assert receiver.requests == []


def lie(monkeypatch: pytest.MonkeyPatch, stage: Stage, answers: list[list[str]]) -> list[str]:
    """Let every look-up of example.test get the next of these answers; the last one stays."""
    asked: list[str] = []

    async def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        kind = socket.SOCK_STREAM
        return [(socket.AF_INET, kind, 6, "", (address, port)) for address in found]

    monkeypatch.setattr(stage._loop, "getaddrinfo", getaddrinfo)
    return asked


def test_name_that_resolves_to_a_private_address_is_not_connected_to(
    guarded: Stage, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    """A name is no way around the guard."""
    lie(monkeypatch, guarded, [["127.0.0.1"]])
    identifier = guarded.create(f"http://example.test:{receiver.port}/", enabled=False)
    sent = guarded.post(f"/webhooks/{identifier}/test").json
    assert sent["status"] == "failed"
    assert "not a public address" in sent["error"]
    assert receiver.requests == []


def test_name_is_looked_up_once_and_the_checked_address_is_used(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    """Rebinding: a second look-up would give another address, so there is none."""
    with staged(allow="127.0.0.1") as stage:
        asked = lie(monkeypatch, stage, [["127.0.0.1"], ["127.0.0.2"]])
        identifier = stage.create(f"http://example.test:{receiver.port}/", enabled=False)
        sent = stage.post(f"/webhooks/{identifier}/test").json
        assert sent["status"] == "delivered"
        assert asked.count("example.test") == 1
        assert receiver.requests[0].headers["host"] == f"example.test:{receiver.port}"


def test_private_address_among_public_ones_is_left_out():
    """Of several addresses only those that may be used are tried."""

    async def look() -> list[str]:
        loop = asyncio.get_running_loop()

        async def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
            return [
                (socket.AF_INET, 1, 6, "", ("10.0.0.1", port)),
                (socket.AF_INET6, 1, 6, "", ("fe80::1%eth0", port, 0, 2)),
                (socket.AF_INET, 1, 6, "", ("8.8.8.8", port)),
            ]

        loop.getaddrinfo = getaddrinfo  # type: ignore[method-assign]
        return await Guard().resolve("example.test", 80)

    assert asyncio.run(look()) == ["8.8.8.8"]


def test_literal_that_is_public_is_accepted():
    """The check of a literal refuses only what the guard refuses."""
    Guard().check_literal("8.8.8.8")
    Guard().check_literal("example.com")
    with pytest.raises(GuardError):
        Guard().check_literal("10.0.0.1")
