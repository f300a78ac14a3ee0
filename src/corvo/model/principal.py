"""Who is asking. Every handler takes one; until keys exist it is the anonymous administrator."""

from msgspec import Struct

from corvo.model.ids import DEFAULT_NAMESPACE


class Principal(Struct, frozen=True):
    """A caller and the namespace it acts in."""

    name: str
    ns: int = DEFAULT_NAMESPACE
    is_admin: bool = False


ANONYMOUS_ADMIN = Principal(name="anonymous", is_admin=True)
