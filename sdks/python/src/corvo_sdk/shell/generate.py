"""Makes the methods of `AsyncClient` from those of `Client`; `make sdk` runs it."""

import re
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent
_MADE: Final = "# Made from {source} by `make sdk`; change that one.\n"

# Safety: plain text is enough, because `blocking` is written in a few fixed forms; the test of
# equal signatures and the type checkers would notice a form that is not among them.
_RULES: Final[tuple[tuple[str, str], ...]] = (
    (r"^    def (?!__)", "    async def "),
    (r"(?<!def )\bself\._run\(", "await self._run("),
    (r"(?<![\w.])for (\w+) in self\.", r"async for \1 in self."),
    (r"\bcorvo_sdk\.shell\.blocking\b", "corvo_sdk.shell.awaiting"),
    (r"\bcollections\.abc import Iterator\b", "collections.abc import AsyncIterator"),
    (r"(?<!Async)\bIterator\[", "AsyncIterator["),
    (r"(?<!Async)\bIterator,", "AsyncIterator,"),
    (r"`Client`", "`AsyncClient`"),
)


def made(source: str, name: str) -> str:
    """The text of one module of `awaiting`."""
    for pattern, replacement in _RULES:
        source = re.sub(pattern, replacement, source, flags=re.MULTILINE)
    return _MADE.format(source=f"shell/blocking/{name}") + source


def modules() -> dict[Path, str]:
    """What belongs into `awaiting`, by path."""
    return {
        _HERE / "awaiting" / path.name: made(path.read_text(encoding="utf-8"), path.name)
        for path in sorted((_HERE / "blocking").glob("*.py"))
    }


def main() -> None:
    for path, text in modules().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
