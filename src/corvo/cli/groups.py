"""Groups of commands of which one is meant when none is named."""

from typing import Any, Final

import click

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
        is_default = not args or (args[0].startswith("-") and args[0] not in _HELP)
        if self._is_named_by_argument and args and not args[0].startswith("-"):
            is_default = args[0] not in self.commands
        elif self._is_named_by_argument and not args:
            is_default = False
        # Safety: while a shell completes, click parses what is there so far without running it.
        return super().parse_args(ctx, [self._default, *args] if is_default else args)
