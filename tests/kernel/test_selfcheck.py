"""Clusters drawn for the purpose, with the corpora that are generated from their rules, on every backend.

A small one of IPv4, all of IPv6, and what a generator of others writes; ``make diff-test-rules`` takes
all of ours and uses each service many times.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.diff.backends import BACKENDS
from harness.diff.parity import choose_backends
from nfparity.inputs.batches import load_node
from nfparity.inputs.rules import load_rules
from tests.kernel.helpers.reports import report_text
from tests.lab.kuberules import Shape
from tests.lab.selfcheck import CLUSTERS, LEVELS, Subject, check, cluster_subject, read_clusters, subject_of
from translate.errors import InputError
from translate.ir import Family

ROOT = Path(__file__).resolve().parents[2]
SHAPES = read_clusters(str(ROOT / CLUSTERS))
SIX = [name for name, shape in SHAPES.items() if shape.family is Family.IP6 and name != "six-plain"]
TOOL = ROOT.parent / "shared/tools/gen_kube_rules.py"
LINES = (ROOT / "tests/corpus/gen-kube-rules.txt").read_text().splitlines()
needs_tool = pytest.mark.skipif(not TOOL.exists(), reason=f"no {TOOL.name} beside the project")


@pytest.mark.parametrize(
    ("name", "repeat"),
    [
        pytest.param("nobody-home", 6, marks=pytest.mark.slow),
        pytest.param("six-plain", 6, marks=pytest.mark.slow),
        *(pytest.param(name, 0, marks=pytest.mark.slow) for name in SIX),
    ],
)
def test_every_backend_agrees_on_a_cluster(name: str, repeat: int) -> None:
    subject = cluster_subject(name, SHAPES[name])
    _assert_parity(subject, repeat=repeat)


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


@needs_tool
@pytest.mark.parametrize(
    "options",
    [pytest.param(line, id=f"line-{n}", marks=pytest.mark.slow) for n, line in enumerate(LINES, 1)],
)
def test_every_backend_agrees_on_rules_of_another_generator(options: str, tmp_path: Path) -> None:
    rules = _rules(options, tmp_path)
    ruleset = load_rules(str(rules))
    _assert_parity(subject_of(options, ruleset, load_node(None, ruleset)), repeat=0)


@pytest.mark.slow
@needs_tool
def test_a_file_of_rules_is_checked(tmp_path: Path) -> None:
    kinds = "--nodeports 1 --lb 1 --local 1 --source-ranges 1 --no-endpoints 1 --udp 1"
    rules = _rules(f"--services 2 {kinds}", tmp_path)
    words = ["--backends", "iptables-legacy,nftables", "--repeat", "0", str(rules)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.lab.selfcheck", *words], capture_output=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout.decode()[-3000:]
    assert done.stdout.count(b" 0 different") == 4


def _rules(options: str, folder: Path) -> Path:
    done = subprocess.run([sys.executable, str(TOOL), *options.split()], capture_output=True, check=True)
    rules = folder / "rules.iptables-save"
    rules.write_bytes(done.stdout)
    return rules


def _assert_parity(subject: Subject, *, repeat: int) -> None:
    able = list(choose_backends(tuple(BACKENDS), requested=False)[0])
    for level in LEVELS:
        able = [b for b in able if level == 0 or not b.name.startswith("iptables-")]
        for report in check(subject, able, level=level, repeat=repeat):
            assert report.parity, report_text(report)
            assert {b.name for b in report.backends} <= set(BACKENDS)
