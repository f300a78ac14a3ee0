"""Groups of commands of which one is meant when none is named."""

from typing import Any, Final

import click
from click.shell_completion import CompletionItem

_HELP: Final = frozenset({"-h", "--help"})


class DefaultGroup(click.Group):
    """`corvo schedules --output json` is `corvo schedules list --output json`.

    The options belong to the command that is meant, so that none given to the group is ever
    ignored. With `is_named_by_argument` the first word may also be what the command is about.
    """

    def __init__(
        self, *args: Any, default: str, is_named_by_argument: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._default = default
        self._is_named_by_argument = is_named_by_argument

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if self._is_default(ctx, args):
            args = [self._default, *args]
        return super().parse_args(ctx, args)

    def _is_default(self, ctx: click.Context, args: list[str]) -> bool:
        if not args:
            # While a shell completes, the word to come may still be the name of a command.
            return not self._is_named_by_argument and not ctx.resilient_parsing
        if args[0].startswith("-"):
            return not self._is_named_by_argument and args[0] not in _HELP
        return self._is_named_by_argument and args[0] not in self.commands

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = super().shell_complete(ctx, incomplete)
        if self._is_named_by_argument:
            meant = self.commands[self._default]
            argument = next(each for each in meant.params if isinstance(each, click.Argument))
            found += argument.shell_complete(ctx, incomplete)
        return found
