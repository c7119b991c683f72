"""The GitHub Action and the GitLab job, run literally: their reports, outputs and exit statuses."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from harness.diff.backends import backend
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.forge import Ended, run_action, run_gitlab_job
from tests.kernel.helpers.roots import bare_root
from tests.lab.pycache import compiled_modules
from tests.unit.harness.report.helpers.formats import checked_junit, checked_sarif

ROOT: Final = Path(__file__).parents[2]
ACTION: Final = (ROOT / "action.yml").read_text()
JOB: Final = yaml.safe_load((ROOT / "deploy/gitlab/nfparity.gitlab-ci.yml").read_text())["nfparity"]
RULES: Final = ROOT / "tests/corpus/rulesets/kube-real/rules.iptables-save"
CASE: Final = ROOT / "tests/corpus/cases/protocol-implied"
ONE: Final = "--known-only --only K05 --no-times"
"""One difference, so that a run takes seconds."""
_ENTER: Final = """
mount -t proc proc "$0/proc"; mount -t sysfs sys "$0/sys"; mount --rbind /dev "$0/dev"
chroot "$0" "$@"
"""
_WITHIN: Final = """
apt-get update -qq
apt-get install -qq -y --no-install-recommends python3 xz-utils >/dev/null
cd /workspace
"$@"
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    require(backend("iptables-legacy"), backend("nftables"))
    folder = tmp_path / "workspace"
    (folder / "snapshots").mkdir(parents=True)
    shutil.copy(RULES, folder / "snapshots/a node.save")
    (folder / "snapshots/broken.save").write_text("*filter\n-A INPUT --no-such-option\nCOMMIT\n")
    return folder


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH on which nfparity is this tree's."""
    tools = tmp_path / "bin"
    tools.mkdir()
    command = tools / "nfparity"
    variables = {"PYTHONPATH": str(ROOT), **compiled_modules()}
    words = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    command.write_text(f'#!/bin/sh\n{words} exec {sys.executable} -m nfparity "$@"\n')
    command.chmod(0o755)
    return f"{tools}:{os.environ['PATH']}"


def action(inputs: Mapping[str, str], workspace: Path, path: str) -> Ended:
    """Run the action as it runs on a machine where nfparity is already installed."""
    temporary = workspace.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    return run_action(
        ACTION, inputs, workspace=workspace, temporary=temporary, action_path=str(ROOT),
        environment={"PATH": path, "HOME": str(workspace)}, steps=["Test the rules"],
    )  # fmt: skip


def check_reports(folder: Path, name: str) -> None:
    """Insist on a finding K05 in each of the three reports."""
    junit = checked_junit((folder / f"{name}.xml").read_text(), times=False)
    failures = junit.findall("testsuite/testcase/failure")
    assert any(failure.attrib["message"].startswith("K05: ") for failure in failures)
    results = checked_sarif(json.loads((folder / f"{name}.sarif").read_text()))["results"]
    assert {result["ruleId"] for result in results} == {"K05"}
    assert "packets that conntrack calls invalid are forwarded" in (folder / f"{name}.html").read_text()


def test_the_action_reports_on_each_of_the_rules(workspace: Path, path: str) -> None:
    inputs = {"rules": "snapshots/*.save\n\nnone/*.tar.gz\n", "options": ONE, "reports": "out/reports"}
    done = action(inputs, workspace, path)
    reports = workspace / "out/reports"
    assert sorted({one.name.partition(".")[0] for one in reports.iterdir()}) == ["snapshots-a-node"]
    check_reports(reports, "snapshots-a-node.save")
    assert "nfparity assess snapshots/a node.save: exit status 1\n" in done.log
    assert "snapshots/broken.save:2" in done.log
    assert "::error::no file matches none/*.tar.gz" in done.log
    assert done.outputs == {"status": "2", "reports": "out/reports"}
    assert done.status == 2, "bad input is graver than findings"
    assert done.summary.startswith("### nfparity assess snapshots/a node.save\n````\n")
    assert "\n  changes      K05\n" in done.summary


