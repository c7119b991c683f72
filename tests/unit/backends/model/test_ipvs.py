"""Virtual services are read and written as ipvsadm does; what is not understood is an error with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.model.ipvs import IpvsTable, RealServer, read_table, write_table
from translate.errors import ParseError
from translate.ir import Family, Protocol, parse_address

SAVED = Path(__file__).resolve().parents[3] / "corpus/rulesets/kube-ipvs/ipvs-save"

SIX = """\
-A -t [fd00:10:96::a]:53 -s sh -b sh-port
-a -t [fd00:10:96::a]:53 -r [fd00:10:244::4]:5353 -m -w 3
-A -u [fd00:10:96::a]:53 -s rr -o
"""


def test_what_ipvsadm_prints_is_read_and_written_again() -> None:
    text = SAVED.read_text()
    assert write_table(read_table(text, name="ipvs-save")) == text


def test_services_of_ipv6_have_their_options_and_servers() -> None:
    table = read_table(SIX, name="ipvs-save")
    first, second = table.services
    assert first.family is Family.IP6
    assert (first.protocol, first.port, first.scheduler, first.flags) == (Protocol.TCP, 53, "sh", "sh-port")
    assert first.servers == (RealServer(parse_address(Family.IP6, "fd00:10:244::4"), 5353, 3),)
    assert second.one_packet
    assert not second.servers
    assert write_table(table) == SIX


def test_services_are_divided_by_family() -> None:
    table = read_table(SAVED.read_text() + SIX, name="ipvs-save")
    assert len(table.of(Family.IP6).services) == 2
    assert len(table.of(Family.IP).services) == len(table.services) - 2


def test_long_options_mean_the_same() -> None:
    short = "-A -t 10.0.0.1:80 -s rr -p 300\n-a -t 10.0.0.1:80 -r 10.1.0.1:8080 -m -w 2\n"
    long = (
        "--add-service --tcp-service 10.0.0.1:80 --scheduler rr --persistent 300\n"
        "--add-server --tcp-service 10.0.0.1:80 --real-server 10.1.0.1:8080 --masquerading --weight 2\n"
    )
    assert write_table(read_table(long, name="x")) == write_table(read_table(short, name="x")) == short


def test_an_empty_table_is_read() -> None:
    assert read_table(b"\n", name="x") == IpvsTable(())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("-A -f 1 -s rr", "firewall mark"),
        ("-A -t 10.0.0.1:80 -s rr -M 255.255.255.0", "persistence by network"),
        ("-A -t 10.0.0.1:80 -s", "needs a value"),
        ("-A -t 10.0.0.1:80 --pe sip", "'--pe' is not understood"),
        ("-A -s rr", "expected a service"),
        ("-A -t kube-dns:domain -s rr", "needs -n"),
        ("-A -t 10.0.0.1:99999 -s rr", "no port"),
        ("-A -t ::1:80 -s rr", "not an address and a port"),
        ("-A -t 10.0.0.9:80 -p one", "no timeout"),
        ("-A -t 10.0.0.2:80 -s rr", "added twice"),
        ("-a -t 10.0.0.3:80 -r 10.1.0.1:80 -m", "no line before adds"),
        ("-a -t 10.0.0.2:80 -r 10.1.0.1:80 -g", "'-g' is not understood"),
        ("-a -t 10.0.0.2:80 -r 10.1.0.1:80", "expected -m"),
        ("-a -t 10.0.0.2:80 -m", "expected -r"),
        ("-a -t 10.0.0.2:80 -r [fd00::1]:80 -m", "another address family"),
        ("-E -t 10.0.0.2:80", "expected -A or -a"),
        ('-A -t "10.0.0.2', "No closing quotation"),
    ],
)
def test_what_is_not_understood_is_an_error_with_its_line(line: str, said: str) -> None:
    with pytest.raises(ParseError, match=said) as caught:
        read_table(f"-A -t 10.0.0.2:80 -s rr\n{line}\n", name="ipvs-save")
    (fault,) = caught.value.diagnostics
    assert fault.origin.place == "ipvs-save:2"
