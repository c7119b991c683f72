"""The virtual services of ``ip_vs``: read from the output of ``ipvsadm-save -n``, and written as its input.

ipvsadm(8) describes the options. Options that kube-proxy never uses are rejected instead of being lost.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final

from translate.dataclass import dataclass, replace
from translate.errors import Diagnostic, ParseError
from translate.ir import Family, Origin, Protocol, format_address
from translate.jsoninput import decode

__all__ = ["IpvsTable", "RealServer", "VirtualService", "read_table", "write_table"]

_PROTOCOLS: Final = {
    "-t": Protocol.TCP,
    "--tcp-service": Protocol.TCP,
    "-u": Protocol.UDP,
    "--udp-service": Protocol.UDP,
    "--sctp-service": Protocol.SCTP,
}
_WRITTEN: Final = {Protocol.TCP: "-t", Protocol.UDP: "-u", Protocol.SCTP: "--sctp-service"}
_ADD_SERVICE: Final = ("-A", "--add-service")
_ADD_SERVER: Final = ("-a", "--add-server")
_MASQUERADING: Final = ("-m", "--masquerading")
_MOST_TIMEOUT: Final = 86400 * 31
"""``MAX_TIMEOUT`` of ipvsadm, in seconds."""
_MOST_WEIGHT: Final = 0x7FFFFFFF
_DEFAULT_SCHEDULER: Final = "wlc"


@dataclass(frozen=True, slots=True, order=True)
class RealServer:
    """A destination of a virtual service. A server of weight 0 gets no new connections."""

    address: int
    port: int
    weight: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualService:
    """A virtual service: ``persistent`` is its timeout in seconds, 0 for none.

    ``flags`` are those of the scheduler (``sh-port``). ``one_packet``: every UDP packet is scheduled.
    ``origin`` is its line.
    """

    protocol: Protocol
    address: int
    port: int
    scheduler: str = _DEFAULT_SCHEDULER
    flags: str = ""
    persistent: int = 0
    one_packet: bool = False
    servers: tuple[RealServer, ...] = ()
    family: Family = Family.IP
    origin: Origin

    @property
    def place(self) -> str:
        """The address and port as ipvsadm writes them."""
        return _place(self.family, self.address, self.port)


@dataclass(frozen=True, slots=True)
class IpvsTable:
    """The virtual services of a node, of both families, in order."""

    services: tuple[VirtualService, ...]

    def of(self, family: Family) -> IpvsTable:
        """Return the services of one family."""
        return IpvsTable(tuple(service for service in self.services if service.family is family))


def read_table(data: bytes | str, *, name: str) -> IpvsTable:
    """Return the services in the output of ``ipvsadm-save -n``.

    Raises ParseError with the place of each line that is not understood. Services of a firewall mark,
    tunnelling and direct routing are rejected: kube-proxy does not use them.
    """
    text = decode(data, name=name) if isinstance(data, bytes) else data
    faults: list[Diagnostic] = []
    services: dict[tuple[Protocol, Family, int, int], VirtualService] = {}
    for number, line in enumerate(text.splitlines(), 1):
        origin = Origin(name, number, text=line)
        try:
            words = shlex.split(line, comments=True)
            if words:
                _read_line(words, origin, services)
        except ValueError as e:
            faults.append(Diagnostic(origin, str(e)))
    if faults:
        raise ParseError(tuple(faults))
    return IpvsTable(tuple(services.values()))


def _read_line(
    words: list[str], origin: Origin, services: dict[tuple[Protocol, Family, int, int], VirtualService]
) -> None:
    """Add a line's service or server to ``services``. Raises ValueError with a message for the user."""
    command, *rest = words
    if command not in (*_ADD_SERVICE, *_ADD_SERVER):
        raise ValueError(f"expected -A or -a of ipvsadm-save, found {command!r}")
    options = iter(rest)
    service: tuple[Protocol, Family, int, int] | None = None
    values: dict[str, str] = {}
    for option in options:
        if option in _PROTOCOLS:
            service = (_PROTOCOLS[option], *_read_place(_value(option, options)))
        elif option in ("-f", "--fwmark-service"):
            raise ValueError("a service of a firewall mark, which kube-proxy does not use")
        elif option in _FLAGS[command in _ADD_SERVICE]:
            values[_FLAGS[command in _ADD_SERVICE][option]] = ""
        elif option in _VALUED[command in _ADD_SERVICE]:
            values[_VALUED[command in _ADD_SERVICE][option]] = _value(option, options)
        else:
            raise ValueError(f"option {option!r} is not understood")
    if service is None:
        raise ValueError("expected a service: -t, -u or --sctp-service with an address and a port")
    if command in _ADD_SERVICE:
        if service in services:
            raise ValueError("this service is added twice")
        services[service] = _service(service, values, origin)
        return
    if service not in services:
        raise ValueError("a server of a service that no line before adds")
    if "masquerading" not in values:
        raise ValueError("expected -m: kube-proxy's servers are reached by masquerading only")
    if "server" not in values:
        raise ValueError("expected -r and the server's address and port")
    family, address, port = _read_place(values["server"])
    if family is not service[1]:
        raise ValueError("the server has another address family than its service")
    server = RealServer(address, port, _number(values.get("weight", "1"), _MOST_WEIGHT, "weight"))
    known = services[service]
    services[service] = replace(known, servers=(*known.servers, server))


