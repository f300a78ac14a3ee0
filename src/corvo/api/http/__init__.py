"""The HTTP/1.1 transport: from a socket to a handler and back, on two lanes with one interface.

A hot request (enqueue, fetch, ack, ...) becomes an `Exchange` and goes to a synchronous handler,
either on the fast lane (`fastlane`: straight from the parser, no ASGI scope, no task) or on the
slow lane (`slowlane`: the same handler behind an ASGI route). Everything else goes to the ASGI
application.

    socket ─▶ FastLaneProtocol ─┬─ hot ──▶ FastExchange ─▶ Handler ─▶ slots, in order ─▶ socket
                                └─ rest ─▶ uvicorn's cycle ─▶ ASGI application ───────▶ socket

Invariants:
- Answers leave a connection in the order its requests came, across both lanes.
- A request behind an unfinished slow one is slow; a slow one behind unfinished fast ones waits. So
  the effects of one connection's requests happen in the order they were sent, too.
- Whatever a client does, memory per connection is bounded by `Limits`, and a refusal is a JSON
  error.
- Reading is never paused while a handler waits for work, so that a client that leaves is noticed.
- A handler that raises yields one 500 with a request id and one report; never a parser error.

Deliberately absent: TLS, HTTP/2, compression, access logs, signals, a timer per connection, and any
knowledge of jobs. `server` wires the listener; handlers live beside this package.

Read first: `exchange`, then `fastlane`.
"""

from corvo.api.http.exchange import Exchange, Handler, Route
from corvo.api.http.limits import Limits
from corvo.api.http.listener import Listener, start
from corvo.api.http.slowlane import hot_routes

__all__ = ["Exchange", "Handler", "Limits", "Listener", "Route", "hot_routes", "start"]