def test_the_threshold_of_the_action(workspace: Path, path: str) -> None:
    """K05 changes traffic and breaks none: the step does not fail, and reports it."""
    done = action({"rules": "snapshots/a*", "options": ONE, "fail-on": "breaks"}, workspace, path)
    assert (done.status, done.outputs["status"]) == (0, "0"), done.log
    check_reports(workspace / done.outputs["reports"], "snapshots-a-node.save")


def test_the_action_compares_translations(workspace: Path, path: str) -> None:
    case = tomllib.loads((CASE / "case.toml").read_text())
    shutil.copy(CASE / case["rules"], workspace / "cni.save")
    shutil.copy(CASE / case["node"], workspace / "node.json")
    shutil.copy(CASE / "flows.jsonl", workspace)
    options = "--node node.json --backends nftables --no-times"
    inputs = {"command": "diff", "corpus": "flows.jsonl", "options": options}
    done = action({"rules": "cni.save", **inputs}, workspace, path)
    assert done.status == 0, done.log
    junit = checked_junit((workspace / "nfparity-reports/cni.save.xml").read_text(), times=False)
    assert int(junit.get("tests", "")) > 10


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"rules": "\n \n"}, "::error::rules names no file"),
        ({"rules": "snapshots/a*", "command": "tc; id"}, "::error::command is assess or diff, not tc; id"),
        ({"rules": "$(touch made)"}, "::error::no file matches $(touch made)"),
    ],
)
def test_wrong_inputs_of_the_action(inputs: dict[str, str], said: str, workspace: Path, path: str) -> None:
    done = action(inputs, workspace, path)
    assert done.status == 2
    assert said in done.log
    assert not (workspace / "made").exists()


def test_no_script_of_the_action_contains_an_expression() -> None:
    """An expression in a script would make a workflow's input part of the program."""
    for step in yaml.safe_load(ACTION)["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert set(step) <= {"name", "id", "shell", "env", "run"}


@pytest.mark.parametrize(
    ("variables", "shell", "status"),
    [({}, "sh", 2), ({"RULES": "snapshots/a*", "FAIL_ON": "breaks"}, "bash", 0)],
)
def test_the_gitlab_job(
    variables: dict[str, str], shell: str, status: int, workspace: Path, path: str
) -> None:
    (workspace / "snapshots/a node.save").rename(workspace / "snapshots/a.save")
    done = run_gitlab_job(
        JOB, {"RULES": "snapshots/*.save", **variables, "OPTIONS": ONE},
        shell=shell, workspace=workspace, path=path,
    )  # fmt: skip
    assert done.status == status, done.log
    assert f"nfparity assess snapshots/a.save: exit status {min(status, 1)}\n" in done.log
    (folder,) = JOB["artifacts"]["paths"]
    check_reports(workspace / folder, "snapshots-a.save")
    pattern: Any = JOB["artifacts"]["reports"]["junit"]
    assert [one.name for one in workspace.glob(pattern)] == ["snapshots-a.save.xml"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("debootstrap") is None, reason="needs debootstrap")
def test_the_whole_action_in_a_bare_root(tmp_path: Path) -> None:
    """As on a runner: the action's files without the repository, nothing installed, apt and root."""
    root = tmp_path / "root"
    subprocess.run(["cp", "-a", bare_root("trixie"), root], check=True)
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, files.stdout.split("\0")):
        target = root / "action" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target, follow_symlinks=False)
    for name in ("resolv.conf", "hosts"):
        shutil.copy(f"/etc/{name}", root / "etc" / name)
    (root / "workspace").mkdir()
    (root / "temporary").mkdir()
    shutil.copy(RULES, root / "workspace/node.save")
    done = run_action(
        ACTION, {"rules": "*.save", "options": ONE}, workspace=tmp_path, temporary=root / "temporary",
        action_path="/action", environment={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"},
        prefix=["unshare", "--mount", "sh", "-ec", _ENTER, str(root), "sh", "-c", _WITHIN, "-"],
        inside="/temporary",
    )  # fmt: skip
    assert done.outputs == {"status": "1", "reports": "nfparity-reports"}, done.log[-3000:]
    assert done.status == 1
    check_reports(root / "workspace/nfparity-reports", "node.save")
    shutil.rmtree(root)
