"""Settings: precedence, refusals, and the table they all come from."""

from pathlib import Path

import pytest

from corvo.server.config import Config, ConfigError, load
from corvo.server.options import OPTIONS, PREFIX, Option, render_reference

ROOT = Path(__file__).resolve().parents[3]


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_config_has_exactly_one_field_per_option() -> None:
    """A setting can not be declared without reaching the server, nor the other way round."""
    declared = [option.field for option in OPTIONS]
    assert declared == [
        name for name in Config.__struct_fields__ if name not in ("notices", "tracing")
    ]


def test_every_default_is_valid() -> None:
    """A server starts without any setting."""
    config = load({}, {})
    assert config.address == ("127.0.0.1", 8080)
    assert config.fsync == "always"
    assert config.shutdown_timeout == 30_000


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    """Precedence is flag, environment, file, default."""
    file = write(tmp_path / "corvo.toml", 'data-dir = "from-file"\nretention = "1d"\nmax_pending=7')
    environment = {"CORVO_CONFIG": file, "CORVO_DATA_DIR": "from-env", "CORVO_RETENTION": "2d"}
    config = load({"data-dir": "from-flag"}, environment)
    assert config.data_dir == "from-flag"
    assert config.retention == 2 * 86_400_000
    assert config.max_pending == 7
    assert config.parked_max == 20_000


def test_config_flag_beats_config_variable(tmp_path: Path) -> None:
    """The file itself is chosen by the same precedence."""
    one = write(tmp_path / "one.toml", 'node-id = "one"')
    two = write(tmp_path / "two.toml", 'node-id = "two"')
    assert load({"config": one}, {"CORVO_CONFIG": two}).node_id == "one"


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_option_is_read_from_the_environment(option: Option) -> None:
    """Each flag is also a CORVO_ variable."""
    assert option.variable == PREFIX + option.name.upper().replace("-", "_")
    text = "true" if option.is_flag else str(option.default)
    if option.name == "bind":
        text = "127.0.0.1:9"
    config = load({}, {option.variable: text})
    if option.is_flag:
        assert getattr(config, option.field) is True
    if option.name == "bind":
        assert config.bind == "127.0.0.1:9"


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ({"bind": "8080"}, "HOST:PORT"),
        ({"bind": "127.0.0.1:99999"}, "HOST:PORT"),
        ({"bind": "::1:80"}, "brackets"),
        ({"fsync": "sometimes"}, "always, off or interval"),
        ({"fsync": "interval="}, "always, off or interval"),
        ({"fsync": "interval=0ms"}, "always, off or interval"),
        ({"retention": "-1s"}, "duration"),
        ({"retention": "eleven"}, "duration"),
        ({"max-payload-size": "1 lot"}, "size"),
        ({"max-pending": "0"}, "whole number"),
        ({"max-pending": "²"}, "whole number"),
        ({"log-level": "loud"}, "one of"),
        ({"view": "sideways"}, "one of"),
        ({"data-dir": ""}, "empty"),
        ({"webhook-allow": "everything"}, "networks"),
        ({"webhook-allow": "10.0.0.1/8"}, "networks"),
    ],
)
def test_bad_value_is_refused_with_its_place(flags: dict[str, str], complaint: str) -> None:
    """A wrong value is one sentence that names the flag."""
    with pytest.raises(ConfigError) as caught:
        load(flags, {})
    assert complaint in caught.value.message
    assert f"--{next(iter(flags))}" in caught.value.message


@pytest.mark.parametrize("address", [":8080", "0.0.0.0:8080", "10.0.0.1:80", "[::]:80", "host:80"])
def test_address_others_can_reach_needs_insecure(address: str) -> None:
    """Without keys the server is not put on a network by accident."""
    with pytest.raises(ConfigError) as caught:
        load({"bind": address}, {})
    assert "--insecure" in str(caught.value.hint)
    assert load({"bind": address, "insecure": True}, {}).bind == address


@pytest.mark.parametrize("address", ["127.0.0.1:0", "127.8.8.8:80", "localhost:80", "[::1]:80"])
def test_loopback_address_needs_nothing(address: str) -> None:
    """Addresses only this machine can reach are fine."""
    assert load({"bind": address}, {}).bind == address


@pytest.mark.parametrize("name", ["join", "discover", "bootstrap-cluster", "raft-bind"])
def test_cluster_flag_is_refused_from_every_source(name: str, tmp_path: Path) -> None:
    """Nobody believes to have replicas because a flag was ignored."""
    file = write(tmp_path / "c.toml", f'{name} = "x"')
    variable = PREFIX + name.upper().replace("-", "_")
    for flags, environment in (({name: "x"}, {}), ({}, {variable: "x"}), ({"config": file}, {})):
        with pytest.raises(ConfigError) as caught:
            load(flags, environment)
        assert "clustering is not part of this build" in caught.value.message


def test_flags_without_a_meaning_leave_a_notice() -> None:
    """A command line found elsewhere works, and says what had no effect."""
    config = load({"raft-store": "badger", "lifecycle-events": "true"}, {})
    assert len(config.notices) == 2
    assert all("no effect" in notice for notice in config.notices)


def test_durable_contradicts_a_weaker_fsync() -> None:
    """Asking for both is a mistake, and the safer one is not chosen in silence."""
    assert load({"durable": True}, {}).fsync == "always"
    with pytest.raises(ConfigError):
        load({"durable": True, "fsync": "off"}, {})


def test_unknown_key_of_the_file_is_refused(tmp_path: Path) -> None:
    """A misspelt setting does not go unnoticed."""
    file = write(tmp_path / "c.toml", 'data-dri = "x"')
    with pytest.raises(ConfigError) as caught:
        load({"config": file}, {})
    assert "data-dri" in caught.value.message


@pytest.mark.parametrize("text", ["= 1", "[x", "\x00"])
def test_file_that_is_not_toml_is_refused(text: str, tmp_path: Path) -> None:
    """A broken file is a sentence, not a trace."""
    with pytest.raises(ConfigError):
        load({"config": write(tmp_path / "c.toml", text)}, {})
    with pytest.raises(ConfigError):
        load({"config": str(tmp_path / "absent.toml")}, {})


def test_reference_lists_every_option_as_the_table_does() -> None:
    """The page holds the table; `python -m corvo.server.options` prints a new one."""
    text = (ROOT / "docs" / "reference" / "config.md").read_text(encoding="utf-8")
    assert render_reference() in text