_FLAGS: Final = {
    True: {"-o": "one_packet", "--ops": "one_packet"},
    False: dict.fromkeys(_MASQUERADING, "masquerading"),
}
_VALUED: Final = {
    True: {
        **dict.fromkeys(("-s", "--scheduler"), "scheduler"),
        **dict.fromkeys(("-p", "--persistent"), "persistent"),
        **dict.fromkeys(("-M", "--netmask"), "netmask"),
        **dict.fromkeys(("-b", "--sched-flags"), "flags"),
    },
    False: {
        **dict.fromkeys(("-r", "--real-server"), "server"),
        **dict.fromkeys(("-w", "--weight"), "weight"),
    },
}


def _service(
    key: tuple[Protocol, Family, int, int], values: dict[str, str], origin: Origin
) -> VirtualService:
    protocol, family, address, port = key
    if values.get("netmask", "") not in ("", "255.255.255.255", "128"):
        raise ValueError("persistence by network (-M), which kube-proxy does not use")
    return VirtualService(
        protocol=protocol,
        address=address,
        port=port,
        scheduler=values.get("scheduler", _DEFAULT_SCHEDULER),
        flags=values.get("flags", ""),
        persistent=_number(values.get("persistent", "0"), _MOST_TIMEOUT, "timeout"),
        one_packet="one_packet" in values,
        family=family,
        origin=origin,
    )


def _value(option: str, options: Iterator[str]) -> str:
    value = next(options, None)
    if value is None:
        raise ValueError(f"option {option} needs a value")
    return value


def _number(text: str, most: int, what: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > most:
        raise ValueError(f"{text!r} is no {what} from 0 to {most}")
    return int(text)


def _read_place(text: str) -> tuple[Family, int, int]:
    host, colon, port = text.rpartition(":")
    six = host.startswith("[") and host.endswith("]")
    try:
        address = ip_address(host[1:-1] if six else host)
    except ValueError:
        raise ValueError(f"{text!r} is not an address and a port; ipvsadm-save needs -n") from None
    if not colon or (address.version == 6) is not six:
        raise ValueError(f"{text!r} is not an address and a port")
    return Family.IP6 if six else Family.IP, int(address), _number(port, 65535, "port")


def _place(family: Family, address: int, port: int) -> str:
    host = format_address(family, address)
    return f"{host}:{port}" if family is Family.IP else f"[{host}]:{port}"


def write_table(table: IpvsTable) -> str:
    """Return the services as ``ipvsadm-save -n`` prints them, which is input for ``ipvsadm-restore``."""
    lines = []
    for service in table.services:
        head = f"{_WRITTEN[service.protocol]} {service.place}"
        options = [f"-A {head} -s {service.scheduler}"]
        if service.persistent:
            options.append(f"-p {service.persistent}")
        if service.one_packet:
            options.append("-o")
        if service.flags:
            options.append(f"-b {service.flags}")
        lines.append(" ".join(options))
        for server in service.servers:
            there = _place(service.family, server.address, server.port)
            lines.append(f"-a {head} -r {there} -m -w {server.weight}")
    return "".join(f"{line}\n" for line in lines)
