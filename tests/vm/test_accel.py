"""The KVM probe against programs that behave as QEMU does on machines of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from vm.accel import find_acceleration, probe_kvm

PANIC = "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)"


def _program(folder: Path, body: str) -> str:
    path = folder / "qemu"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_a_kernel_that_misses_its_root_has_booted(tmp_path: Path) -> None:
    answer = probe_kvm(tmp_path / "image", qemu=_program(tmp_path, f"echo '[    1.7] {PANIC}'"))
    assert answer.kvm


def test_a_hang_is_not_working(tmp_path: Path) -> None:
    answer = probe_kvm(tmp_path / "image", qemu=_program(tmp_path, "exec sleep 60"), limit=0.3)
    assert not answer.kvm
    assert "hangs" in answer.reason


def test_a_failed_assertion_is_not_working_and_is_quoted(tmp_path: Path) -> None:
    program = _program(tmp_path, "echo 'kvm_buf_set_msrs: Assertion failed.' >&2; kill -ABRT $$")
    answer = probe_kvm(tmp_path / "image", qemu=program)
    assert not answer.kvm
    assert "kvm_buf_set_msrs: Assertion failed." in answer.reason


def test_success_without_a_boot_is_not_working(tmp_path: Path) -> None:
    assert not probe_kvm(tmp_path / "image", qemu=_program(tmp_path, "exit 0")).kvm


def test_no_qemu_is_not_working(tmp_path: Path) -> None:
    assert not probe_kvm(tmp_path / "image", qemu=str(tmp_path / "absent")).kvm


def test_no_device_is_not_asked(tmp_path: Path) -> None:
    program = _program(tmp_path, f"echo '{PANIC}'")
    answer = find_acceleration(tmp_path / "image", build=tmp_path, device=tmp_path / "kvm", qemu=program)
    assert not answer.kvm
    assert "does not exist" in answer.reason


@pytest.mark.parametrize(
    "memory", [None, "{", "{}", "[]", '{"key": "another boot", "kvm": false, "reason": ""}']
)
def test_the_answer_is_remembered_and_a_broken_memory_is_not(tmp_path: Path, memory: str | None) -> None:
    device = tmp_path / "kvm"
    device.touch()
    (tmp_path / "vm").mkdir()
    if memory is not None:
        (tmp_path / "vm" / "kvm.json").write_text(memory)
    program = _program(tmp_path, f"echo asked >>{tmp_path}/asked; echo '{PANIC}'")
    for _ in range(2):
        assert find_acceleration(tmp_path / "image", build=tmp_path, device=device, qemu=program).kvm
    assert (tmp_path / "asked").read_text() == "asked\n"
