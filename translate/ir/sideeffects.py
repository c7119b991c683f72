"""Side effects: actions of rules that change neither the packet nor its connection."""

from __future__ import annotations

from enum import StrEnum

from translate.dataclass import dataclass

__all__ = [
    "Audit",
    "Classify",
    "ConnSecmark",
    "Duplicate",
    "External",
    "ExternalTarget",
    "FillChecksum",
    "Log",
    "LogDetail",
    "NfLog",
    "Secmark",
    "SideEffect",
    "Trace",
]


@dataclass(frozen=True, slots=True)
class SideEffect:
    """An action after which the next rule sees the same packet with the same mark and connection."""


class LogDetail(StrEnum):
    """Details of a packet that LOG can add, spelled as the option after ``--log-``."""

    TCP_SEQUENCE = "tcp-sequence"
    TCP_OPTIONS = "tcp-options"
    IP_OPTIONS = "ip-options"
    UID = "uid"
    MACDECODE = "macdecode"


@dataclass(frozen=True, slots=True)
class Log(SideEffect):
    """Write the packet to the kernel's log at ``level`` (0 to 7), and go on (``log_tg``)."""

    prefix: str
    level: int
    details: tuple[LogDetail, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NfLog(SideEffect):
    """Send the packet to the listeners of a netlink ``group``, and go on (``nflog_tg``).

    ``size`` is the number of bytes that are sent, ``threshold`` the number of packets that are sent
    together; both are None when not given.
    """

    prefix: str
    group: int
    size: int | None = None
    threshold: int | None = None


@dataclass(frozen=True, slots=True)
class Audit(SideEffect):
    """Write an audit record of the packet (``audit_tg``); the record does not have the rule's ``--type``."""


@dataclass(frozen=True, slots=True)
class Trace(SideEffect):
    """Report every rule that the packet meets from now on (``trace_tg``)."""


@dataclass(frozen=True, slots=True)
class Classify(SideEffect):
    """Set the packet's priority, by which queueing disciplines classify it: MAJOR << 16 | MINOR."""

    priority: int


@dataclass(frozen=True, slots=True)
class FillChecksum(SideEffect):
    """Compute a checksum that was left to the network card (``checksum_tg``).

    The packet leaves the node with the same checksum either way. Only a reader inside the node sees the
    difference, such as the raw socket of a DHCP client in a virtual machine.
    """


@dataclass(frozen=True, slots=True)
class Duplicate(SideEffect):
    """Send a copy of the packet to ``gateway``, through ``device`` unless that is empty (``nf_dup_ipv4``).

    The copy is UNTRACKED. It passes OUTPUT and POSTROUTING, where no rule copies it again.
    """

    gateway: int
    device: str = ""


@dataclass(frozen=True, slots=True)
class Secmark(SideEffect):
    """Give the packet the label ``context``, which a security module such as SELinux reads (``secmark_tg``).

    The module checks the label when the rule is loaded. Without a module, the kernel loads no such rule.
    """

    context: str


@dataclass(frozen=True, slots=True)
class ConnSecmark(SideEffect):
    """Copy the packet's label to its connection if that has none; ``restore`` copies it back.

    Nothing is copied over another label (``secmark_save``, ``secmark_restore``).
    """

    restore: bool


class ExternalTarget(StrEnum):
    """Targets that change something outside of the packet filter, spelled as in ``-j``."""

    IDLETIMER = "IDLETIMER"
    """Restarts a timer; the kernel notifies user space when the timer ends."""
    LED = "LED"
    """Lights an LED of the machine."""
    RATEEST = "RATEEST"
    """Counts the packet in an estimator of rates."""


@dataclass(frozen=True, slots=True)
class External(SideEffect):
    """The effect of ``target``; no modelled match can test it."""

    target: ExternalTarget
