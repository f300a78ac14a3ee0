"""The only reader of the environment and of files: everything else is handed a finished `Config`.

Precedence: flag, then environment, then file, then default. A value is checked wherever it comes
from, and a bad one is refused with the place it was found in.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from corvo.errors import CorvoError
from corvo.runtime.telemetry import Form, Level
from corvo.server.options import BY_NAME, NOTICES, OPTIONS, PREFIX, REFUSALS, Option, Setting
from corvo.server.values import is_loopback, split_address

CONFIG_VARIABLE = PREFIX + "CONFIG"

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off", ""})


class ConfigError(CorvoError):
    """A setting can not be used; the server does not start."""

    code = "CONFIG_INVALID"


class Config(Struct, frozen=True):
    """All settings, checked. Invariant: one field per row of `options.OPTIONS` (test_config)."""

    bind: str
    insecure: bool
    data_dir: str
    fsync: str
    durable: bool
    ephemeral: bool
    log_level: Level
    log_format: Form
    shutdown_timeout: int  # milliseconds, as are the other durations
    retention: int
    retention_interval: int
    undo_retention: int
    events_retention: int
    events_max: int
    max_payload_size: int
    max_pending: int
    max_fetch_inflight: int
    parked_max: int
    disk_reserve: int
    batch_max: int
    cluster_name: str
    node_id: str
    bootstrap: bool
    view: str
    grpc_bind: str
    stream_max_open: int
    stream_max_inflight: int
    stream_max_buffer: int
    stream_idle_timeout: int
    webhook_allow: str
    notices: tuple[str, ...] = ()
    tracing: bool = False  # whether the standard OTEL_* variables ask for spans

    @property
    def address(self) -> tuple[str, int]:
        return split_address(self.bind)

    @property
    def grpc_address(self) -> tuple[str, int] | None:
        """Where gRPC listens; None when it is off. Port 0 takes a free one."""
        if self.grpc_bind == "off":
            return None
        if self.grpc_bind != "auto":
            return split_address(self.grpc_bind)
        host, port = self.address
        # Above the last port there is none to take by itself.
        return host, port + 1 if 0 < port < 65_535 else 0


def load(flags: Mapping[str, object], environment: Mapping[str, str]) -> Config:
    """Join flags (by setting name; None when not given), environment and file into settings."""
    _refuse_cluster(flags, environment)
    path = flags.get("config") or environment.get(CONFIG_VARIABLE)
    document = _read_file(Path(str(path))) if path else {}
    values: dict[str, Any] = {}
    for option in OPTIONS:
        values[option.field] = _resolve(option, flags, environment, document)
    notices = tuple(
        f"{place} has no effect: {NOTICES[name]}"
        for name in NOTICES
        if (place := _place_of(name, flags, environment, document))
    )
    config = Config(**values, notices=notices, tracing=is_tracing(environment))
    _check_together(config)
    return config


def is_tracing(environment: Mapping[str, str]) -> bool:
    """Whether the standard variables ask for spans to be exported."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if exporter:
        return exporter != "none"
    names = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    return any(environment.get(name) for name in names)


def _resolve(
    option: Option,
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    document: Mapping[str, object],
) -> Setting:
    flag = flags.get(option.name)
    if flag is not None:
        return _read(option, flag, f"--{option.name}")
    variable = environment.get(option.variable)
    if variable is not None:
        return _read(option, variable, option.variable)
    if option.name in document:
        return _read(option, document[option.name], f"{option.name} in the configuration file")
    return _read(option, option.default, f"the default of --{option.name}")


def _read(option: Option, value: object, place: str) -> Setting:
    if option.is_flag:
        return _read_flag(value, place)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ConfigError(f"{place} must be text or a number", field=option.name)
    text = str(value)
    if option.choices and text not in option.choices:
        listed = ", ".join(option.choices)
        raise ConfigError(f"{place} must be one of: {listed}; it is {text!r}", field=option.name)
    try:
        return option.parse(text)
    except ValueError as error:
        raise ConfigError(f"{place} {error}; it is {text!r}", field=option.name) from error


def _read_flag(value: object, place: str) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ConfigError(f"{place} must be true or false; it is {value!r}")


def _read_file(path: Path) -> dict[str, object]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"the configuration file {path} can not be read: {error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"the configuration file {path} is not TOML: {error}") from error
    known = {key.replace("_", "-"): value for key, value in document.items()}
    for name in known:
        if name in REFUSALS:
            _refuse(f"{name} in {path}")
        if name not in BY_NAME and name not in NOTICES:
            raise ConfigError(
                f"{path} names a setting that does not exist: {name}",
                field=name,
                hint="docs/reference/config.md lists all of them",
            )
    return known


def _variable(name: str) -> str:
    return PREFIX + name.replace("-", "_").upper()


def _place_of(
    name: str,
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    document: Mapping[str, object],
) -> str:
    if flags.get(name) is not None:
        return f"--{name}"
    if _variable(name) in environment:
        return _variable(name)
    return name if name in document else ""


def _refuse_cluster(flags: Mapping[str, object], environment: Mapping[str, str]) -> None:
    for name in REFUSALS:
        place = _place_of(name, flags, environment, {})
        if place:
            _refuse(place)


def _refuse(place: str) -> None:
    raise ConfigError(
        f"{place} asks for a cluster, and clustering is not part of this build",
        hint="start a single server: corvo server --data-dir DIR",
    )


def _check_together(config: Config) -> None:
    _check_reach(config, "bind", config.bind, config.address)
    if config.grpc_address is not None:
        _check_reach(config, "grpc-bind", config.grpc_bind, config.grpc_address)
    if config.durable and config.fsync != "always":
        raise ConfigError(
            f"--durable and --fsync {config.fsync} contradict each other",
            field="fsync",
            hint="--durable means --fsync always: leave one of them out",
        )


def _check_reach(config: Config, name: str, text: str, address: tuple[str, int]) -> None:
    if not is_loopback(address[0]) and not config.insecure:
        raise ConfigError(
            f"--{name} {text} can be reached by other machines, and there are no keys yet",
            field=name,
            hint="bind to 127.0.0.1, or add --insecure when the network is trusted",
        )
