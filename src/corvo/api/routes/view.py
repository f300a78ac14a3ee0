"""Routes about the view itself: have it built anew, see how far that is."""

from typing import TYPE_CHECKING

from corvo.api.routing import Answer, Call, Table, answer

if TYPE_CHECKING:
    from corvo.view.client import ViewClient


class ViewRoutes:
    """What an operator may do about the view."""

    def __init__(self, view: "ViewClient") -> None:
        self._view = view

    def table(self) -> Table:
        """Paths, methods and operations."""
        return {
            "/api/v1/admin/view": {"GET": self.position},
            "/api/v1/admin/rebuild-sqlite": {"POST": self.rebuild, "GET": self.progress},
        }

    async def position(self, call: Call) -> Answer:
        """`GET /admin/view`: what the view itself says it has reached; waits with `after`."""
        return Answer(200, await self._view.query("position", {}, call.after))

    async def rebuild(self, _call: Call) -> Answer:
        """`POST /admin/rebuild-sqlite`: begin; a rebuild under way is not begun twice."""
        return answer(self._view.rebuild(), 202)

    async def progress(self, _call: Call) -> Answer:
        """`GET /admin/rebuild-sqlite`: how far the last rebuild is, and whether the view is up."""
        found = self._view.standing.rebuild_members()
        return answer(found | {"view": self._view.state, "lag": self._view.lag})
