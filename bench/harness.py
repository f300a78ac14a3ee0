"""What every figure shares: its size, its verdict, the description of the machine."""

import os
import platform
import statistics
from collections.abc import Iterable
from pathlib import Path

import msgspec


class RunFailedError(Exception):
    """A run was not right, so its figure means nothing."""


class SkippedError(Exception):
    """This machine lacks what a figure needs; the sentence says what."""


class Scale(msgspec.Struct, frozen=True):
    """How large the runs are. The quick scale only proves that every figure works."""

    is_quick: bool
    rounds: int = 5
    seconds: float = 3.0
    connections: int = 64
    backlog_small: int = 10_000
    backlog_large: int = 1_000_000
    gated_jobs: int = 100_000
    parked: int = 5_000
    parked_seconds: float = 10.0
    latency_jobs: int = 1_000
    batch_jobs: int = 128_000
    engine_commands: int = 32_000
    load_seconds: float = 10.0
    worker_jobs: int = 50_000
    view_events: int = 600_000
    rebuild_jobs: int = 1_000_000


FULL = Scale(is_quick=False)
QUICK = Scale(
    is_quick=True,
    rounds=1,
    seconds=0.3,
    connections=8,
    backlog_small=200,
    backlog_large=1_000,
    gated_jobs=500,
    parked=50,
    parked_seconds=0.5,
    latency_jobs=20,
    batch_jobs=1_280,
    engine_commands=640,
    load_seconds=0.5,
    worker_jobs=2_000,
    view_events=1_500,
    rebuild_jobs=1_000,
)


class Figure(msgspec.Struct, frozen=True):
    """One measured number and what it is held to; a target of None is for information."""

    name: str
    value: float
    unit: str
    target: float | None = None
    is_ceiling: bool = False  # the value must not exceed the target instead of reaching it
    note: str = ""

    @property
    def is_met(self) -> bool:
        if self.target is None:
            return True
        return self.value <= self.target if self.is_ceiling else self.value >= self.target

    def render(self) -> str:
        shown = f"{self.value:,.2f}" if self.value < 100 else f"{self.value:,.0f}"
        verdict = ""
        if self.target is not None:
            bound = "≤" if self.is_ceiling else "≥"
            verdict = f"{bound} {self.target:,g}  {'met' if self.is_met else 'MISSED'}"
        line = f"  {self.name:<52} {shown:>12} {self.unit:<10} {verdict}"
        return f"{line.rstrip()}   ({self.note})" if self.note else line.rstrip()


def check(condition: object, complaint: str) -> None:
    """Fail the run when a fact about it does not hold."""
    if not condition:
        raise RunFailedError(complaint)


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def describe_machine() -> list[str]:
    """Say what the figures were measured on: they mean nothing without it."""
    memory = _first_value("/proc/meminfo", "MemTotal")
    return [
        f"machine   {_first_value('/proc/cpuinfo', 'model name') or platform.processor()}",
        f"cores     {os.cpu_count()}   load {os.getloadavg()[0]:.2f}",
        f"memory    {int(memory.split()[0]) // 1024 if memory else 0} MiB",
        f"system    {platform.system()} {platform.release()}",
        f"python    {platform.python_implementation()} {platform.python_version()}",
    ]


def _first_value(path: str, name: str) -> str:
    file = Path(path)
    if not file.exists():
        return ""
    for line in file.read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def cpu_seconds(pid: int) -> float:
    """Processor time a process has used so far, in user and kernel mode."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    """Memory a process holds, in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0
