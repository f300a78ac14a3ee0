"""What is declared, what is locked, and who may say which names."""

import re
import tomllib

from tests.tidy.source import ROOT

PIN = re.compile(r"^([A-Za-z0-9_.-]+)==([^\s;#]+)")


def _pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    found = [match.groups() for line in lines if (match := PIN.match(line))]
    return {_plain(package): version for package, version in found}


def _plain(package: str) -> str:
    return package.lower().replace("_", "-")


def _declared(requirements: list[str]) -> dict[str, str]:
    matches = [PIN.match(requirement) for requirement in requirements]
    assert all(matches), "every dependency is pinned exactly"
    return {_plain(match.group(1)): match.group(2) for match in matches if match}


def _project(folder: str = ".") -> dict[str, object]:
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))


def test_lock_holds_every_declared_dependency_at_its_version() -> None:
    """The lock and pyproject.toml agree, so `make setup` installs what is declared."""
    project = _project()["project"]
    assert isinstance(project, dict)
    declared = _declared(project["dependencies"])
    # The SDK is installed from this tree, beside the server.
    sdk = _project("sdks/python")["project"]
    assert isinstance(sdk, dict)
    assert declared.pop("corvo-sdk") == sdk["version"]
    assert declared.items() <= _pins("requirements.lock").items()


def test_every_dependency_of_the_sdk_is_locked() -> None:
    """What the SDK asks for as a range is pinned by the lock, within that range's lower end."""
    sdk = _project("sdks/python")["project"]
    assert isinstance(sdk, dict)
    pins = _pins("requirements.lock")
    for requirement in sdk["dependencies"]:
        name, _, bounds = requirement.partition(">=")
        assert pins[_plain(name)] == bounds.partition(",")[0]


def test_development_lock_holds_every_tool_at_its_version() -> None:
    """The tools of `make test` are locked at the versions pyproject.toml names."""
    project = _project()["project"]
    assert isinstance(project, dict)
    extras = project["optional-dependencies"]
    tools = _declared(extras["dev"])
    assert tools.items() <= _pins("requirements-dev.lock").items()
    # What the screens need is an extra for users, and part of what is tested.
    assert _declared(extras["top"]).items() <= tools.items()


def test_build_backend_is_locked_at_its_version() -> None:
    """Installing the working tree needs no second download."""
    build = _project()["build-system"]
    assert isinstance(build, dict)
    assert _declared(build["requires"]).items() <= _pins("requirements.lock").items()


def test_every_line_of_a_lock_is_an_exact_pin() -> None:
    """A lock with a range would install something else tomorrow."""
    for name in ("requirements.lock", "requirements-dev.lock"):
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
            if line and not line.startswith(("#", "-r ")):
                assert PIN.match(line), f"{name}: {line}"


def test_no_file_names_a_package_registry() -> None:
    """Where wheels come from is the business of the machine that installs them."""
    registry = re.compile(
        r"py" r"pi\.org|python" r"hosted|npm" r"js\.|--index" r"-url|find" r"-links"
    )
    names = ["pyproject.toml", "Makefile", ".ci/run", "requirements.lock", "requirements-dev.lock"]
    assert [name for name in names if registry.search((ROOT / name).read_text())] == []


def test_every_lint_exception_has_a_reason() -> None:
    """Each line of the ignore list in pyproject.toml ends in a comment."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = text.partition("[tool.ruff.lint]")[2].partition("\n]\n")[0]
    lines = [line for line in block.splitlines() if line.startswith('  "')]
    assert lines != []
    assert [line for line in lines if "#" not in line] == []
