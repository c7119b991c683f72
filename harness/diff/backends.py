"""The backends by name; each is imported on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from backends.model.contract import Backend
from translate.errors import InputError

__all__ = ["BACKENDS", "REFERENCE", "backend", "parse_backends"]

REFERENCE: Final = "simulator"
"""The backend that the others are compared with."""


def _simulator() -> Backend:
    from backends.simulator import SimulatorBackend

    return SimulatorBackend()


def _legacy() -> Backend:
    from backends.iptables.backend import IptablesBackend

    return IptablesBackend("iptables-legacy")


def _iptables_nft() -> Backend:
    from backends.iptables.backend import IptablesBackend

    return IptablesBackend("iptables-nft")


def _nftables() -> Backend:
    from backends.nftables.backend import NftablesBackend

    return NftablesBackend()


def _tc_ebpf(*, cached: bool = True) -> Backend:
    from backends.tc_ebpf import TcEbpfBackend

    return TcEbpfBackend(cached=cached)


BACKENDS: Final[dict[str, Callable[[], Backend]]] = {
    "simulator": _simulator,
    "iptables-legacy": _legacy,
    "iptables-nft": _iptables_nft,
    "nftables": _nftables,
    "tc-ebpf": _tc_ebpf,
}


def backend(name: str, *, cached: bool = True) -> Backend:
    """Return the backend called ``name``; InputError if there is none.

    Without ``cached``, tc programs are compiled even if they have been before.
    """
    if name not in BACKENDS:
        raise InputError(f"unknown backend {name!r}; known are {', '.join(BACKENDS)}")
    made = BACKENDS[name]()
    return made if cached or name != "tc-ebpf" else _tc_ebpf(cached=False)


def parse_backends(text: str) -> tuple[str, ...]:
    """Return the names in a comma-separated list, each once; InputError for an unknown one."""
    names = tuple(dict.fromkeys(n.strip() for n in text.split(",") if n.strip()))
    if not names:
        raise InputError(f"no backend named; known are {', '.join(BACKENDS)}")
    for name in names:
        if name not in BACKENDS:
            raise InputError(f"unknown backend {name!r}; known are {', '.join(BACKENDS)}")
    return names
