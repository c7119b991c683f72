"""The subjects of the measurements: each turns a cluster into rules to load, and a change of a service."""

from __future__ import annotations

import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from backends.iptables.backend import VARIANTS, IptablesLoader
from backends.nftables.backend import NftablesLoader
from backends.replay.loader import Loader
from backends.tc_ebpf.loader import TcEbpfLoader
from backends.testbed.command import find_tool
from tests.lab.bench.kubelayout import kube_proxy_nftables, service_again
from tests.lab.bench.node import Change, LiveChange
from tests.lab.flowtables import missing_flowtables
from tests.lab.kuberules import Cluster, Service, Shape, draw_cluster, kube_proxy_rules
from translate.bpf import BpfOutput, MapChange, change_between
from translate.bpf import emit as emit_bpf
from translate.condense import CondensedProgram, emit_nft, lower, read_large, whole_program
from translate.errors import MachineError
from translate.ir import Program
from translate.nft import NftOutput, Offload, offloading
from translate.passes import LEVELS

__all__ = [
    "OFFLOADING",
    "PLAIN",
    "WIDE",
    "AnyChange",
    "Material",
    "NotMeasured",
    "Ready",
    "Subject",
    "material",
    "subjects",
]

PLAIN: Final = "plain forwarding"
WIDE: Final = (*VARIANTS, f"nfparity -O{max(LEVELS)}")
"""Subjects that also load the wide cluster; the others need minutes for it."""
OFFLOADING: Final = f"nfparity -O{max(LEVELS)}, flowtable"
AnyChange = Change | LiveChange
AnyProgram = Program | CondensedProgram
_Output = NftOutput | BpfOutput

T = TypeVar("T")


class NotMeasured(Exception):  # noqa: N818  # a reason for the table, not a failure
    """The reason why a subject cannot be measured."""


