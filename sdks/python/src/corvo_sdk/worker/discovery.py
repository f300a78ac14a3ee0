"""From `pkg.module:app` on the command line to the app it names."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from corvo_sdk.app import Corvo


class AppNotFoundError(LookupError):
    """The reference names no app; the text says why and what to write instead."""


def extend_path(folder: Path) -> None:
    """Make the modules of a project importable: its folder, and `src` below it."""
    for place in (folder / "src", folder):
        if place.is_dir() and str(place) not in sys.path:
            sys.path.insert(0, str(place))


def load(reference: str) -> Corvo:
    """Import the app of a reference; the name may be left out when the module has only one.

    Raises AppNotFoundError. What the module itself raises is passed on: its traceback says it.
    """
    name, _, attribute = reference.partition(":")
    if not name or name.startswith("."):
        raise AppNotFoundError(f"{reference!r} names no module; write pkg.module:app")
    if name.endswith(".py") or "/" in name:
        dotted = name.removesuffix(".py").strip("/").replace("/", ".")
        raise AppNotFoundError(f"{name!r} is a file; write the module, such as {dotted}")
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise  # the module is there, and imports something that is not
        folder = Path.cwd()
        raise AppNotFoundError(
            f"there is no module {error.name!r}; looked in {folder}, {folder / 'src'} and sys.path"
        ) from error
    return _named(module, attribute) if attribute else _only(module)


def _named(module: ModuleType, attribute: str) -> Corvo:
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise AppNotFoundError(f"module {module.__name__} has no {attribute!r}")
        found = getattr(found, part)
    if not isinstance(found, Corvo):
        kind = type(found).__name__
        raise AppNotFoundError(f"{module.__name__}:{attribute} is a {kind}, not a Corvo app")
    return found


def _only(module: ModuleType) -> Corvo:
    found = {id(value): name for name, value in vars(module).items() if isinstance(value, Corvo)}
    if len(found) != 1:
        names = ", ".join(sorted(found.values())) or "none"
        raise AppNotFoundError(
            f"module {module.__name__} has {len(found)} apps ({names}); "
            f"name one: {module.__name__}:app"
        )
    app = getattr(module, next(iter(found.values())))
    assert isinstance(app, Corvo)
    return app
