"""The jobs in hand: one dictionary, written by the loop, read by the threads beside it."""

from corvo_sdk.context import Context


class Flights:
    """Every job that was fetched and whose report is not answered.

    Safety: single operations on a dictionary are atomic, and readers take a copy of the values in
    one of them. A job that ends while a heartbeat is under way is told apart by its token.
    """

    def __init__(self) -> None:
        self._contexts: dict[str, Context] = {}

    def __len__(self) -> int:
        return len(self._contexts)

    def add(self, context: Context) -> None:
        self._contexts[context.job.job_id] = context

    def remove(self, context: Context) -> None:
        """Forget a job, unless it has come again under another lease."""
        known = self._contexts.get(context.job.job_id)
        if known is context:
            del self._contexts[context.job.job_id]

    def get(self, job_id: str, lease_token: int | None = None) -> Context | None:
        context = self._contexts.get(job_id)
        if context is None or lease_token not in {None, context.job.lease_token}:
            return None
        return context

    def all(self) -> list[Context]:
        """Every job in hand, the oldest first."""
        return list(self._contexts.values())
