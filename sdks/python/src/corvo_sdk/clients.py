"""The clients of an app: made when first needed, one for each process and each event loop."""

import asyncio
import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from corvo_sdk.aio import AsyncClient
    from corvo_sdk.client import Client


class ClientOptions(TypedDict, total=False):
    """What the clients of an app are made with; see `Client`."""

    api_key: str | None
    bearer_token: str | None
    token_provider: Any
    headers: Mapping[str, str] | None
    timeout_s: float
    retries: int
    user_agent: str | None


class Clients:
    """Makes clients, or hands out those that were bound."""

    def __init__(self, url: str | Sequence[str] | None, options: ClientOptions) -> None:
        self._url = url
        self._options = options
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._process_id = 0  # of who made the client; 0 when it was bound
        self._aclient: AsyncClient | None = None
        self._aclients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncClient] = (
            WeakKeyDictionary()
        )

    @property
    def client(self) -> "Client":
        """The blocking client."""
        with self._lock:
            # Safety: connections must not be shared with a process that was forked off.
            if self._client is None or self._process_id not in {0, os.getpid()}:
                from corvo_sdk.client import Client  # noqa: PLC0415 - only who enqueues pays

                self._client = Client(self._url, **self._options)
                self._process_id = os.getpid()
            return self._client

    @property
    def aclient(self) -> "AsyncClient":
        """The client of the event loop that runs here."""
        if self._aclient is not None:
            return self._aclient
        loop = asyncio.get_running_loop()
        with self._lock:
            client = self._aclients.get(loop)
            if client is None:
                from corvo_sdk.aio import AsyncClient  # noqa: PLC0415 - only who enqueues pays

                client = self._aclients[loop] = AsyncClient(self._url, **self._options)
            return client

    def configure(self, url: str | Sequence[str] | None, options: ClientOptions) -> None:
        """Make clients with these settings from now on; those that are in use stay open."""
        with self._lock:
            self._url, self._options = url, options
            self._client, self._process_id = None, 0
            self._aclients.clear()

    def bind(self, client: "Client | None", aclient: "AsyncClient | None") -> None:
        """Hand out these; who made them closes them. None makes own ones again."""
        with self._lock:
            self._client, self._process_id = client, 0
            self._aclient = aclient

    def close(self) -> None:
        """Close the blocking client, unless it was bound."""
        with self._lock:
            if self._process_id != os.getpid():
                return
            client, self._client = self._client, None
        if client is not None:
            client.close()

    async def aclose(self) -> None:
        """Close the client of this event loop, unless it was bound."""
        client = self._aclients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()
