"""The app that the figure `worker` runs: one task that does nothing, and says so."""

from corvo_sdk.app import Corvo

QUEUE = "noop"

app = Corvo("bench")


@app.task(queue=QUEUE)
async def noop(n: int) -> None:
    """Do nothing, as fast as possible."""
