"""A corpus of cases: one folder per case, data only, with its purpose.

::

    cases/hairpin-dns/
        case.toml       purpose, origin, rules, node
        flows.jsonl     the flows
        expect.jsonl    their expected outcomes (written by ``nfparity corpus record``)

``case.toml`` has the keys ``purpose`` and ``origin`` (text), and ``rules`` and ``node`` (paths relative to
the case's folder; cases share rulesets). ``family`` (``ip`` or ``ip6``) is needed only if the text of the
rules does not show it. The ipsets of the rules are in the file ``ipset-save`` next to the rules.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from backends.model.flow import Flow
from backends.model.node import Node, node_from_json
from backends.model.outcome import FlowResult
from harness.corpus.formats.jsonlines import read_flows
from harness.corpus.formats.outcomes import read_results
from harness.corpus.formats.rulefile import InputOptions, give_ipsets, read_some
from harness.files.userfiles import read_bytes, read_text
from translate.dataclass import dataclass
from translate.errors import Diagnostic, InputError, ParseError
from translate.ir import Family, Origin, Ruleset

__all__ = ["CASE_FILE", "EXPECT_FILE", "FLOWS_FILE", "Case", "is_case_folder", "read_case", "read_cases"]

CASE_FILE = "case.toml"
FLOWS_FILE = "flows.jsonl"
EXPECT_FILE = "expect.jsonl"

_KEYS = ("purpose", "origin", "rules", "node")
_FAMILY = "family"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case, read and checked. ``expected`` is None when no outcomes are recorded yet."""

    name: str
    folder: Path
    purpose: str
    origin: str
    rules_path: Path
    ruleset: Ruleset
    node_path: Path
    node: Node
    flows: tuple[Flow, ...]
    expected: tuple[FlowResult, ...] | None


def is_case_folder(path: Path) -> bool:
    """Return whether ``path`` is a case, or a folder that contains cases."""
    if not path.is_dir():
        return False
    return (path / CASE_FILE).is_file() or any(path.glob(f"*/{CASE_FILE}"))


def read_cases(folder: Path, *, with_expected: bool = True) -> tuple[Case, ...]:
    """Read a case, or every case under ``folder`` in order of name.

    Without ``with_expected`` the expectations are not read, because they will be rewritten.

    Raises ParseError with the problems of all cases at once: missing or unknown keys, missing files,
    expectations for flows that do not exist. A flow's id is unique in its case; across cases it is called
    ``case/flow``.
    """
    single = (folder / CASE_FILE).is_file()
    folders = [folder] if single else sorted(p.parent for p in folder.glob(f"*/{CASE_FILE}"))
    if not folders:
        raise ParseError((Diagnostic(Origin(str(folder)), f"this folder contains no case ({CASE_FILE})"),))
    stray = [] if single else sorted(p for p in folder.iterdir() if p.is_dir() and p not in folders)
    diagnostics: list[Diagnostic] = [
        Diagnostic(Origin(str(p)), f"this folder has no {CASE_FILE}")
        for p in stray
        if not p.name.startswith(".")
    ]
    cases: list[Case] = []
    rulesets: dict[tuple[Path, str | None], Ruleset] = {}
    for case_folder in folders:
        try:
            case = _read(case_folder, rulesets, with_expected=with_expected)
        except ParseError as e:
            diagnostics.extend(e.diagnostics)
            continue
        except InputError as e:
            diagnostics.append(Diagnostic(Origin(str(case_folder)), str(e)))
            continue
        cases.append(case)
    if diagnostics:
        raise ParseError(tuple(diagnostics))
    return tuple(cases)


def read_case(folder: Path) -> Case:
    """Read one case; ParseError when something is wrong with it."""
    return _read(folder, {}, with_expected=True)


def _read(folder: Path, rulesets: dict[tuple[Path, str | None], Ruleset], *, with_expected: bool) -> Case:
    path = folder / CASE_FILE
    origin = Origin(str(path))
    try:
        data = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as e:
        raise ParseError((Diagnostic(origin, f"not TOML: {e}"),)) from e
    problems = [Diagnostic(origin, f"unknown key {k!r}") for k in data if k not in (*_KEYS, _FAMILY)]
    for key in _KEYS:
        value = data.get(key)
        if not isinstance(value, str) or not value.strip():
            problems.append(Diagnostic(origin, f"{key} is missing or is not text"))
    family = data.get(_FAMILY)
    if family is not None and family not in tuple(Family):
        problems.append(Diagnostic(origin, f"family is {' or '.join(Family)}, not {family!r}"))
    if problems:
        raise ParseError(tuple(problems))
    rules_path, node_path = (folder / data[key] for key in ("rules", "node"))
    read_as = rules_path.resolve(), family
    if read_as not in rulesets:
        wanted = None if family is None else Family(family)
        options = InputOptions(family=wanted)
        rules = read_some(read_bytes(rules_path), name=_shown(rules_path), options=options)
        rulesets[read_as] = give_ipsets(rules, _shown(rules_path))
    node = node_from_json(read_text(node_path), name=_shown(node_path))
    flows_path = folder / FLOWS_FILE
    flows = read_flows(read_bytes(flows_path), name=str(flows_path), node=node)
    if not flows:
        raise ParseError((Diagnostic(Origin(str(flows_path)), "no flow in it"),))
    return Case(
        name=folder.resolve().name,
        folder=folder,
        purpose=data["purpose"].strip(),
        origin=data["origin"].strip(),
        rules_path=rules_path,
        ruleset=rulesets[read_as],
        node_path=node_path,
        node=node,
        flows=flows,
        expected=_read_expected(folder / EXPECT_FILE, flows) if with_expected else None,
    )


def _shown(path: Path) -> str:
    """Return the path without ``..`` components."""
    resolved = path.resolve()
    try:
        return str(resolved.relative_to(Path.cwd()))
    except ValueError:
        return str(resolved)


def _read_expected(path: Path, flows: tuple[Flow, ...]) -> tuple[FlowResult, ...] | None:
    if not path.exists():
        return None
    results = read_results(read_bytes(path), name=str(path))
    ids, expected = {f.id for f in flows}, {r.flow_id for r in results}
    problems = [f"outcomes for {i!r}, which is not a flow of this case" for i in sorted(expected - ids)]
    problems += [f"no expected outcomes for flow {i!r}" for i in sorted(ids - expected)]
    if problems:
        raise ParseError(tuple(Diagnostic(Origin(str(path)), p) for p in problems))
    return results
