"""Choice of the place where the differential test runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from translate.errors import InputError, MachineError
from vm import difftest
from vm.accel import Acceleration
from vm.place import Choice, Place, choose, offers_virtualisation

WORKS = Acceleration(kvm=True, reason="a kernel boots under /dev/kvm")
FAILS = Acceleration(kvm=False, reason="/dev/kvm does not exist")


def _choose(
    requested: Place | None = None,
    *,
    guest_needed: bool = False,
    root: bool = True,
    kvm: Acceleration = FAILS,
) -> Choice:
    return choose(requested, guest_needed=guest_needed, root=root, kvm=lambda: kvm)


@pytest.mark.parametrize("root", [True, False])
@pytest.mark.parametrize("guest_needed", [True, False])
def test_kvm_is_the_first_choice(root: bool, guest_needed: bool) -> None:
    assert _choose(root=root, guest_needed=guest_needed, kvm=WORKS).place is Place.KVM


def test_root_without_kvm_uses_the_running_kernel() -> None:
    choice = _choose()
    assert choice.place is Place.HOST
    assert "/dev/kvm does not exist" in choice.reason


def test_anybody_else_without_kvm_emulates() -> None:
    assert _choose(root=False).place is Place.EMULATED


def test_a_named_kernel_means_a_guest() -> None:
    choice = _choose(guest_needed=True)
    assert choice.place is Place.EMULATED
    assert "a kernel was named" in choice.reason


def test_a_named_kernel_on_the_host_is_a_contradiction() -> None:
    with pytest.raises(InputError, match="KERNEL= always means a guest"):
        _choose(Place.HOST, guest_needed=True)


@pytest.mark.parametrize("place", [Place.HOST, Place.EMULATED])
def test_a_requested_place_is_taken_without_trying_kvm(place: Place) -> None:
    def never() -> Acceleration:
        raise AssertionError("KVM was tried")

    assert choose(place, guest_needed=False, root=True, kvm=never) == Choice(place, "requested")


def test_requested_kvm_that_does_not_work_is_an_error() -> None:
    with pytest.raises(MachineError, match=r"VM=kvm does not work here: /dev/kvm does not exist"):
        _choose(Place.KVM)
    assert _choose(Place.KVM, kvm=WORKS).place is Place.KVM


@pytest.mark.parametrize(("flags", "kvm"), [("fpu vmx sse", True), ("fpu svm", True), ("fpu sse", False)])
def test_a_processor_without_virtualisation_rules_kvm_out(tmp_path: Path, flags: str, kvm: bool) -> None:
    cpuinfo, device = tmp_path / "cpuinfo", tmp_path / "kvm"
    cpuinfo.write_text(f"processor : 0\nflags\t\t: {flags}\n")
    device.touch()
    assert offers_virtualisation(cpuinfo=cpuinfo, device=device).kvm is kvm
    device.unlink()
    assert not offers_virtualisation(cpuinfo=cpuinfo, device=device).kvm


def test_an_unknown_place_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert difftest.main(["--vm", "xen", "--backends", "simulator,nftables"]) == 2
    assert "VM=xen: expected kvm, host, emulated" in capsys.readouterr().err