@dataclass(frozen=True, slots=True)
class Material:
    """One size: a cluster of UDP services of the type ClusterIP, and its iptables-save ``text``."""

    cluster: Cluster
    text: str

    @property
    def last(self) -> Service:
        """The last service, which a walk through the rules reaches last."""
        return self.cluster.services[-1]

    @property
    def changed(self) -> tuple[Service, Service]:
        """The service in the middle of the list, unchanged and with one endpoint removed."""
        service = self.cluster.services[len(self.cluster.services) // 2]
        return service, replace(service, endpoints=service.endpoints[:-1])


def material(services: int, endpoints: int) -> Material:
    """Draw the cluster of one size. Raises InputError if the size is too large."""
    cluster = draw_cluster(Shape(services=services, endpoints=endpoints, udp=services))
    return Material(cluster, kube_proxy_rules(cluster))


@dataclass(slots=True)
class Ready:
    """The rules to load, and the seconds of each unprivileged step that made them."""

    loader: Loader | None
    size: int = 0
    pure: dict[str, float] = field(default_factory=dict)
    output: _Output | None = None
    """The translation from which a change starts."""


class Subject(ABC):
    """One way to load the rules of a cluster."""

    name: str

    @abstractmethod
    def prepare(self, material: Material) -> Ready:
        """Return the rules to load. Raises an NfparityError if the cluster cannot be expressed."""

    def changes(self, material: Material, loaded: Ready) -> tuple[AnyChange, AnyChange]:
        """Return the changes that remove an endpoint of a service and add it again. Raises NotMeasured."""
        raise NotMeasured("there are no rules")


class _Plain(Subject):
    name = PLAIN

    def prepare(self, material: Material) -> Ready:
        return Ready(None)


class _Iptables(Subject):
    def __init__(self, variant: str) -> None:
        self.name = variant

    def prepare(self, material: Material) -> Ready:
        return Ready(IptablesLoader(self.name, material.text), len(material.text))

    def changes(self, material: Material, loaded: Ready) -> tuple[AnyChange, AnyChange]:
        """Return kube-proxy's own changes: only the service's chains are flushed and written again."""
        whole, less = material.changed
        command = (f"{self.name}-restore", "--noflush")
        first, second = (Change(command, _fragment(material.cluster, s)) for s in (less, whole))
        return first, second


def _fragment(cluster: Cluster, service: Service) -> str:
    alone = kube_proxy_rules(replace(cluster, services=(service,), comments=cluster.with_comments))
    own = {service.chain("SVC"), *(service.endpoint_chain(e.text(cluster.family)) for e in service.endpoints)}
    lines = [f":{chain} - [0:0]" for chain in sorted(own)]
    lines += [x for x in alone.splitlines() if x.startswith("-A ") and x.split(" ", 2)[1] in own]
    return "\n".join(("*nat", *lines, "COMMIT", ""))


class _Translate(Subject):
    """The translator of the iptables package (iptables-restore-translate), and nft."""

    name = "iptables-restore-translate"

    def prepare(self, material: Material) -> Ready:
        tool = find_tool(self.name)
        if tool is None:
            raise MachineError(f"{self.name} is not installed (Debian package iptables)")
        began = time.perf_counter()
        done = subprocess.run(
            (tool, "-f", "/dev/stdin"), input=material.text, capture_output=True, text=True, check=False
        )
        spent = time.perf_counter() - began
        return Ready(NftablesLoader(done.stdout), len(done.stdout), {"translate": spent})

    def changes(self, material: Material, loaded: Ready) -> tuple[AnyChange, AnyChange]:
        raise NotMeasured("it translates whole files")


class _KubeProxy(Subject):
    """The ruleset of kube-proxy's nftables mode; the time to write it is not counted."""

    name = "kube-proxy's nftables"

    def prepare(self, material: Material) -> Ready:
        text = kube_proxy_nftables(material.cluster)
        return Ready(NftablesLoader(text), len(text))

    def changes(self, material: Material, loaded: Ready) -> tuple[AnyChange, AnyChange]:
        whole, less = material.changed
        texts = (service_again(material.cluster, s) for s in (less, whole))
        first, second = (Change(("nft", "-f", "-"), text) for text in texts)
        return first, second


class _Ours(Subject):
    """This project: read, lower, emit, load."""

    def __init__(self, name: str, level: int, emit: Callable[[AnyProgram], Ready]) -> None:
        self.name = name
        self._level = level
        self._emit = emit

    def prepare(self, material: Material) -> Ready:
        pure: dict[str, float] = {}
        data = material.text.encode()
        ruleset = _timed(pure, "read", lambda: read_large(data, name="rules"))
        program = _timed(pure, "lower", lambda: lower(ruleset, level=self._level))
        ready = _timed(pure, "emit", lambda: self._emit(program))
        ready.pure = pure
        return ready

    def changes(self, material: Material, loaded: Ready) -> tuple[AnyChange, AnyChange]:
        """Return changes by ``translate --against``, through the handle that loaded the rules."""
        whole, less = material.changed
        services = tuple(less if s is whole else s for s in material.cluster.services)
        cluster = replace(material.cluster, services=services)
        other = self.prepare(Material(cluster, kube_proxy_rules(cluster))).output
        return LiveChange(_between(loaded.output, other)), LiveChange(_between(other, loaded.output))


def _between(old: _Output | None, new: _Output | None) -> str | tuple[MapChange, ...]:
    match old, new:
        case NftOutput(), NftOutput():
            return new.change_from(old).text
        case BpfOutput(), BpfOutput():
            return change_between(old, new).live()
    raise TypeError(f"two outputs of one kind are compared, not {old!r} and {new!r}")


def _nftables(program: AnyProgram) -> Ready:
    output = emit_nft(program)
    return Ready(NftablesLoader(output.text, flush=output.flush), len(output.text), output=output)


class _Offloading(Subject):
    """The translation with a flowtable, into which the kernel puts connections that have been answered."""

    name = OFFLOADING

    def prepare(self, material: Material) -> Ready:
        if (missing := missing_flowtables()) is not None:
            raise MachineError(missing)
        pure: dict[str, float] = {}
        data = material.text.encode()
        ruleset = _timed(pure, "read", lambda: read_large(data, name="rules"))
        program = _timed(pure, "lower", lambda: lower(ruleset, level=max(LEVELS)))
        devices = tuple(i.name for i in material.cluster.node.interfaces if i.name != "lo")
        offload = Offload(devices, unchecked=True)
        output = _timed(pure, "emit", lambda: offloading(emit_nft(program), whole_program(program), offload))
        return Ready(NftablesLoader(output.text, flush=output.flush), len(output.text), pure)

    def changes(self, material: Material, loaded: Ready) -> tuple[AnyChange, AnyChange]:
        raise NotMeasured("a change of a table with a flowtable loads the whole table")


def _tc_ebpf(program: AnyProgram) -> Ready:
    output = emit_bpf(whole_program(program))
    return Ready(TcEbpfLoader(output), len(output.source), output=output)


def _timed(into: dict[str, float], step: str, run: Callable[[], T]) -> T:
    began = time.perf_counter()
    result = run()
    into[step] = time.perf_counter() - began
    return result


def subjects() -> Mapping[str, Subject]:
    """Return every subject by its name, in the order of the tables, with one for each level."""
    measured: list[Subject] = [_Plain(), *(_Iptables(v) for v in VARIANTS), _Translate(), _KubeProxy()]
    measured += [_Ours(f"nfparity -O{level}", level, _nftables) for level in sorted(LEVELS)]
    measured += [_Offloading(), _Ours("nfparity tc eBPF", max(LEVELS), _tc_ebpf)]
    return {subject.name: subject for subject in measured}
