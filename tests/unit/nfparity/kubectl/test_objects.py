"""The pod of a run: the rights of the manifest that captures every node, and an image by its digest."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
import yaml

from nfparity.capture.program import configure
from nfparity.kubectl.objects import MANAGED, SELECTOR, namespace, pinned, pod
from tests.unit.nfparity.kubectl.helpers.plugin import IMAGE
from tests.unit.nfparity.kubectl.helpers.schema import check

MANIFEST = Path(__file__).parents[4] / "deploy/capture.yaml"


def made(*, anonymise: bool = False) -> dict[str, Any]:
    return pod("p-0", node="alpha", image=IMAGE, seconds=300, anonymise=anonymise)


def test_its_rights_are_those_of_the_manifest() -> None:
    """Everything but the way of the snapshot: as a log here, as a file that waits there."""
    _, daemon = yaml.safe_load_all(MANIFEST.read_text())
    spec = daemon["spec"]["template"]["spec"]
    (capture,) = spec.pop("initContainers")
    own = made()["spec"]
    (container,) = own.pop("containers")
    for key in ("containers", "volumes", "nodeSelector"):
        spec.pop(key)
    for key in ("nodeName", "restartPolicy", "activeDeadlineSeconds"):
        own.pop(key)
    assert own == spec
    for key in ("image", "command"):
        container.pop(key)
        capture.pop(key)
    capture.pop("volumeMounts")
    assert container == capture


@pytest.mark.parametrize("anonymise", [False, True])
def test_its_command_is_one_that_capture_takes(anonymise: bool) -> None:
    python, program, *words = made(anonymise=anonymise)["spec"]["containers"][0]["command"]
    assert (python, program) == ("python3", "/nfparity-capture.pyz")
    parser = argparse.ArgumentParser()
    configure(parser)
    options = parser.parse_args(words)
    assert (options.output, options.text, options.anonymise) == ("-", True, anonymise)


def test_the_objects_have_the_form_of_the_api() -> None:
    check(made())
    check(namespace("nfparity-1"))


@pytest.mark.parametrize(
    "change",
    [
        {"nodename": "alpha"},
        {"hostNetwork": "true"},
        {"tolerations": {"operator": "Exists"}},
        {"containers": [{"name": "capture", "securityContext": {"capabilities": {"add": "NET_ADMIN"}}}]},
    ],
)
def test_the_check_of_the_form_finds_mistakes(change: dict[str, Any]) -> None:
    wrong = made()
    wrong["spec"] |= change
    with pytest.raises(AssertionError):
        check(wrong)


def test_every_object_can_be_selected() -> None:
    for item in (made(), namespace("nfparity-1")):
        assert MANAGED.items() <= item["metadata"]["labels"].items()
    ((key, value),) = MANAGED.items()
    assert f"{key}={value}".replace("/", "%2F").replace("=", "%3D") == SELECTOR


@pytest.mark.parametrize(
    "image",
    [
        "nfparity",
        "registry.example/nfparity:1.0",
        f"{IMAGE}0",
        IMAGE.upper(),
        f" {IMAGE}",
        IMAGE.replace("@", ":"),
    ],
)
def test_an_image_without_a_digest_is_not_pinned(image: str) -> None:
    assert pinned(IMAGE)
    assert not pinned(image)
