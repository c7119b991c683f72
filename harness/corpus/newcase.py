"""A new case of a corpus: a self-contained folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from backends.model.contract import Job
from backends.model.flow import Flow
from backends.model.node import node_to_json
from backends.simulator import Simulation
from harness.corpus.cases import CASE_FILE, EXPECT_FILE, FLOWS_FILE, Case, read_case
from harness.corpus.expectations import expectations
from harness.corpus.formats.jsonlines import write_flows
from harness.corpus.formats.rulefile import IPSETS_FILE
from harness.files.userfiles import filled_folder, write_text
from translate.errors import InputError
from translate.ir import Family
from translate.write import write_ipsets, write_save

__all__ = ["write_case"]

_RULES = {Family.IP: "rules.iptables-save", Family.IP6: "rules.ip6tables-save"}


def write_case(folder: Path, *, job: Job, flows: Sequence[Flow], purpose: str, origin: str) -> Case:
    """Write a case with the simulator's outcomes as the expected ones, and return it.

    Raises InputError when the folder already exists or there is no flow, UnsupportedError when the input
    hides a part of the rules or they cannot be simulated.
    """
    if not flows:
        raise InputError("no flow to make a case from")
    write_save(job.ruleset)
    Simulation(job)  # both refuse before anything is written
    with filled_folder(folder) as made:
        _fill(made, job=job, flows=flows, purpose=purpose, origin=origin)
    return read_case(folder)


def _fill(folder: Path, *, job: Job, flows: Sequence[Flow], purpose: str, origin: str) -> None:
    family = job.ruleset.family
    write_text(folder / _RULES[family], write_save(job.ruleset))
    if job.ruleset.sets:
        write_text(folder / IPSETS_FILE, write_ipsets(job.ruleset.sets))
    write_text(folder / "node.json", node_to_json(job.node))
    write_text(folder / FLOWS_FILE, write_flows(flows))
    words = {"purpose": purpose, "origin": origin, "rules": _RULES[family], "node": "node.json"}
    if family is Family.IP6:
        words["family"] = family.value
    # A JSON string is a basic string of TOML.
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in words.items()]
    write_text(folder / CASE_FILE, "\n".join(lines) + "\n")
    write_text(folder / EXPECT_FILE, expectations(read_case(folder)))
