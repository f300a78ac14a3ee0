"""Which way to the server a worker takes."""

import logging

import msgspec
from msgspec import Struct

from corvo_sdk.aio import AsyncClient
from corvo_sdk.errors import CorvoError
from corvo_sdk.worker.http import HttpLink, Identity
from corvo_sdk.worker.links import Link, Signals
from corvo_sdk.worker.settings import LinkKind
from corvo_sdk.worker.stream import StreamLink

_log = logging.getLogger("corvo.worker")


async def open_link(
    kind: LinkKind,
    client: AsyncClient,
    identity: Identity,
    signals: Signals,
    given: Link | None = None,
) -> Link:
    """Open the link that was given, or the one of a kind.

    `auto` takes the stream when the server says that it has it and it can be opened. A server that
    is away at the start is waited for over plain HTTP, which every server has.
    """
    link: Link
    if given is not None:
        link = given
    elif kind == "stream" or (kind == "auto" and await _has_stream(client)):
        link = StreamLink(client, identity)
    else:
        link = HttpLink(client, identity)
    try:
        await link.open(signals)
    except CorvoError as error:
        await link.close()
        if given is not None or kind != "auto":
            raise
        _log.info("the stream can not be opened, plain HTTP is used: %s", error)
        link = HttpLink(client, identity)
        await link.open(signals)
    return link


class _Info(Struct):
    """What is read of `GET /info`."""

    features: list[str] = []


async def _has_stream(client: AsyncClient) -> bool:
    try:
        answer = await client.request("GET", "/api/v1/info", timeout_s=2.0)
    except CorvoError:
        return False
    try:
        facts = msgspec.convert(answer.body, _Info)
    except msgspec.ValidationError:
        return False
    return "stream" in facts.features
