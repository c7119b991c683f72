"""Clusters drawn for the purpose, with the corpora that are generated from their rules, on every backend.

Two of the clusters; ``make diff-test-rules`` takes all.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.backends import BACKENDS
from harness.kuberules import Shape
from harness.parity import choose_backends
from harness.selfcheck import CLUSTERS, LEVELS, check, cluster_subject, read_clusters
from translate.errors import InputError
from translate.ir import Family

ROOT = Path(__file__).resolve().parents[2]
SHAPES = read_clusters(str(ROOT / CLUSTERS))
TOOL = ROOT.parent / "shared/tools/gen_kube_rules.py"


@pytest.mark.parametrize("name", ["nobody-home", "six-plain"])
def test_every_backend_agrees_on_a_cluster(name: str) -> None:
    subject = cluster_subject(name, SHAPES[name])
    able = list(choose_backends(tuple(BACKENDS), requested=False)[0])
    for level in LEVELS:
        able = [b for b in able if level == 0 or not b.name.startswith("iptables-")]
        for report in check(subject, able, level=level, repeat=6):
            assert report.parity, report.differences[:3]
            assert {b.name for b in report.backends} <= set(BACKENDS)


def test_the_clusters_use_every_option_and_grow_to_200_services() -> None:
    shapes = SHAPES.values()
    assert len(shapes) == 10
    assert {s.family for s in shapes} == set(Family)
    assert min(s.services for s in shapes) == 10
    assert max(s.services for s in shapes) == 200
    default = Shape()
    for option in set(Shape.__dataclass_fields__) - {"base", "affinity_seconds"}:
        assert any(getattr(s, option) != getattr(default, option) for s in shapes), option


def test_a_file_of_clusters_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "clusters.toml"
    wrong = {"[a]\nservice = 3\n": "unknown: service", "a = 3\n": "int", "[": "at end of document"}
    for text, message in wrong.items():
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_clusters(str(path))


@pytest.mark.skipif(not TOOL.exists(), reason=f"no {TOOL.name} beside the project")
def test_rules_of_another_generator(tmp_path: Path) -> None:
    lines = (ROOT / "tests/corpus/gen-kube-rules.txt").read_text().splitlines()
    options = next(line for line in lines if line.startswith("--services 12 "))
    done = subprocess.run([sys.executable, str(TOOL), *options.split()], capture_output=True, check=True)
    rules = tmp_path / "rules.iptables-save"
    rules.write_bytes(done.stdout)
    words = ["--backends", "iptables-legacy,nftables", "--repeat", "0", str(rules)]
    done = subprocess.run(
        [sys.executable, "-m", "harness.selfcheck", *words], capture_output=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout.decode()[-3000:]
    assert done.stdout.count(b" 0 different") == 4
