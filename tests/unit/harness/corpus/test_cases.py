from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness.corpus.cases import is_case_folder, read_case, read_cases
from harness.corpus.expectations import check_case, expectations
from harness.diff.batch import select
from nfparity.inputs.batches import load_batches
from translate.errors import InputError, ParseError
from translate.ir import Family

FLOW = (
    '{"id": "dns", "in": "pod5", "src": "10.244.0.5", "dst": "10.96.0.10",'
    ' "proto": "udp", "sport": 1, "dport": 53}\n'
)


@pytest.fixture
def corpus(tmp_path: Path, kind_folder: Path) -> Path:
    rules = os.path.relpath(kind_folder, tmp_path / "one")
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "case.toml").write_text(
            f'purpose = "shows something"\norigin = "by hand"\nrules = "{rules}/rules.iptables-save"\n'
            f'node = "{rules}/worker.json"\n'
        )
        (folder / "flows.jsonl").write_text(FLOW)
    return tmp_path


def test_reading(corpus: Path) -> None:
    one, two = read_cases(corpus)
    assert (one.name, two.name) == ("one", "two")
    assert one.ruleset is two.ruleset, "read once"
    assert one.expected is None
    assert read_case(corpus / "one").flows == one.flows
    assert read_cases(corpus / "two")[0].name == "two"


def test_a_case_may_say_the_family(corpus: Path) -> None:
    (corpus / "six").write_text("*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n")
    case = corpus / "one/case.toml"
    told = "\n".join(line for line in case.read_text().splitlines() if not line.startswith("rules"))
    case.write_text(f'{told}\nrules = "../six"\nfamily = "ip6"\n')
    assert read_case(corpus / "one").ruleset.family is Family.IP6
    case.write_text(f'{told}\nrules = "../six"\nfamily = "ipv6"\n')
    with pytest.raises(ParseError, match="family is ip or ip6, not 'ipv6'"):
        read_case(corpus / "one")


def test_recording_and_checking(corpus: Path) -> None:
    one = read_case(corpus / "one")
    assert "no expectations yet" in check_case(one)[0].message
    (corpus / "one/expect.jsonl").write_text(expectations(one))
    assert check_case(read_case(corpus / "one")) == ()
    text = (corpus / "one/expect.jsonl").read_text().replace('"dns3"', '"dns4"')
    (corpus / "one/expect.jsonl").write_text(text)
    (failure,) = check_case(read_case(corpus / "one"))
    assert failure.flow_id == "dns"
    assert "expected" in failure.message
    assert "found" in failure.message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("purpose", "purpos", "unknown key 'purpos'"),
        ('"shows something"', '""', "purpose is missing"),
        ("purpose =", "purpose", "not TOML"),
        ("worker.json", "nobody.json", "cannot be read"),
    ],
)
def test_what_is_wrong_with_a_case_is_said(corpus: Path, old: str, new: str, message: str) -> None:
    file = corpus / "one/case.toml"
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(ParseError, match=message):
        read_cases(corpus)


def test_all_cases_problems_at_once(corpus: Path) -> None:
    (corpus / "one/flows.jsonl").write_text("{}\n")
    (corpus / "two/flows.jsonl").write_text("")
    (corpus / "three").mkdir()
    with pytest.raises(ParseError) as caught:
        read_cases(corpus)
    text = str(caught.value)
    assert "id is missing" in text
    assert "no flow in it" in text
    assert "this folder has no case.toml" in text


def test_expectations_fit_the_flows(corpus: Path) -> None:
    (corpus / "one/expect.jsonl").write_text('{"id": "other", "outcomes": [{"verdict": "drop"}]}\n')
    with pytest.raises(ParseError) as caught:
        read_case(corpus / "one")
    assert "outcomes for 'other', which is not a flow of this case" in str(caught.value)
    assert "no expected outcomes for flow 'dns'" in str(caught.value)


def test_batches_of_a_corpus(corpus: Path) -> None:
    (batch,) = load_batches(rules=None, corpus=str(corpus), node=None)
    assert [f.id for f in batch.flows] == ["one/dns", "two/dns"]
    (alone,) = load_batches(rules=None, corpus=str(corpus / "one"), node=None)
    assert [f.id for f in alone.flows] == ["dns"]
    (picked,) = select([batch], ["two/dns"])
    assert [f.id for f in picked.flows] == ["two/dns"]
    (both,) = select([batch], ["dns"])
    assert len(both.flows) == 2
    with pytest.raises(InputError, match="no flow is called 'nobody'"):
        select([batch], ["nobody"])


def test_a_folder_without_cases(tmp_path: Path) -> None:
    assert not is_case_folder(tmp_path)
    with pytest.raises(InputError, match="this folder contains no case"):
        load_batches(rules="r", corpus=str(tmp_path), node=None)


def test_the_committed_cases_are_whole(kind_folder: Path) -> None:
    cases = read_cases(kind_folder.parents[1] / "cases")
    assert len(cases) >= 20
    for case in cases:
        if case.expected is not None:
            assert check_case(case) == (), case.name


def test_rules_that_stand_in_for_those_of_the_cases(corpus: Path, kind_folder: Path) -> None:
    other = corpus / "other.save"
    shutil.copy(kind_folder / "rules.iptables-save", other)
    (batch,) = load_batches(rules=str(other), corpus=str(corpus), node=None)
    assert batch.rules_path == str(other)
    assert batch.ruleset.source == str(other)
