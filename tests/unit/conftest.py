from __future__ import annotations

from pathlib import Path

import pytest

from backends.model.contract import Job
from backends.model.node import node_from_json
from translate.ir import Ruleset
from translate.read import read_ruleset

RULESETS = Path(__file__).resolve().parents[1] / "corpus/rulesets"


@pytest.fixture(scope="session")
def kind_folder() -> Path:
    return RULESETS / "kind-node"


@pytest.fixture(scope="session")
def kind(kind_folder: Path) -> Ruleset:
    path = kind_folder / "rules.iptables-save"
    return read_ruleset(path.read_bytes(), name="kind")


@pytest.fixture(scope="session")
def worker(kind: Ruleset, kind_folder: Path) -> Job:
    return Job(rules=kind, node=node_from_json((kind_folder / "worker.json").read_text(), name="worker"))
