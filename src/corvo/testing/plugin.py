"""The pytest plugin: a fixture named `corvo`, and chaos on request.

    def test_welcome_mail(corvo):
        corvo.use(app)
        sign_up("ada@example.org")
        corvo.assert_enqueued(send_mail, to="ada@example.org")
        corvo.drain_sync()

`corvo_app = package.module:app` in the configuration of pytest spares `corvo.use`.

Cost: loaded by every run of pytest where Corvo is installed, so it imports nothing before a test
asks for the fixture.
"""

import re
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from corvo.testing.kit import Kit

RUNS_DEFAULT = 25
SEED_FIXTURE = "corvo_chaos_seed"
_SEED_IN_ID = re.compile(r"\[(?:.*-)?chaos=(\d+)(?:-.*)?\]$")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("corvo", "corvo: jobs in tests")
    group.addoption(
        "--corvo-chaos",
        metavar="SEED",
        type=int,
        help="run every test of the corvo fixture with workers that crash, lose leases and get "
        "jobs twice; SEED is the first of --corvo-chaos-runs seeds",
    )
    group.addoption(
        "--corvo-chaos-runs",
        metavar="N",
        type=int,
        default=RUNS_DEFAULT,
        help=f"how many seeds are tried (default {RUNS_DEFAULT}); 1 to repeat one failure",
    )
    parser.addini("corvo_app", "application the corvo fixture serves: package.module:app")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--corvo-chaos") is not None:
        config.pluginmanager.register(Summary(), "corvo chaos summary")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test of the fixture once for every seed."""
    first: int | None = metafunc.config.option.corvo_chaos
    if first is None or SEED_FIXTURE not in metafunc.fixturenames:
        return
    runs: int = metafunc.config.option.corvo_chaos_runs
    seeds = range(first, first + max(1, runs))
    ids = [f"chaos={seed}" for seed in seeds]
    metafunc.parametrize(SEED_FIXTURE, seeds, ids=ids, indirect=True)


@pytest.fixture
def corvo_chaos_seed(request: pytest.FixtureRequest) -> int | None:
    """The seed of this run; None without --corvo-chaos."""
    return getattr(request, "param", None)


@pytest.fixture
def corvo(
    request: pytest.FixtureRequest,
    corvo_chaos_seed: int | None,
) -> "Iterator[Kit]":
    """A Corvo of the test's own: real rules, memory for a disk, time that waits."""
    from corvo.testing.kit import Kit  # noqa: PLC0415 - same
    from corvo_sdk.worker.discovery import load  # noqa: PLC0415 - see the module's docstring

    with Kit(chaos_seed=corvo_chaos_seed) as kit:
        named = str(request.config.getini("corvo_app"))
        if named:
            kit.use(load(named))
        yield kit


class Summary:
    """Remembers the smallest failing seed of each test, and says which one to repeat."""

    def __init__(self) -> None:
        self._smallest: dict[str, int] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        arguments: dict[str, Any] = getattr(item, "funcargs", {})
        kit: Kit | None = arguments.get("corvo")
        if report.when == "call" and kit is not None and kit.chaos is not None:
            report.sections.append(("corvo chaos", kit.chaos.render()))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = _SEED_IN_ID.search(report.nodeid)
        if found is None or not report.failed:
            return
        test, seed = report.nodeid[: found.start()], int(found.group(1))
        self._smallest[test] = min(seed, self._smallest.get(test, seed))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._smallest:
            return
        terminalreporter.section("corvo chaos")
        for test, seed in sorted(self._smallest.items()):
            terminalreporter.write_line(f"{test}: smallest failing seed {seed}")
            terminalreporter.write_line(
                f"  repeat it: pytest '{test}' --corvo-chaos={seed} --corvo-chaos-runs=1"
            )
