"""Load from a process of its own: wrk where it is installed, else the client of `corvo bench`.

The client must not be the limit: wrk needs a fraction of the processor time of any server here. The
Python client is heavier; figures taken with it are marked, and only their ratios mean anything.
"""

import re
import shutil
import subprocess
from pathlib import Path

import msgspec

from bench.harness import RunFailedError, Scale, check, cpu_seconds
from bench.scripts import scripts_for
from bench.servers import Process
from corvo.cli.load import drive

LUA = Path(__file__).resolve().parent / "lua"
WRK = shutil.which("wrk")

_REQUESTS = re.compile(r"(\d+) requests in ([\d.]+)(us|ms|s|m)")
_REFUSED = re.compile(r"Non-2xx or 3xx responses: (\d+)")
_ERRORS = re.compile(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)")
_UNIT_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


class Load(msgspec.Struct, frozen=True):
    """What one run of load did to one server."""

    requests: int
    seconds: float
    cpu_us: float  # processor time of the server for one request

    @property
    def rate(self) -> float:
        return self.requests / self.seconds


def run_load(server: Process, script: str, scale: Scale, seconds: float | None = None) -> Load:
    """Put load on a server for a while; a refused or lost request fails the run."""
    lasting = seconds if seconds is not None else scale.seconds
    before = cpu_seconds(server.pid)
    if WRK is None:
        requests, took = _run_python(server, script, scale, lasting)
    else:
        requests, took = _run_wrk(WRK, server, script, scale, lasting)
    check(requests > 0, f"{server.name} answered nothing under {script}")
    used = cpu_seconds(server.pid) - before
    return Load(requests, took, used / requests * 1e6)


def _run_wrk(
    wrk: str, server: Process, script: str, scale: Scale, seconds: float
) -> tuple[int, float]:
    command = [wrk, "-t1", f"-c{scale.connections}", f"-d{max(1, round(seconds))}s"]
    command += ["-s", str(LUA / f"{script}.lua"), "--timeout", "10s", server.url]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    output = finished.stdout + finished.stderr
    match = _REQUESTS.search(output)
    if finished.returncode != 0 or match is None:
        raise RunFailedError(f"wrk failed: {output}")
    refused = _REFUSED.search(output)
    check(refused is None, f"{server.name} refused {refused and refused.group(1)} requests")
    errors = _ERRORS.search(output)
    check(errors is None, f"{server.name} lost connections: {errors and errors.group(0)}")
    return int(match.group(1)), float(match.group(2)) * _UNIT_SECONDS[match.group(3)]


def _run_python(server: Process, script: str, scale: Scale, seconds: float) -> tuple[int, float]:
    scripts = scripts_for(script, scale.connections)
    run = drive(server.address, scripts, seconds)
    refused = sum(one.refused for one in scripts)
    check(refused == 0, f"{server.name} refused {refused} requests")
    return run.requests, run.seconds
