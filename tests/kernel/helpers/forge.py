"""The scripts of CI templates, run as the forges run them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

__all__ = ["Ended", "run_action", "run_gitlab_job"]

_EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")
_BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
"""GitHub's command for ``shell: bash``."""


@dataclass(frozen=True)
class Ended:
    """A run of an action or job: its status, its log, its outputs, and the summary that GitHub shows."""

    status: int
    log: str
    outputs: Mapping[str, str]
    summary: str = ""


def run_action(
    text: str,
    inputs: Mapping[str, str],
    *,
    workspace: Path,
    temporary: Path,
    action_path: str,
    environment: Mapping[str, str],
    steps: Sequence[str] | None = None,
    prefix: Sequence[str] = (),
    inside: str = "",
) -> Ended:
    """Run the steps of a composite action, or those named, until one fails.

    ``prefix`` is put before each command, for example ``chroot ROOT``. The path of ``temporary`` is then
    ``inside``, and the prefix must change into the workspace.
    """
    action = yaml.safe_load(text)
    assert action["runs"]["using"] == "composite"
    known = action["inputs"]
    assert set(inputs) <= set(known)
    missing = {name for name, declared in known.items() if declared.get("required")} - set(inputs)
    assert not missing
    context = {
        f"inputs.{name}": inputs.get(name, declared.get("default", "")) for name, declared in known.items()
    }
    place = inside or str(temporary)
    log, status, outputs, summaries = "", 0, {}, []
    for number, step in enumerate(action["runs"]["steps"]):
        if steps is not None and step["name"] not in steps:
            continue
        assert step["shell"] == "bash"
        files = {name: f"{name.lower()}-{number}" for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for name in files.values():
            (temporary / name).touch()
        (temporary / f"step-{number}.sh").write_text(step["run"])
        own = {name: _filled(value, context) for name, value in step.get("env", {}).items()}
        runner = {"GITHUB_ACTION_PATH": action_path, "RUNNER_TEMP": place}
        runner |= {name: f"{place}/{file}" for name, file in files.items()}
        done = subprocess.run(
            [*prefix, *_BASH, f"{place}/step-{number}.sh"],
            cwd=workspace, env={**environment, **runner, **own},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        log += done.stdout
        summaries.append((temporary / files["GITHUB_STEP_SUMMARY"]).read_text())
        for line in (temporary / files["GITHUB_OUTPUT"]).read_text().splitlines():
            name, _, value = line.partition("=")
            outputs[f"steps.{step['id']}.outputs.{name}"] = value
        status = done.returncode
        if status:
            break
    shown = {name: _filled(declared["value"], outputs) for name, declared in action["outputs"].items()}
    return Ended(status, log, shown, "".join(summaries))


def _filled(value: str, context: Mapping[str, str]) -> str:
    """Return a value with its expressions replaced; an output that was not written is empty."""
    return _EXPRESSION.sub(lambda match: context.get(match[1], ""), value)


def run_gitlab_job(
    job: Mapping[str, Any], variables: Mapping[str, str], *, shell: str, workspace: Path, path: str
) -> Ended:
    """Run the script of a job; ``variables`` are those of the project, which win over those of the job."""
    assert set(job) <= {"image", "variables", "script", "artifacts"}
    script = "\n".join(job["script"])
    done = subprocess.run(
        [shell, "-e", "-c", script],
        cwd=workspace, env={"PATH": path, **job["variables"], **variables},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, {})
