"""From a snapshot to what will change: every family that a kube-proxy serves there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from backends.model.contract import Backend, Job
from backends.model.flow import Flow
from backends.model.node import Node
from harness.corpus.generate import generate_corpus
from harness.diff.replay import Progress
from harness.diff.sampling import MISS, Sampling
from nfparity.assess.assessing import Assessment, assess, witnesses
from nfparity.assess.catalogue import Version
from nfparity.assess.facts import Facts, gather
from nfparity.assess.sides import Then, today_backend
from nfparity.assess.summary import Summary, Untested
from nfparity.kubeproxy import ApiObjects, KubeProxyState, Mode, read_objects, recover
from nfparity.kubeproxy.nftables import LAYOUTS, layout_of, nftables_mode, surroundings_of
from nfparity.snapshot import Snapshot, Variant
from translate.errors import InputError, MachineError, ParseError
from translate.ir import Family, Interval, Ruleset, TableName
from translate.jsoninput import Problems, read_object
from translate.nftlisting import Listing, read_listing

__all__ = ["Question", "assess_snapshot", "check_shared"]

_NEWEST: Final = max((int(a), int(b)) for a, _, b in (v.partition(".") for v in LAYOUTS))
_LOCALNET: Final = "net.ipv4.conf.all.route_localnet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of a snapshot.

    ``given`` is the text of the nftables ruleset that comes, ``against`` its name; None: as kube-proxy of
    ``version`` would make it. ``objects`` is the text of the file ``objects_name``. ``node``, ``objects`` and
    ``service_ranges`` take the place of the snapshot's. ``corpus`` False leaves differences alone that are
    not in the catalogue; ``only`` names flows. ``options`` are words of the command line that a repetition
    needs. ``miss`` is the chance, for each flow, that a way which it goes is not seen
    (:mod:`harness.diff.sampling`).
    """

    snapshot: Snapshot
    version: Version | None = None
    against: str | None = None
    given: str | None = None
    node: Node | None = None
    family: Family | None = None
    variant: Variant | None = None
    objects: str | None = None
    objects_name: str = "objects"
    service_ranges: Mapping[Family, Interval] = field(default_factory=dict)
    corpus: bool = True
    only: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    miss: float = MISS


def assess_snapshot(question: Question, *, progress: Progress, able: set[str] | None = None) -> Summary:
    """Return what will change on the node.

    ``able`` names the sides that have been found to run here, which are not probed again; others are added.
    For many snapshots: a probe is a node of its own, and takes as long as the replay of a small snapshot.
    Raises InputError for a snapshot without rules of kube-proxy's iptables mode, and for flows in ``only``
    that there are not; MachineError when the machine cannot replay, or does not take the rules.
    """
    if question.given is None and question.version is None:
        question = replace(question, version=_NEWEST)
    known = set() if able is None else able
    assessments: list[Assessment] = []
    untested: list[Untested] = []
    for family, ruleset, state in _served(question):
        facts = _facts(question, family, ruleset, state)
        coming = _then(question, facts)
        if coming is None:
            why = f"no table of {question.against} is for it, and kube-proxy serves it here"
            untested.append(Untested(family, why))
            continue
        then, notes = coming
        facts = replace(facts, assumed=(*facts.assumed, *notes))
        today = today_backend()
        _probe(today, then, known=known)
        corpus: tuple[Flow, ...] = ()
        if question.corpus and not _all_are_witnesses(question.only, facts):
            corpus = generate_corpus(Job(ruleset=ruleset, node=facts.node), seed=0).flows
        assessments.append(
            assess(
                facts,
                today=today,
                then=then,
                late=replace(then, late=True) if facts.foreign.ruleset.tables else None,
                corpus=corpus,
                only=question.only,
                sampling=Sampling(question.miss),
                progress=progress,
            )
        )
    if not assessments:
        raise InputError(
            f"{question.against}: no table of this ruleset is for a family that kube-proxy serves here"
        )
    _check_only(question, assessments)
    return Summary(
        snapshot=question.snapshot.name,
        version=question.version,
        against=question.against,
        assessments=tuple(assessments),
        options=question.options,
        untested=tuple(untested),
    )


def _probe(*sides: Backend, known: set[str]) -> None:
    for side in sides:
        if side.name in known:
            continue
        found = side.probe()
        if not found.ok:
            raise MachineError(
                f"{side.name} cannot run here: {found.reason}\nnfparity doctor says what to install"
            )
        known.add(side.name)


