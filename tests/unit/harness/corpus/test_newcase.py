from __future__ import annotations

from pathlib import Path

import pytest

from backends.model.contract import Job
from backends.model.node import node_from_json
from harness.corpus.expectations import check_case
from harness.corpus.formats.jsonlines import read_flows
from harness.corpus.newcase import write_case
from translate.errors import InputError
from translate.ir import Family
from translate.read import read_ipsets, read_ruleset, with_sets

NODE = node_from_json('{"interfaces": {"a": ["192.0.2.1/24", "2001:db8::1/64"]}}', name="node")
FLOWS = {
    family: (
        f'{{"id": "x", "in": "a", "src": "{network}9", "dst": "{network}1", "proto": "udp", '
        '"sport": 7, "dport": 9}\n'
    ).encode()
    for family, network in ((Family.IP, "192.0.2."), (Family.IP6, "2001:db8::"))
}


def job(rule: str, family: Family = Family.IP, sets: str = "") -> Job:
    text = f"*filter\n:INPUT ACCEPT [0:0]\n{rule}\nCOMMIT\n"
    ruleset = read_ruleset(text.encode(), name="rules", family=family)
    if sets:
        ruleset = with_sets(ruleset, read_ipsets(sets.encode(), name="sets"))
    return Job(rules=ruleset, node=NODE)


@pytest.mark.parametrize("family", list(Family))
def test_a_new_case_reads_back_as_it_was_given_and_expects_what_happens(
    tmp_path: Path, family: Family
) -> None:
    given = job("-A INPUT -p udp -j DROP", family)
    flows = read_flows(FLOWS[family], name="flows")
    case = write_case(tmp_path / "new", job=given, flows=flows, purpose='says "drop"', origin="here")
    assert (case.flows, case.node, case.ruleset.family) == (flows, NODE, family)
    assert [rule.origin.text for rule in case.ruleset.rules()] == ["-A INPUT -p udp -j DROP"]
    assert case.purpose == 'says "drop"'
    assert check_case(case) == ()


def test_a_new_case_has_the_sets_of_its_rules(tmp_path: Path) -> None:
    sets = "create s hash:ip\nadd s 192.0.2.9\ncreate unused hash:ip\n"
    given = job("-A INPUT -m set --match-set s src -j DROP", sets=sets)
    flows = read_flows(FLOWS[Family.IP], name="flows")
    case = write_case(tmp_path / "new", job=given, flows=flows, purpose="p", origin="o")
    assert [(s.name, len(s.elements)) for s in case.ruleset.sets] == [("s", 1)]


def test_nothing_is_written_without_flows_or_over_a_folder(tmp_path: Path) -> None:
    given, flows = job("-A INPUT -j DROP"), read_flows(FLOWS[Family.IP], name="flows")
    with pytest.raises(InputError, match="no flow to make a case from"):
        write_case(tmp_path / "new", job=given, flows=(), purpose="p", origin="o")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "new").mkdir()
    with pytest.raises(InputError, match="exists"):
        write_case(tmp_path / "new", job=given, flows=flows, purpose="p", origin="o")
    assert list((tmp_path / "new").iterdir()) == []
