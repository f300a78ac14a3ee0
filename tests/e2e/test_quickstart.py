"""The README, run as it is printed."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.process import ROOT, ServerProcess, environment

BLOCK = re.compile(r"<!-- quickstart -->\n```bash\n(.*?)```", re.DOTALL)
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="the README uses curl")


def in_shell(script: str, directory: Path) -> str:
    finished = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=directory,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


@needs_curl
def test_quickstart_of_the_readme_works_as_printed(tmp_path: Path) -> None:
    """Enqueue, fetch, ack and inspect, copied from the README; only the address is another."""
    blocks = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(blocks) == 4
    command = tmp_path / ".venv" / "bin" / "corvo"
    command.parent.mkdir(parents=True)
    with ServerProcess(tmp_path / "data") as server:
        command.write_text(
            f'#!/bin/sh\nCORVO_URL={server.url} exec {sys.executable} -m corvo "$@"\n'
        )
        command.chmod(0o755)
        script = "\necho\n".join(blocks).replace("http://127.0.0.1:8080", server.url)
        output = in_shell(script, tmp_path)
        assert server.stop() == 0
    assert output.count('"status":"pending"') == 1
    assert output.count('"status":"completed"') == 1
    assert '"result":{"sent": true}' in output or '"result":{"sent":true}' in output
    assert re.search(r"^emails\.send ", output, re.MULTILINE)


@needs_curl
def test_line_of_the_banner_enqueues_a_job(tmp_path: Path) -> None:
    """The curl line printed at start can be pasted."""
    with ServerProcess(tmp_path / "data") as server:
        line = next(line for line in server.banner.splitlines() if " try " in line)
        answer = in_shell(line.split("try", 1)[1], tmp_path)
    assert '"status":"pending"' in answer


def test_documents_name_only_files_that_exist() -> None:
    """Links between the documents lead somewhere."""
    link = re.compile(r"\]\((?!https?:)([^)#]+)")
    folders = ("*.md", "docs/**/*.md", "bench/*.md", "examples/**/*.md", "sdks/*/*.md")
    for document in [path for folder in folders for path in ROOT.glob(folder)]:
        for target in link.findall(document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name}: {target}"
