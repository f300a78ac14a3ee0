"""Every setting of the server, in one table: flags, environment, file and reference come from it.

A setting is written `--data-dir` on the command line, `CORVO_DATA_DIR` in the environment and
`data-dir` in the file. The command line builds its flags from this table, `config` reads values
with it, and docs/reference/config.md is compared with it, so that the three can not drift apart.
"""

from collections.abc import Callable

from msgspec import Struct

from corvo.model import limits
from corvo.server.values import (
    parse_address,
    parse_bytes,
    parse_count,
    parse_duration_ms,
    parse_fsync,
    parse_networks,
    parse_optional_address,
    parse_text,
)

PREFIX = "CORVO_"

Setting = str | int | bool


class Option(Struct, frozen=True):
    """One setting: its name, how its text is read, what it is when nobody says anything."""

    name: str
    default: str | bool
    help: str
    parse: Callable[[str], Setting] = parse_text
    placeholder: str = "TEXT"
    choices: tuple[str, ...] = ()

    @property
    def is_flag(self) -> bool:
        return isinstance(self.default, bool)

    @property
    def field(self) -> str:
        return self.name.replace("-", "_")

    @property
    def variable(self) -> str:
        return PREFIX + self.field.upper()


def _count(name: str, default: int, text: str) -> Option:
    return Option(name, str(default), text, parse_count, "N")


def _duration(name: str, default: str, text: str) -> Option:
    return Option(name, default, text, parse_duration_ms, "DURATION")


def _bytes(name: str, default: str, text: str) -> Option:
    return Option(name, default, text, parse_bytes, "BYTES")


def _choice(name: str, choices: tuple[str, ...], text: str) -> Option:
    return Option(name, choices[0], text, parse_text, "|".join(choices), choices)


OPTIONS: tuple[Option, ...] = (
    Option(
        "bind",
        "127.0.0.1:8080",
        "address and port to listen on; port 0 takes a free one",
        parse_address,
        "HOST:PORT",
    ),
    Option("insecure", False, "allow an address that other machines can reach, without any keys"),
    Option("data-dir", "data", "directory of the log and the store", parse_text, "PATH"),
    Option(
        "fsync",
        "always",
        "when an answer may be given: always (on disk first), interval=200ms (at most that much "
        "is lost with the power), off (the operating system decides)",
        parse_fsync,
        "MODE",
    ),
    Option("durable", False, "another spelling of --fsync always"),
    Option("ephemeral", False, "keep everything in memory; nothing survives the process"),
    _choice("log-level", ("info", "debug", "warning", "error"), "least severity that is reported"),
    _choice("log-format", ("text", "json"), "how reports on standard error are written"),
    _duration("shutdown-timeout", "30s", "how long a stop waits for requests under way"),
    _duration("retention", "7d", "how long settled jobs are kept, unless their queue says else"),
    _duration("retention-interval", "10s", "how often what is past its retention is purged"),
    _duration(
        "undo-retention", "1d", "how long a bulk operation or a clear can be undone; 0s: not at all"
    ),
    _duration("events-retention", "7d", "how long events are kept"),
    _count("events-max", limits.EVENTS_COUNT_DEFAULT, "how many events are kept"),
    _bytes("max-payload-size", "256KiB", "largest payload, result or checkpoint of a job"),
    _count("max-pending", limits.PENDING_MAX_DEFAULT, "commands admitted before callers get 429"),
    _count(
        "max-fetch-inflight",
        limits.FETCH_INFLIGHT_MAX_DEFAULT,
        "fetches of one queue under way at once; the others stay parked",
    ),
    _count("parked-max", limits.PARKED_MAX_DEFAULT, "waiting fetches before further ones get 429"),
    _bytes("disk-reserve", "256MiB", "free space below which enqueues are refused; 0 turns it off"),
    _count("batch-max", limits.ENTRY_COMMANDS_MAX, "commands written and synced together"),
    Option("cluster-name", "corvo", "name written into the log, checked when it is opened"),
    Option("node-id", "node-1", "name of this node, written into the log"),
    Option("bootstrap", False, "accepted: a single server bootstraps itself"),
    _choice("view", ("on", "off"), "the search index, a process of its own; off: no search"),
    Option(
        "grpc-bind",
        "auto",
        "address and port of the worker service over gRPC; auto: the host of --bind and its port "
        "plus one; port 0 takes a free one; off: none",
        parse_optional_address,
        "HOST:PORT|auto|off",
    ),
    _count("stream-max-open", limits.STREAM_OPEN_MAX, "worker streams before further ones get 429"),
    _count("stream-max-inflight", limits.STREAM_INFLIGHT_MAX, "slots of one worker stream"),
    _bytes("stream-max-buffer", "16MiB", "unsent bytes at which a worker stream is closed"),
    _duration("stream-idle-timeout", "60s", "how long a worker stream may be silent"),
    Option(
        "webhook-allow",
        "none",
        "networks webhooks may be sent to although they are not public, such as 10.0.0.0/8,::1",
        parse_networks,
        "CIDR,...",
    ),
)

# Flags that mean nothing here. They are accepted, so that a command line found elsewhere works, and
# answered with one line that says why nothing happens.
NOTICES: dict[str, str] = {
    "raft-store": "the log has one format of its own",
    "sqlite-mirror-async": "there is no mirror to configure",
    "lifecycle-events": "events are always recorded",
}

# Flags that ask for what this build can not do: ignoring them would leave users unreplicated.
REFUSALS: tuple[str, ...] = (
    "join",
    "discover",
    "discover-dns-name",
    "bootstrap-cluster",
    "raft-bind",
)

BY_NAME: dict[str, Option] = {option.name: option for option in OPTIONS}
assert len(BY_NAME) == len(OPTIONS), "two settings share a name"


def render_reference() -> str:
    """Render the table of docs/reference/config.md."""
    lines = ["| flag | environment | default | meaning |", "|---|---|---|---|"]
    for option in OPTIONS:
        default = "off" if option.default is False else f"`{option.default}`"
        shown = f"`--{option.name}`" if option.is_flag else f"`--{option.name} {_shown(option)}`"
        lines.append(f"| {shown} | `{option.variable}` | {default} | {option.help} |")
    return "\n".join(lines)


def _shown(option: Option) -> str:
    # A bar inside a cell would start the next column.
    return option.placeholder.replace("|", "\\|")


if __name__ == "__main__":
    # Prints what belongs between the markers of docs/reference/config.md.
    print(render_reference())  # noqa: T201
