"""Assessment of a snapshot: every family that its kube-proxy serves."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Final

from backends.combined.backend import CombinedLoader
from backends.given_nftables.backend import GivenNftLoader
from backends.ipvs.backend import IpvsBackend, own_addresses, with_device
from backends.model.clock import at_present
from backends.model.contract import Backend, Job
from backends.model.flow import Flow
from backends.model.ipvs import IpvsTable, read_table
from backends.model.node import Node
from backends.replay.loader import Loader
from harness.corpus.generate import generate_flows
from harness.diff.replay import Progress
from harness.diff.sampling import MISS, Sampling
from nfparity.assess.assessing import Assessment, assess, detector_flows
from nfparity.assess.catalogue import Version, catalogue
from nfparity.assess.ipvs.assessing import assess_ipvs
from nfparity.assess.node.components import IPTABLES, NativeTables, native_tables
from nfparity.assess.node.facts import Facts, gather
from nfparity.assess.node.nativetests import native_tests
from nfparity.assess.replay.backends import IptablesModeBackend, NftablesModeBackend, iptables_backend
from nfparity.assess.replay.orders import compare_orders, untested_orders
from nfparity.assess.summary import Summary, Untested
from nfparity.kubeproxy import ApiObjects, KubeProxyState, Mode, read_objects, recover
from nfparity.kubeproxy.nftables import LAYOUTS, infer_config, layout_of, nftables_mode
from nfparity.snapshot import Snapshot, Variant
from translate.dataclass import dataclass, field, replace
from translate.errors import InputError, MachineError, ParseError
from translate.ir import Family, Interval, Ruleset, TableName
from translate.nftlisting import Listing, read_listing, table_names

__all__ = ["AssessOptions", "assess_snapshot", "check_shared"]

_NEWEST: Final = max((int(a), int(b)) for a, _, b in (v.partition(".") for v in LAYOUTS))
_IPTABLES: Final = frozenset({IPTABLES})
_WITHOUT_IPVS: Final = (
    "a Debian kernel in a virtual machine has it; from a checkout of nfparity:\n"
    "  vm/setup.sh vm && .venv/bin/python -m vm --kernel 6.1 -- .venv/bin/nfparity assess SNAPSHOT"
)
_LOCALNET: Final = "net.ipv4.conf.all.route_localnet"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssessOptions:
    """Options of an assessment, shared by all snapshots of a fleet.

    ``listing`` is the text of the nftables ruleset to compare with and ``against`` its name; without it, the
    ruleset of kube-proxy ``version`` (default: the newest known) is generated. ``objects`` is the text of the
    file ``objects_name``. ``node``, ``objects`` and ``service_ranges`` override the snapshot's own. Without
    ``corpus``, only the differences of the catalogue are looked for. ``only`` restricts the flows by id.
    ``words`` are the command-line words needed to reproduce an example. ``miss`` is the accepted chance, per
    flow, of not seeing one of its outcomes (:mod:`harness.diff.sampling`).
    """

    version: Version | None = None
    against: str | None = None
    listing: str | None = None
    node: Node | None = None
    family: Family | None = None
    variant: Variant | None = None
    objects: str | None = None
    objects_name: str = "objects"
    service_ranges: Mapping[Family, Interval] = field(default_factory=dict)
    corpus: bool = True
    only: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    miss: float = MISS


_DEFAULTS: Final = AssessOptions()


def assess_snapshot(
    snapshot: Snapshot,
    options: AssessOptions = _DEFAULTS,
    *,
    progress: Progress,
    able: set[str] | None = None,
) -> Summary:
    """Return the differences that the change of mode makes on the node.

    ``able`` names the backends that are known to run here. They are not probed again, because a probe takes
    as long as the replay of a small snapshot; other backends are added after their probe.
    Raises InputError for a snapshot without rules of kube-proxy's iptables mode, and for unknown ids in
    ``only``; MachineError when a backend cannot run here or rejects its rules.
    """
    if options.listing is None and options.version is None:
        options = replace(options, version=_NEWEST)
    known = set() if able is None else able
    assessments: list[Assessment] = []
    untested: list[Untested] = []
    native = native_tables(snapshot, snapshot.node if options.node is None else options.node)
    virtual = None if snapshot.ipvs is None else read_table(snapshot.ipvs, name=f"{snapshot.name}/ipvs-save")
    for family, ruleset, state in _served(snapshot, options, virtual):
        tables = native.reaching(family)
        facts = _facts(snapshot, options, tables, family, ruleset, state, virtual)
        nftables = _nftables_mode(options, facts, tables.loaded)
        if nftables is None:
            reason = f"{options.against} has no table for this family, but kube-proxy serves it here"
            untested.append(Untested(family, reason))
            continue
        after, notes = nftables
        if state.mode is Mode.IPVS:
            assert virtual is not None
            assessments.append(
                _from_ipvs(facts, virtual, tables, after, notes, options, known=known, progress=progress)
            )
            continue
        facts = replace(facts, assumed=(*facts.assumed, *notes, *untested_orders(after, facts)))
        before = IptablesModeBackend(tables.loaded) if tables.loaded else iptables_backend()
        _probe(before, after, known=known)
        corpus: tuple[Flow, ...] = ()
        if options.corpus and not _only_detector_flows(options.only, facts):
            # A given ruleset may treat two services differently although they differ only in constants.
            job, exhaustive = Job(rules=ruleset, node=facts.node), options.listing is not None
            # So may tables of other programs.
            fewer = not exhaustive and not tables.loaded
            made = generate_flows(job, seed=0, exhaustive=exhaustive, fewer=fewer)
            corpus = tuple(at_present(flow) for flow in made.flows)
        assessments.append(
            assess(
                facts,
                before=before,
                after=after,
                late=replace(after, later=_IPTABLES) if facts.other_rules.ruleset.tables else None,
                compare_orders=partial(
                    compare_orders, facts, after=after, progress=progress, sampling=Sampling(options.miss)
                ),
                beside=bool(tables.loaded),
                corpus=corpus,
                only=options.only,
                sampling=Sampling(options.miss),
                by_class=options.listing is None and not facts.native_tests.unreadable,
                progress=progress,
            )
        )
    if not assessments:
        raise InputError(
            f"{options.against}: no table of this ruleset is for a family that kube-proxy serves here"
        )
    _check_only(options, assessments)
    return Summary(
        snapshot=snapshot.name,
        version=options.version,
        against=options.against,
        assessments=tuple(assessments),
        words=options.words,
        untested=tuple(untested),
    )


def _from_ipvs(
    facts: Facts,
    virtual: IpvsTable,
    tables: NativeTables,
    after: NftablesModeBackend,
    notes: tuple[str, ...],
    options: AssessOptions,
    *,
    known: set[str],
    progress: Progress,
) -> Assessment:
    """Return the assessment of a node in ipvs mode."""
    family = facts.family

    def beside(rules: Loader) -> Loader:
        others = [GivenNftLoader(listing, family) for listing in tables.loaded]
        return CombinedLoader(rules, *others) if others else rules

    before = IpvsBackend(virtual, beside)
    if before.name not in known and not (availability := before.probe()).ok:
        raise MachineError(f"a node in ipvs mode cannot run here: {availability.reason}\n{_WITHOUT_IPVS}")
    known.add(before.name)
    _probe(after, known=known)
    return assess_ipvs(
        replace(facts, assumed=(*facts.assumed, *notes)),
        virtual.of(family),
        before=before,
        after=after,
        only=options.only,
        miss=options.miss,
        progress=progress,
    )


def _probe(*sides: Backend, known: set[str]) -> None:
    for side in sides:
        if side.name in known:
            continue
        availability = side.probe()
        if not availability.ok:
            raise MachineError(
                f"{side.name} cannot run here: {availability.reason}\nnfparity doctor lists what to install"
            )
        known.add(side.name)


def _served(
    snapshot: Snapshot, options: AssessOptions, virtual: IpvsTable | None
) -> list[tuple[Family, Ruleset, KubeProxyState]]:
    text, name = snapshot.objects, f"{snapshot.name}/objects.json"
    if options.objects is not None:
        text, name = options.objects, options.objects_name
    objects = None if text is None else _objects(text, name)
    wanted = snapshot.families if options.family is None else (options.family,)
    served = []
    modes: dict[Mode, None] = {}
    for family in wanted:
        ruleset = snapshot.ruleset(family, options.variant)
        state = recover(ruleset, objects, ipvs=virtual)
        modes[state.mode] = None
        if state.mode is not Mode.NONE and state.endpoints_known:
            served.append((family, ruleset, state))
    if not served:
        if Mode.IPVS in modes:
            raise InputError(
                f"{snapshot.name}: kube-proxy is in ipvs mode, and ipvs-save is missing: the output of "
                "ipvsadm-save -n, which nfparity capture records"
            )
        raise InputError(f"{snapshot.name}: no rules of kube-proxy's iptables mode")
    return served


def check_shared(options: AssessOptions) -> None:
    """Read the inputs that all nodes share, before any node is assessed. Raises ParseError."""
    if options.against is not None and options.listing is not None:
        _listing(options.against, options.listing)
    if options.objects is not None:
        _objects(options.objects, options.objects_name)


# Cached: all nodes of a cluster share the API objects and the given ruleset.
@lru_cache(maxsize=1)
def _objects(text: str, name: str) -> ApiObjects:
    return read_objects(text, name=name)


def _facts(
    snapshot: Snapshot,
    options: AssessOptions,
    native: NativeTables,
    family: Family,
    ruleset: Ruleset,
    state: KubeProxyState,
    virtual: IpvsTable | None,
) -> Facts:
    node = snapshot.node if options.node is None else options.node
    if state.mode is Mode.IPVS and virtual is not None:
        node = with_device(node, virtual)
        if own_addresses(node, family) <= set(state.node_port_addresses or ()):
            state = replace(state, node_port_addresses=None)
    if state.localhost_node_ports and _LOCALNET not in node.sysctls:
        why = f"{_LOCALNET} is 1, because kube-proxy's rules serve node ports on 127.0.0.1"
        node = replace(node, sysctls={**node.sysctls, _LOCALNET: "1"}, assumed=(*node.assumed, why))
    return gather(
        ruleset,
        node,
        state,
        version=options.version,
        meta=snapshot.meta,
        service_range=options.service_ranges.get(family),
        native_tables=native.names,
        native_tests=native_tests(native.loaded, family),
        assumed=native.notes,
    )


def _nftables_mode(
    options: AssessOptions, facts: Facts, native: tuple[Listing, ...]
) -> tuple[NftablesModeBackend, tuple[str, ...]] | None:
    """Return the nftables backend and its assumptions; None if a given ruleset lacks the family."""
    if options.listing is not None and options.against is not None:
        listing, notes = _listing(options.against, options.listing)
        if not listing.reaches(facts.family):
            return None
        # If both the snapshot and the given ruleset contain a table, the one in the given ruleset is used.
        named = table_names(listing)
        others = tuple(table for table in native if table.source not in named)
        return NftablesModeBackend(listing, facts.other_rules.ruleset, others), notes
    assert options.version is not None
    version = ".".join(map(str, options.version))
    known = () if facts.service_range is None else (facts.service_range,)
    cidrs = known if layout_of(version).knows_service_cidrs else ()
    config = infer_config(facts.state, facts.node, service_cidrs=cidrs)
    made = nftables_mode(facts.state, version, config=config)
    listing = read_listing(made.text, name=f"kube-proxy {version}")
    after = NftablesModeBackend(listing, facts.other_rules.ruleset, native, generated=True)
    return after, made.assumptions


@lru_cache(maxsize=1)
def _listing(name: str, text: str) -> tuple[Listing, tuple[str, ...]]:
    """Return a given ruleset without iptables-nft's tables, which nft does not list in a loadable form."""
    try:
        return read_listing(text, name=name), ()
    except ParseError:
        own = {(family.value, table.value) for family in Family for table in TableName}
        listing = read_listing(text, name=name, without=own)
        return listing, (
            f"iptables-nft's tables in {name} are left out: those of their rules that stay are read from the"
            " snapshot",
        )


def _only_detector_flows(only: tuple[str, ...], facts: Facts) -> bool:
    """Return whether ``only`` names no flow of the corpus, whose generation takes long."""
    return bool(only) and set(only) <= {*detector_flows(facts)[0], *(known.id for known in catalogue())}


def _check_only(options: AssessOptions, assessments: list[Assessment]) -> None:
    if options.only and not any(assessment.flows or assessment.findings for assessment in assessments):
        raise InputError(f"no flow is called {', '.join(map(repr, options.only))}")
