"""The manifest that captures from every node: that it says what it claims, and runs what there is."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from nfparity.capture.program import configure

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
MANIFEST = (DEPLOY / "capture.yaml").read_text()


def read_yaml(text: str) -> list[Any]:
    """The documents of as much YAML as the manifest is in: maps, lists, words, lists of words in brackets."""
    documents = []
    for part in text.split("\n---\n"):
        lines = [
            (len(line) - len(line.lstrip()), line.strip())
            for line in part.splitlines()
            if line.strip() and not line.lstrip().startswith("#")
        ]
        value, rest = _block(lines)
        assert not rest, rest
        documents.append(value)
    return documents


def _block(lines: list[tuple[int, str]]) -> tuple[Any, list[tuple[int, str]]]:
    indent = lines[0][0]
    if lines[0][1].startswith("- "):
        items = []
        while lines and lines[0][0] == indent and lines[0][1].startswith("- "):
            item, lines = _block([(indent + 2, lines[0][1][2:]), *lines[1:]])
            items.append(item)
        return items, lines
    found: dict[str, Any] = {}
    while lines and lines[0][0] == indent:
        key, colon, text = lines[0][1].partition(":")
        assert colon, lines[0]
        assert key not in found, f"{key} is there twice"
        lines = lines[1:]
        if text:
            found[key] = _scalar(text.strip())
        else:
            assert lines, f"{key} has nothing"
            assert lines[0][0] > indent, f"{key} has nothing"
            found[key], lines = _block(lines)
    assert not lines or lines[0][0] < indent, lines[0]
    return found, lines


def _scalar(text: str) -> Any:
    if text.startswith("[") or text in ("true", "false") or text.isdigit():
        return json.loads(text)
    assert not set(text) & set("{}&*!|>'\"#"), text
    return text


@pytest.fixture(scope="module")
def pod() -> Any:
    _, daemon = read_yaml(MANIFEST)
    return daemon["spec"]["template"]["spec"]


def test_a_namespace_and_what_runs_in_it(pod: Any) -> None:
    space, daemon = read_yaml(MANIFEST)
    assert (space["kind"], daemon["kind"]) == ("Namespace", "DaemonSet")
    assert daemon["metadata"]["namespace"] == space["metadata"]["name"]
    labels = daemon["spec"]["template"]["metadata"]["labels"]
    assert daemon["spec"]["selector"]["matchLabels"] == labels
    assert pod["tolerations"] == [{"operator": "Exists"}]


def test_it_may_do_no_more_than_it_says(pod: Any) -> None:
    assert pod["hostNetwork"] is True
    assert pod["automountServiceAccountToken"] is False
    assert not {"hostPID", "hostIPC", "serviceAccountName"} & pod.keys()
    assert [set(v) for v in pod["volumes"]] == [{"name", "emptyDir"}]
    allowed = {"capture": ["NET_ADMIN", "NET_RAW"], "keep": None}
    containers = pod["initContainers"] + pod["containers"]
    assert {c["name"] for c in containers} == allowed.keys()
    for container in containers:
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["readOnlyRootFilesystem"] is True
        assert "privileged" not in context
        assert context["capabilities"]["drop"] == ["ALL"]
        assert context["capabilities"].get("add") == allowed[container["name"]]
        for capability in context["capabilities"].get("add", ()):
            assert f"#   {capability} " in MANIFEST


def test_its_command_is_one_that_capture_takes(pod: Any) -> None:
    (capture,) = pod["initContainers"]
    python, program, *words = capture["command"]
    assert json.loads((DEPLOY / "Dockerfile").read_text().rpartition("ENTRYPOINT")[2]) == [python, program]
    parser = argparse.ArgumentParser()
    configure(parser)
    for more in ([], ["--anonymise"]):
        given = parser.parse_args([*words, *more])
        assert given.source is None
        assert given.anonymise is bool(more)
        (mount,) = capture["volumeMounts"]
        assert given.output.startswith(mount["mountPath"] + "/")
        assert given.output.endswith(".tar.gz")
        assert f"cat {given.output} " in (DEPLOY / "collect.sh").read_text()


KUBECTL = """\
#!/bin/sh
case "$*" in
*"rollout status"*) exit 1 ;;
*"get pods"*) printf 'pod-a/node-a\\npod-b/node-b\\npod-c/node-c\\n' ;;
*"exec pod-a -c keep -- cat /capture/node.tar.gz"*) printf 'a' | gzip ;;
*"exec pod-b"*) printf 'a' | gzip | head -c 12 ;;
*) echo "error: container not found" >&2; exit 1 ;;
esac
"""


def test_what_is_collected_is_whole_and_what_is_not_is_told(tmp_path: Path) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(KUBECTL)
    kubectl.chmod(0o755)
    target = tmp_path / "snapshots"
    done = subprocess.run(
        ["sh", str(DEPLOY / "collect.sh"), str(target)],
        env={**os.environ, "KUBECTL": str(kubectl)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert [one.name for one in target.iterdir()] == ["node-a.tar.gz"]
    assert "node-b: no snapshot" in done.stderr
    assert "node-c: no snapshot" in done.stderr
    assert done.stdout == f"{target}/node-a.tar.gz\n"


def test_a_manifest_that_is_cut_is_not_read() -> None:
    with pytest.raises(AssertionError):
        read_yaml(MANIFEST.replace("emptyDir:", "emptyDir").replace("medium", "  medium"))
