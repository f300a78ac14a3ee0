"""Jobs in tests: the real rules in the test's own process, on memory, with time that waits.

    from corvo.testing import Kit

    with Kit() as corvo:
        corvo.use(app)
        send_mail.enqueue("ada@example.org")
        corvo.assert_enqueued(send_mail, to="ada@example.org")
        corvo.drain_sync()

`plugin.py` gives the same as a pytest fixture named `corvo`. A kit has everything a server has
except the view: searches answer 503.

Read first: `kit.py`. `house.py` is the server without sockets, `delivery.py` runs handlers,
`chaos.py` says what may go wrong around them.

Invariant: nothing here decides what happens to a job. The machine, the API and the SDK's own
`execute` do; this package only stands in for the network, the disk and the clock.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corvo.testing.delivery import Drained as Drained
    from corvo.testing.delivery import KitError as KitError
    from corvo.testing.kit import Kit as Kit

_HOMES = {
    "Kit": "corvo.testing.kit",
    "Drained": "corvo.testing.delivery",
    "KitError": "corvo.testing.delivery",
}
__all__ = ["Drained", "Kit", "KitError"]


def __getattr__(name: str) -> Any:
    """Load a part when it is asked for: the pytest plugin imports this package in every run."""
    if name not in _HOMES:
        raise AttributeError(name)
    from importlib import import_module  # noqa: PLC0415 - see above

    return getattr(import_module(_HOMES[name]), name)
