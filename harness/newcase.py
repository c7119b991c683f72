"""A new case of a corpus: a folder that needs nothing outside itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from backends.contract import Job
from backends.flow import Flow
from backends.node import node_to_json
from backends.simulator import Simulation
from harness.corpus.cases import CASE_FILE, EXPECT_FILE, FLOWS_FILE, Case, read_case
from harness.corpus.jsonlines import write_flows
from harness.expectations import expectations
from harness.files import write_text
from translate.errors import InputError
from translate.ir import Family
from translate.write import write_save

__all__ = ["write_case"]

_RULES = {Family.IP: "rules.iptables-save", Family.IP6: "rules.ip6tables-save"}


def write_case(folder: Path, *, job: Job, flows: Sequence[Flow], purpose: str, origin: str) -> Case:
    """Write a case, with what the simulator expects, and return it.

    Raises InputError when the folder is there already or there is no flow, UnsupportedError when the
    rules hide something or cannot be simulated.
    """
    if not flows:
        raise InputError("no flow to make a case of")
    family = job.ruleset.family
    rules = write_save(job.ruleset)
    Simulation(job)  # refuses before anything is written
    try:
        folder.mkdir(parents=True)
    except OSError as e:
        raise InputError(f"{folder}: cannot be made: {e.strerror or e}") from e
    write_text(folder / _RULES[family], rules)
    write_text(folder / "node.json", node_to_json(job.node))
    write_text(folder / FLOWS_FILE, write_flows(flows))
    words = {"purpose": purpose, "origin": origin, "rules": _RULES[family], "node": "node.json"}
    if family is Family.IP6:
        words["family"] = family.value
    # A JSON string is a basic string of TOML.
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in words.items()]
    write_text(folder / CASE_FILE, "\n".join(lines) + "\n")
    case = read_case(folder)
    write_text(folder / EXPECT_FILE, expectations(case))
    return case
