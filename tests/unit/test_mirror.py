"""tests/unit mirrors the product: a module and its tests are found from one another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.lab.imports import modules_of

ROOT: Final = Path(__file__).parents[2]
UNIT: Final = ROOT / "tests/unit"
PRODUCT: Final = ("translate", "backends", "harness", "nfparity")
MODULES: Final = modules_of(ROOT, PRODUCT)
PACKAGES: Final = {module for module, path in MODULES.items() if path.name == "__init__.py"}

_PLACE: Final = re.compile(r'": "(\w+)\.[A-Z0-9_]+",$', re.MULTILINE)
_IMPORT: Final = re.compile(r"^ *from ([a-z0-9_.]+) import (.*)$", re.MULTILINE)

# Modules without unit tests in their own package, and a test of each. Those in tests/kernel need a kernel.
ELSEWHERE: Final = {
    "backends.given_nftables.backend": "kernel/test_given_nft.py",
    "backends.model.link": "kernel/test_tapnode.py",
    "backends.model.variant": "unit/nfparity/inputs/test_rules.py",
    "backends.replay.availability": "kernel/test_rootless.py",
    "backends.replay.forkserver": "kernel/test_fork_server.py",
    "backends.replay.messages": "kernel/test_fork_server.py",
    "backends.replay.served": "kernel/test_worker.py",
    "backends.replay.session": "kernel/test_cleanup.py",
    "backends.replay.successive": "kernel/test_successive.py",
    "backends.replay.worker": "kernel/test_worker.py",
    "backends.tc_ebpf.backend": "kernel/test_tc_ebpf.py",
    "backends.tc_ebpf.connections": "kernel/test_forgetting.py",
    "backends.tc_ebpf.counters": "kernel/test_tc_connections.py",
    "backends.tc_ebpf.dataplane": "kernel/test_tc_ebpf.py",
    "backends.tc_ebpf.loader": "kernel/test_tc_ebpf.py",
    "backends.tc_ebpf.node.direct": "kernel/test_tc_routing.py",
    "backends.tc_ebpf.node.facts": "kernel/test_tc_routing.py",
    "backends.tc_ebpf.node.sourcechecks": "kernel/test_tc_routing.py",
    "backends.tc_ebpf.programs.bpfmap": "kernel/test_live_maps.py",
    "backends.tc_ebpf.programs.program": "kernel/test_tc_cache.py",
    "backends.tc_ebpf.programs.runtimes": "kernel/test_tc_runtimes.py",
    "backends.testbed.controlmessages": "kernel/test_tapnode.py",
    "backends.testbed.localroutes": "kernel/test_local_routes.py",
    "backends.testbed.networknamespace": "kernel/test_cleanup.py",
    "backends.testbed.offloads": "kernel/test_tapnode.py",
    "backends.testbed.ownership": "kernel/test_rootless.py",
    "backends.testbed.sniffer": "kernel/test_tapnode.py",
    "backends.testbed.suppress_stack_rst": "kernel/test_reject.py",
    "backends.testbed.tapnode": "kernel/test_tapnode.py",
    "harness.diff.kernelcounts": "kernel/test_generated_corpus.py",
    "harness.explain.description": "unit/harness/report/test_path.py",
    "harness.files.userfiles": "unit/nfparity/cli/test_bad_input.py",
    "harness.report.pathjson": "unit/harness/explain/test_explain.py",
    "harness.report.rules": "unit/harness/corpus/test_coverage.py",
    "harness.shrink.reductions": "kernel/test_shrink.py",
    "harness.shrink.shrink": "kernel/test_shrink.py",
    "nfparity.__main__": "unit/nfparity/cli/test_main.py",
    "nfparity.assess.snapshots": "kernel/test_assess.py",
    "nfparity.capture.program": "unit/nfparity/capture/test_package.py",
    "nfparity.cli.__main__": "unit/nfparity/cli/test_main.py",
    "nfparity.cli.capture": "kernel/test_capture.py",
    "nfparity.cli.corpus": "unit/nfparity/cli/test_corpus_generate.py",
    "nfparity.cli.diff": "unit/nfparity/cli/test_diff_status.py",
    "nfparity.cli.doctor": "unit/nfparity/cli/test_main.py",
    "nfparity.cli.explain": "unit/nfparity/cli/test_input_forms.py",
    "nfparity.cli.graph": "unit/nfparity/cli/test_input_forms.py",
    "nfparity.cli.simulate": "unit/nfparity/cli/test_input_forms.py",
    "nfparity.cli.tc": "kernel/test_tc_lifecycle.py",
    "nfparity.cli.translate": "unit/nfparity/cli/test_translate_keep_going.py",
    "nfparity.inputs.against": "unit/nfparity/cli/test_diff_against.py",
    "nfparity.livenode": "kernel/test_migrate_plan.py",
    "nfparity.migrate.bootload": "kernel/test_migrate_reboot.py",
    "nfparity.migrate.clients": "kernel/test_migrate_clients.py",
    "nfparity.migrate.deadman": "kernel/test_migrate.py",
    "nfparity.migrate.migration": "kernel/test_migrate.py",
    "nfparity.migrate.planning.overlap": "kernel/test_migrate_rehearsal.py",
    "nfparity.migrate.state.owned": "kernel/test_migrate_damaged.py",
    "nfparity.migrate.planning.planning": "kernel/test_migrate_plan.py",
    "nfparity.migrate.recovery": "kernel/test_migrate_damaged.py",
    "nfparity.migrate.rollback": "kernel/test_migrate_faults.py",
    "nfparity.migrate.steps": "kernel/test_migrate_faults.py",
    "nfparity.migrate.planning.trial": "kernel/test_migrate_plan.py",
    "nfparity.migrate.verification": "kernel/test_migrate.py",
    "nfparity.migrate.state.ipsets": "kernel/test_migrate.py",
    "nfparity.persistent_state.namespace": "kernel/test_migrate_foreign.py",
    "nfparity.report.fleet": "unit/nfparity/assess/fleet/test_grouping.py",
    "nfparity.tc.status": "kernel/test_tc_lifecycle.py",
    "translate.read.tables.building": "unit/translate/read/save/test_reader.py",
    "translate.refusals": "unit/translate/nft/limits/test_inexpressible.py",
}

# Tests of a behaviour to which several modules of the package contribute, or of the package's whole output.
BEHAVIOURS: Final = frozenset(
    {
        "backends/simulator/conntrack/test_connmark.py",
        "backends/simulator/test_clusterip.py",
        "backends/simulator/test_ipv6.py",
        "backends/simulator/test_kind.py",
        "backends/simulator/test_runs.py",
        "backends/simulator/test_unmodelled.py",
        "backends/simulator/walk/test_evaluate.py",
        "harness/corpus/generate/test_single_faults.py",
        "harness/corpus/test_guest.py",
        "harness/test_any_draw.py",
        "harness/test_new_field.py",
        "nfparity/assess/test_any_draw.py",
        "nfparity/capture/anonymise/test_files.py",
        "nfparity/capture/anonymise/test_same_outcomes.py",
        "nfparity/cli/test_bad_input.py",
        "nfparity/cli/test_input_forms.py",
        "nfparity/cli/test_output.py",
        "nfparity/cli/test_same_output.py",
        "nfparity/kubeproxy/test_damaged.py",
        "nfparity/kubeproxy/test_generated.py",
        "translate/bpf/test_golden.py",
        "translate/bpf/test_recent.py",
        "translate/condense/test_premise.py",
        "translate/irtext/test_command.py",
        "translate/irtext/test_round_trip.py",
        "translate/nft/test_accounts.py",
        "translate/nft/test_emit.py",
        "translate/nft/test_golden.py",
        "translate/nft/test_ipv6.py",
        "translate/nft/test_scale.py",
        "translate/passes/test_cases.py",
        "translate/passes/test_equivalence.py",
        "translate/passes/test_simulator.py",
        "translate/read/extensions/test_header_fields.py",
        "translate/read/extensions/test_targets.py",
        "translate/read/test_fuzz.py",
        "translate/read/test_real_dumps.py",
    }
)


def _package(module: str) -> str:
    return module if module in PACKAGES else module.rpartition(".")[0]


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _imports(path: Path) -> Iterator[str]:
    """Yield the modules that a file may import, without parsing it: this reads a thousand files.

    A registry of extensions imports the files that it names.
    """
    for line in _IMPORT.finditer(path.read_text()):
        yield line[1]
        yield from (f"{line[1]}.{name.strip()}" for name in line[2].split(","))
    if path == ROOT / "translate/read/extensions/__init__.py":
        yield from (f"translate.read.extensions.{file}" for file in _PLACE.findall(path.read_text()))


def _tests() -> Iterator[tuple[Path, str]]:
    """Yield each unit test, relative to tests/unit, and the package that its folder mirrors."""
    for room in PRODUCT:
        for path in sorted((UNIT / room).rglob("test_*.py")):
            place = path.relative_to(UNIT)
            yield place, ".".join(place.parent.parts)


def test_folders_of_tests_are_those_of_packages() -> None:
    assert not {str(place) for place, package in _tests() if package not in PACKAGES}


def test_tests_are_named_after_what_they_test() -> None:
    """``test_X.py`` tests the module, subpackage or package X, ``test_X_topic.py`` a part of it."""
    wrong = set()
    for place, package in _tests():
        subject = place.stem.removeprefix("test_")
        names = {m.rpartition(".")[2] for m in MODULES if m.rpartition(".")[0] == package}
        names.add(package.rpartition(".")[2])
        if not any(f"{subject}_".startswith(f"{name}_") for name in names):
            wrong.add(str(place))
    assert wrong == BEHAVIOURS


def test_every_module_has_tests() -> None:
    """Tests of a package reach its modules: by name, by import, or behind another module of the package."""
    tests = {f"tests.unit.{'.'.join(place.with_suffix('').parts)}": package for place, package in _tests()}
    named = {f"{package}.{place.stem.removeprefix('test_')}" for place, package in _tests()}
    reached = named & MODULES.keys()
    tested = {module: path for module, path in modules_of(ROOT, ["tests/unit"]).items() if module in tests}
    imported = {
        module: {
            target
            for target in _imports(path)
            if target in MODULES and _within(_package(target), tests.get(module, _package(module)))
        }
        for module, path in (MODULES | tested).items()
    }
    pending = [*tests, *reached]
    while pending:
        new = imported[pending.pop()] - reached
        reached |= new
        pending += new
    assert MODULES.keys() - PACKAGES - reached == ELSEWHERE.keys()


def test_tests_elsewhere_exist() -> None:
    assert not {test for test in ELSEWHERE.values() if not (ROOT / "tests" / test).is_file()}
