"""A pytest plugin for tests of rules.

``conftest.py`` loads it with ``pytest_plugins = ["nfparity.pytest_plugin"]``::

    def test_a_host_port(load_rules):
        rules = load_rules("chain.iptables-save", {"eth0": "192.0.2.1/24", "cni0": "10.0.0.1/24"})
        assert rules.send("tcp 192.0.2.9:40000 > 192.0.2.1:8080 in eth0").dst == "10.0.0.7:80"

A test with the fixture ``load_rules`` runs on each backend of ``--nfparity-backends``: by default the
simulator, both iptables, and the translation to nftables. A backend that cannot run on the machine is skipped
with the reason. The report of a failed test names the rules that decided about its last packet.
``--nfparity-sarif FILE`` writes failures as results at the lines of these rules. Imported by no other module.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from os import PathLike, fspath
from pathlib import Path
from typing import Final

import pytest

from harness.report.sarif import sarif_locations, sarif_log
from nfparity.api import BACKENDS, Loaded, Node, Origin, load, make_node, read_rules
from nfparity.cli.main import VERSION
from translate.ir import Ruleset

__all__ = ["LoadRules", "load_rules"]

_DEFAULT: Final = "simulator,iptables-legacy,iptables-nft,nftables"
_RULE: Final = "test/failed"

LoadRules = Callable[[str | PathLike[str], Node | Mapping[str, str | Sequence[str]]], Loaded]
"""A function that loads rules on a node: a file next to the test or a text, and a node or its interfaces."""

_LOADED: Final = pytest.StashKey[list[Loaded]]()
"""The rules that are loaded."""
_BEFORE: Final = pytest.StashKey[dict[Loaded, int]]()
"""The number of packets that had been sent through each of them before the test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    group = parser.getgroup("nfparity")
    group.addoption(
        "--nfparity-backends",
        metavar="NAMES",
        default=_DEFAULT,
        help=f"backends for tests with load_rules, of {', '.join(BACKENDS)} (default: {_DEFAULT})",
    )
    group.addoption(
        "--nfparity-sarif",
        metavar="FILE",
        help="write failures as SARIF, at the lines of the rules that decided about the last packet",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the list of loaded rules, and the collection of failures."""
    config.stash[_LOADED] = []
    path = config.getoption("--nfparity-sarif")
    if path is not None and not hasattr(config, "workerinput"):  # processes of pytest-xdist have one
        config.pluginmanager.register(_SarifLog(Path(path)), "nfparity-sarif")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with ``load_rules`` once for each backend."""
    if "load_rules" not in metafunc.fixturenames:
        return
    names = [name.strip() for name in metafunc.config.getoption("--nfparity-backends").split(",")]
    for name in names:
        if name not in BACKENDS:
            raise pytest.UsageError(f"--nfparity-backends: unknown {name!r}; known are {', '.join(BACKENDS)}")
    metafunc.parametrize("load_rules", names, indirect=True, scope="module")


@pytest.fixture(scope="module")
def load_rules(request: pytest.FixtureRequest) -> Iterator[LoadRules]:
    """Return a function that loads rules on the test's backend.

    The rules stay loaded until the end of the module. Equal rules on an equal node are loaded once.
    """
    name: str = request.param
    availability = BACKENDS[name]().probe()
    if not availability.ok:
        pytest.skip(f"{name} cannot run here: {availability.reason}")
    known: list[tuple[Ruleset, Node, Loaded]] = []
    with ExitStack() as stack:

        def load_once(rules: str | PathLike[str], node: Node | Mapping[str, str | Sequence[str]]) -> Loaded:
            ruleset = read_rules(_beside(rules, request))
            place = node if isinstance(node, Node) else make_node(node)
            for other, other_node, loaded in known:
                if (other, other_node) == (ruleset, place):
                    return loaded
            loaded = stack.enter_context(load(ruleset, place, backend=name))
            known.append((ruleset, place, loaded))
            request.config.stash[_LOADED].append(loaded)
            return loaded

        yield load_once
    for _, _, loaded in known:
        request.config.stash[_LOADED].remove(loaded)


def _beside(rules: str | PathLike[str], request: pytest.FixtureRequest) -> str:
    """Return the path of a file next to the test, or a text of rules unchanged.

    The path is relative to the working directory if possible, as SARIF viewers need it.
    """
    text = fspath(rules)
    if "\n" in text:
        return text
    path = request.path.parent / text
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Count the packets that earlier tests have sent."""
    item.stash[_BEFORE] = {loaded: len(loaded.sent()) for loaded in item.config.stash[_LOADED]}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the deciding rules to the report of a failed test."""
    report = yield
    if report.when != "call" or not report.failed:
        return report
    failures: list[dict[str, object]] = []
    for loaded in item.config.stash[_LOADED]:
        packets = loaded.sent()[item.stash[_BEFORE].get(loaded, 0) :]
        if not packets:
            continue
        deciding = loaded.deciding_rules()
        lines = [
            rule if isinstance(rule, str) else f"{rule.file}:{rule.line}: {rule.text}" for rule in deciding
        ]
        report.sections.append((f"rules that decided about {packets[-1]}", "\n".join(lines)))
        origins = [rule for rule in deciding if isinstance(rule, Origin)]
        failures.append(_result(item.nodeid, call, packets[-1], origins))
    setattr(report, _FAILURES, failures)  # reports carry attributes between the processes of pytest-xdist
    return report


_FAILURES: Final = "nfparity_failures"


def _result(
    test: str, call: pytest.CallInfo[None], packet: str, origins: Sequence[Origin]
) -> dict[str, object]:
    """Return the SARIF result of a failed test."""
    message = "" if call.excinfo is None else str(call.excinfo.value).partition("\n")[0]
    return {
        "ruleId": _RULE,
        "level": "error",
        "message": {"text": f"{test}: {packet}: {message}"},
        "locations": sarif_locations(origins, (test.partition("::")[0],)),
        "partialFingerprints": {"test": test},
    }


class _SarifLog:
    """Collects the results of failed tests, and writes the log at the end of the session."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._results: list[dict[str, object]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the results of a report."""
        self._results += getattr(report, _FAILURES, [])

    def pytest_sessionfinish(self) -> None:
        """Write the log."""
        text = "a packet does not go where a test expects it"
        descriptor: dict[str, object] = {"id": _RULE, "shortDescription": {"text": text}}
        self._path.write_text(sarif_log([descriptor], self._results, version=VERSION), encoding="utf-8")
