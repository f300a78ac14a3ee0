"""Who is asking: the one place a request turns into a principal."""

from corvo.model.principal import ANONYMOUS_ADMIN, Principal


def principal_of(_request: object) -> Principal:
    """Name the caller of a request. Until keys exist, everybody is the anonymous administrator."""
    return ANONYMOUS_ADMIN
