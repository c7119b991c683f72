"""Virtual services are captured as ipvsadm prints them, also from /proc/net/ip_vs."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.model.ipvs import read_table, write_table
from nfparity.capture.ipvs import saved_form
from nfparity.capture.node import capture_node
from tests.unit.nfparity.capture.test_node import Machine

# As kernel 6.1 prints it; a timeout of 10800 s at 250 Hz is 2700000.
LISTED = """\
IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
TCP  0A601407:0050 rr persistent 2700000 FFFFFFFF
  -> 0AF40105:1F90      Masq    1      0          0
UDP  0A60000A:0035 rr ops
  -> 0AF40104:0035      Masq    1      0          0
SCTP 0A601407:270F sh
TCP  [fd00:0010:0096:0000:0000:0000:0000:000a]:0035 rr persistent 75000 80000000
  -> [fd00:0010:0244:0000:0000:0000:0000:0004]:0035      Masq    0      0          0
"""

SAVED = """\
-A -t 10.96.20.7:80 -s rr -p 10800
-a -t 10.96.20.7:80 -r 10.244.1.5:8080 -m -w 1
-A -u 10.96.0.10:53 -s rr -o
-a -u 10.96.0.10:53 -r 10.244.1.4:53 -m -w 1
-A --sctp-service 10.96.20.7:9999 -s sh
-A -t [fd00:10:96::a]:53 -s rr -p 300
-a -t [fd00:10:96::a]:53 -r [fd00:10:244::4]:53 -m -w 0
"""


def test_the_kernels_list_has_the_form_of_ipvsadm() -> None:
    assert saved_form(LISTED, jiffy=0.004) == SAVED
    assert write_table(read_table(SAVED, name="ipvs-save")) == SAVED


@pytest.mark.parametrize(
    ("service", "mask"),
    [
        ("TCP  0A601407:0050 rr persistent 2700000 FFFFFF00", "255.255.255.0"),
        ("TCP  [fd00:0:0:0:0:0:0:1]:0050 rr persistent 2700000 40000000", "64"),
    ],
)
def test_persistence_of_networks_has_its_mask(service: str, mask: str) -> None:
    assert saved_form(LISTED + service + "\n", jiffy=0.004).endswith(f"-p 10800 -M {mask}\n")


@pytest.mark.parametrize("line", ["FWM  00000001 rr", "  -> 0AF40104:0035 Bypass 1 0 0"])
def test_what_is_not_understood_is_an_error(line: str) -> None:
    with pytest.raises(ValueError, match=line.split()[-1] if "FWM" in line else "Bypass"):
        saved_form(LISTED + line + "\n", jiffy=0.004)


def test_without_ip_vs_there_is_no_file(tmp_path: Path) -> None:
    machine = _machine(tmp_path)
    machine.tool("ipvsadm", "")
    files, _ = machine.captured()
    assert "ipvs-save" not in files
    assert "ipvsadm" not in machine.ran.read_text()


def test_an_empty_list_is_no_file(tmp_path: Path) -> None:
    machine = _machine(tmp_path)
    (machine.proc / "net/ip_vs").write_text("".join(LISTED.splitlines(keepends=True)[:3]))
    assert "ipvs-save" not in machine.captured()[0]


def test_ipvsadm_is_asked_where_it_is_installed(tmp_path: Path) -> None:
    machine = _machine(tmp_path)
    (machine.proc / "net/ip_vs").write_text(LISTED)
    machine.tool("ipvsadm", SAVED)
    assert machine.captured()[0]["ipvs-save"].decode() == SAVED
    assert "ipvsadm --save --numeric\n" in machine.ran.read_text()


def test_the_list_is_read_where_ipvsadm_is_missing(tmp_path: Path) -> None:
    machine = _machine(tmp_path)
    (machine.proc / "net/ip_vs").write_text(LISTED)
    files, notes = capture_node(
        now=0.0, path=str(machine.bin), proc=machine.proc, sys=machine.sys, lib=machine.lib
    )
    assert b"-A -u 10.96.0.10:53 -s rr -o\n" in files["ipvs-save"]
    assert not any("ip_vs" in note for note in notes)


def test_a_list_that_is_not_understood_is_a_note(tmp_path: Path) -> None:
    machine = _machine(tmp_path)
    (machine.proc / "net/ip_vs").write_text(LISTED + "FWM  00000001 rr\n")
    files, notes = machine.captured()
    assert "ipvs-save" not in files
    assert any("is not understood, and ipvsadm is missing" in note for note in notes)


def _machine(folder: Path) -> Machine:
    machine = Machine(folder)
    machine.tool("iptables-nft-save", "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n")
    return machine
