"""`corvo completion SHELL`: the script that lets a shell complete commands, options and queues."""

from typing import Any, Final

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

_SHELLS: Final[dict[str, type[ShellComplete]]] = {
    "bash": BashComplete,
    "zsh": ZshComplete,
    "fish": FishComplete,
}
_VARIABLE: Final = "_CORVO_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell: `eval "$(corvo completion bash)"` in its start file.

    zsh: the same line in ~/.zshrc. fish: corvo completion fish >
    ~/.config/fish/completions/corvo.fish. Names of queues are asked of the server, briefly.
    """
    root: Any = context.find_root().command
    script = _SHELLS[shell](root, {}, "corvo", _VARIABLE)
    # Safety: not the method of the subclass, which starts a bash to look at its version and
    # complains when the machine that prints the script is not the one that uses it.
    click.echo(ShellComplete.source(script).strip())
