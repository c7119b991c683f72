"""The Helm chart and the kustomize base: the objects of the manifest, with an image by its digest."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.chart import CHART, IMAGE, chart
from nfparity.kubectl.objects import pinned
from tests.unit.nfparity.kubectl.helpers.schema import check
from translate.errors import MachineError
from vm.kubectl import ensure_kubectl

ROOT = Path(__file__).parents[3]
MANIFEST = (ROOT / "deploy/capture.yaml").read_text()
PINNED = f"registry.example/nfparity-capture@sha256:{'1' * 64}"
_REQUIRED = re.compile(r'\{\{ required "[^"]+" \.Values\.(\w+) \| quote \}\}')
_IF = re.compile(r"\{\{ if \.Values\.(\w+) \}\}(.*?)\{\{ end \}\}")


def expected() -> list[Any]:
    return list(yaml.safe_load_all(MANIFEST.replace(IMAGE, PINNED)))


def render(text: str, values: dict[str, Any]) -> list[Any]:
    """Fill in a template as Helm would; the chart uses no other expressions."""
    text = _REQUIRED.sub(lambda match: f'"{values[match[1]]}"', text)
    text = _IF.sub(lambda match: match[2] if values[match[1]] else "", text)
    assert "{{" not in text
    return list(yaml.safe_load_all(text))


def test_the_chart_is_made_from_the_manifest() -> None:
    files = {str(path.relative_to(CHART)): path.read_text() for path in CHART.rglob("*") if path.is_file()}
    assert files == chart(), "python -m deploy.chart writes it"


def test_the_objects_of_the_chart_are_those_of_the_manifest() -> None:
    values = yaml.safe_load(chart()["values.yaml"])
    assert values == {"image": "", "anonymise": False}
    template = chart()["templates/capture.yaml"]
    assert render(template, values | {"image": PINNED}) == expected()
    _, daemon = render(template, {"image": PINNED, "anonymise": True})
    (capture,) = daemon["spec"]["template"]["spec"]["initContainers"]
    assert capture["command"][-3:] == ["-o", "/capture/node.tar.gz", "--anonymise"]


def test_the_objects_have_the_form_of_the_api() -> None:
    for item in expected():
        check(item)
    check(yaml.safe_load((ROOT / "deploy/kubectl/role.yaml").read_text()))


def test_the_base_of_kustomize(tmp_path: Path) -> None:
    if shutil.which("apt-get") is None:
        pytest.skip("needs apt, for Debian's kubectl")
    try:
        kubectl = ensure_kubectl("bookworm", build=ROOT / "build")
    except MachineError as e:
        pytest.skip(f"Debian's kubectl cannot be fetched: {e}")
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    name, _, digest = PINNED.partition("@")
    wanted = {"bases": ["../deploy"], "images": [{"name": IMAGE, "newName": name, "digest": digest}]}
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(wanted))
    done = subprocess.run([kubectl, "kustomize", overlay], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(yaml.safe_load_all(done.stdout)) == expected()
    assert pinned(PINNED)
