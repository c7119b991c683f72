"""Given nftables rulesets: listings of nft, as text and as JSON, load again with the same meaning."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from backends.given_nftables.backend import GivenNftBackend, GivenNftLoader
from backends.model.node import Node
from backends.nftables.backend import NftablesBackend, NftablesLoader
from backends.replay.session import open_session
from backends.simulator import SimulatorBackend
from backends.testbed.command import run
from backends.testbed.libnftables import NftHandle
from backends.testbed.tapnode import TapNode
from harness.corpus.cases import read_cases
from harness.diff.batch import Batch
from harness.diff.parity import Plan, run_parity
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.reports import report_text
from translate.errors import ParseError
from translate.ir import Family
from translate.nft import emit
from translate.nftlisting import read_listing
from translate.nftlisting.commands import SEED
from translate.passes import lower
from translate.read import read_ruleset

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests/corpus"
KUBE = CORPUS / "rulesets/kube-real"
LISTINGS = (*sorted((CORPUS / "listings").glob("*.nft")), KUBE / "realistic.nft")


@pytest.fixture(scope="module", autouse=True)
def _needs_nftables() -> None:
    require(NftablesBackend())


class Listed(NftablesLoader):
    """Loads text as it is, and writes down how nft lists it."""

    def __init__(self, text: str, folder: Path) -> None:
        super().__init__(text)
        self._folder = folder

    def load(self, tap: TapNode) -> None:
        super().load(tap)
        handle = NftHandle()
        handle.run("delete table ip nfparity_stack_rst")
        _write_lists(handle, self._folder)
        handle.close()


class Roundtrips(NftablesLoader):
    """Loads one text after the other, and each of its listings again; writes down what nft lists then."""

    def __init__(self, texts: dict[str, str], folder: Path) -> None:
        super().__init__("")
        self._texts = texts
        self._folder = folder

    def load(self, tap: TapNode) -> None:
        handle = NftHandle()
        for name, text in self._texts.items():
            handle.run("flush ruleset")
            handle.run(text)
            folder = self._folder / name
            _write_lists(handle, folder)
            (folder / "bytecode").write_text(bytecode())
            for form in ("text", "json"):
                handle.run("flush ruleset")
                try:
                    given = GivenNftLoader(read_listing((folder / form).read_text(), name=form), Family.IP)
                except ParseError as e:
                    (folder / f"{form}-again").write_text(f"refused: {e}")
                    continue
                given.load(tap)
                given.close()
                (folder / f"{form}-again").write_text(handle.run("list ruleset"))
                (folder / f"{form}-bytecode").write_text(bytecode())
        handle.close()


def bytecode() -> str:
    """Return the kernel's bytecode of every rule and element, unordered because a hash has no order."""
    said = run(("nft", "--debug=netlink", "list", "ruleset")).stdout
    lines = [line for line in said.splitlines() if line.startswith(("  [", "\telement"))]
    plain = (re.sub(r"__(set|map|chain)\d+|expires \w+| \d+ (?=\[end\])", "", line) for line in lines)
    return "\n".join(sorted(plain))


def _write_lists(handle: NftHandle, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "text").write_text(handle.run("list ruleset"))
    error, listed = handle.attempt("list ruleset", json=True)
    assert error is None
    (folder / "json").write_text(listed)


@pytest.fixture(scope="module")
def roundtrips(tmp_path_factory: pytest.TempPathFactory, kind_node: Node) -> Path:
    folder = tmp_path_factory.mktemp("listings")
    with open_session(kind_node, Roundtrips({path.stem: path.read_text() for path in LISTINGS}, folder)):
        return folder


@cache
def nft_version() -> tuple[int, ...]:
    """Return the version of nft, such as (1, 0, 6)."""
    return tuple(map(int, re.findall(r"\d+", run(("nft", "--version")).stdout)[:3]))


def normal(listing: Path) -> str:
    """A listing without the time that has passed, and the seed that is given where there is none."""
    return re.sub(rf" expires \w+| seed {SEED:#x}", "", listing.read_text())


def without_json_gaps(text: str) -> str:
    """A listing without what nft's JSON does not know, and what it does not change."""
    return re.sub(r"\n\t+(comment .*|auto-merge|type(of)? (?!\w+ hook ).*)", "", text)


@pytest.mark.parametrize("name", [path.stem for path in LISTINGS])
def test_a_listing_loads_and_is_listed_as_it_was(name: str, roundtrips: Path) -> None:
    folder = roundtrips / name
    assert normal(folder / "text-again") == normal(folder / "text")
    assert (folder / "text-bytecode").read_text() == (folder / "bytecode").read_text()


REFUSED_AS_JSON = {
    "chains": "this has no JSON form: jump {",
    "statements": "flags",  # nft 1.0.6 prints whatever follows in memory: a word, or the end of the text
}


REFUSED_AS_JSON_OF_1_0 = {
    **REFUSED_AS_JSON,
    "draws": "one of its types is an integer",
    "learned": "this has no JSON form: update @dm",
    "netdev": "JSON does not name the device",
    "typeof": "one of its types is an integer",
}


@pytest.mark.parametrize("name", [path.stem for path in LISTINGS])
def test_json_loads_and_is_listed_as_it_was_or_is_refused(name: str, roundtrips: Path) -> None:
    again = normal(roundtrips / name / "json-again")
    refused = REFUSED_AS_JSON_OF_1_0 if nft_version() < (1, 1) else REFUSED_AS_JSON
    if name in refused:
        assert again.startswith("refused: ")
        assert refused[name] in again
    else:
        folder = roundtrips / name
        assert without_json_gaps(again) == without_json_gaps(normal(folder / "text"))
        assert (folder / "json-bytecode").read_text() == (folder / "bytecode").read_text()


@pytest.mark.parametrize(("level", "form"), [(0, "text"), (2, "text"), (0, "json"), (2, "json")])
def test_the_listing_of_our_translation_has_parity(
    level: int, form: str, kind_node: Node, kind_rules: str, tmp_path: Path
) -> None:
    ruleset = read_ruleset(kind_rules.encode(), name="kind")
    text = emit(lower(ruleset, level=level)).text
    with open_session(kind_node, Listed(text, tmp_path)):
        given = (tmp_path / form).read_text()
    cases = [case for case in read_cases(CORPUS / "cases") if case.rules_path.parent.name == "kind-node"]
    flows = tuple(flow for case in cases if case.node_path.name == "worker.json" for flow in case.flows)
    assert len(flows) > 100
    if form == "json" and level and nft_version() < (1, 1):
        with pytest.raises(ParseError, match=r"one of its types is an integer .* use the text form"):
            GivenNftBackend("given", given)
        return
    batch = Batch(rules_path="kind", rules=ruleset, node=kind_node, flows=flows, corpus="cases")
    report = run_parity(
        Plan(batches=(batch,), repeat=20),
        (GivenNftBackend("given", given),),
        reference=SimulatorBackend(),
        rules=lambda *_: (),
        progress=lambda *_: None,
    )
    assert report.parity, report_text(report)
    assert report.share_tests