def _served(question: Question) -> list[tuple[Family, Ruleset, KubeProxyState]]:
    snapshot = question.snapshot
    objects = None if question.objects is None else _objects(question.objects, question.objects_name)
    wanted = snapshot.families if question.family is None else (question.family,)
    found = []
    modes: dict[Mode, None] = {}
    for family in wanted:
        ruleset = snapshot.ruleset(family, question.variant)
        state = recover(ruleset, objects)
        modes[state.mode] = None
        if state.mode is Mode.IPTABLES:
            found.append((family, ruleset, state))
    if not found:
        other = "rules of kube-proxy's ipvs mode, and none" if Mode.IPVS in modes else "no rules"
        raise InputError(f"{snapshot.name}: {other} of its iptables mode, whose change this command tells")
    return found


def check_shared(against: str | None, given: str | None, objects: str | None, objects_name: str) -> None:
    """Read what every node of a cluster is assessed with. Raises ParseError where that cannot be read."""
    if against is not None and given is not None:
        _given(against, given)
    if objects is not None:
        _objects(objects, objects_name)


# A cluster's objects, and the rules that come, are the same for one node after the other.
@lru_cache(maxsize=1)
def _objects(text: str, name: str) -> ApiObjects:
    return read_objects(text, name=name)


def _facts(question: Question, family: Family, ruleset: Ruleset, state: KubeProxyState) -> Facts:
    node = question.snapshot.node if question.node is None else question.node
    if state.localhost_node_ports and _LOCALNET not in node.sysctls:
        why = f"{_LOCALNET} is 1, because kube-proxy's rules serve node ports on 127.0.0.1"
        node = replace(node, sysctls={**node.sysctls, _LOCALNET: "1"}, assumed=(*node.assumed, why))
    return gather(
        ruleset,
        node,
        state,
        version=question.version,
        meta=question.snapshot.meta,
        service_range=question.service_ranges.get(family),
        assumed=_native_tables(question.snapshot),
    )


def _native_tables(snapshot: Snapshot) -> tuple[str, ...]:
    """Say which tables of nftables the node has besides those that iptables writes to."""
    if snapshot.nft is None:
        return ()
    found: dict[str, None] = {}
    problems = Problems()
    listing = read_object(snapshot.nft, name=f"{snapshot.name}/nft.json", problems=problems)
    for one in listing.objects("nftables"):
        table = one.object("table")
        if table is not None and table.text("name", None) not in set(TableName):
            found[f"{table.text('family', '')} {table.text('name', '')}"] = None
    problems.raise_if_any()
    if not found:
        return ()
    return (f"tables of nftables besides decide nothing, and are not loaded: {', '.join(found)}",)


def _then(question: Question, facts: Facts) -> tuple[Then, tuple[str, ...]] | None:
    """The side that comes, with what it rests on; None where a given ruleset has nothing for the family."""
    if question.given is not None and question.against is not None:
        listing, notes = _given(question.against, question.given)
        return (Then(listing, facts.foreign.ruleset), notes) if listing.reaches(facts.family) else None
    assert question.version is not None
    version = ".".join(map(str, question.version))
    known = () if facts.service_range is None else (facts.service_range,)
    cidrs = known if layout_of(version).knows_service_cidrs else ()
    around = surroundings_of(facts.state, facts.node, service_cidrs=cidrs)
    made = nftables_mode(facts.state, version, surroundings=around)
    listing = read_listing(made.text, name=f"kube-proxy {version}")
    return Then(listing, facts.foreign.ruleset), made.assumptions


@lru_cache(maxsize=1)
def _given(name: str, text: str) -> tuple[Listing, tuple[str, ...]]:
    """A given ruleset, without tables of iptables-nft's, which nft does not list as they are."""
    try:
        return read_listing(text, name=name), ()
    except ParseError:
        own = {(family.value, table.value) for family in Family for table in TableName}
        listing = read_listing(text, name=name, without=own)
        return listing, (
            f"iptables-nft's tables in {name} are left out: the snapshot has what stays of them",
        )


def _all_are_witnesses(only: tuple[str, ...], facts: Facts) -> bool:
    """Whether named flows can do without a corpus, which takes longer to make than they to send."""
    return bool(only) and set(only) <= set(witnesses(facts)[0])


def _check_only(question: Question, assessments: list[Assessment]) -> None:
    sent = sum(one.flows for one in assessments)
    if question.only and not sent:
        raise InputError(f"no flow is called {', '.join(map(repr, question.only))}")
