from __future__ import annotations

import importlib.metadata

import pytest

import nfparity.doctor
from backends.tc_ebpf.programs.bcc import headers_package
from harness.diff.backends import BACKENDS, backend, parse_backends
from nfparity.doctor import Check, diagnose, packages_to_install
from translate.errors import InputError


def test_every_backend_is_looked_at() -> None:
    checks = diagnose()
    assert {c.name for c in checks if c.kind == "backend"} == set(BACKENDS)
    assert next(c for c in checks if c.name == "simulator").ok
    assert all(c.detail for c in checks)


def test_what_to_install() -> None:
    missing = Check(kind="program", name="nft", ok=False, detail="missing", package="nftables")
    for_tests = Check(kind="test", name="curl", ok=False, detail="missing", package="curl")
    there = Check(kind="program", name="ip", ok=True, detail="6.1", package="iproute2")
    nothing = Check(kind="machine", name="root", ok=False, detail="no")
    checks = (missing, there, nothing, missing, for_tests)
    assert packages_to_install(checks) == ("nftables",)
    assert packages_to_install(checks, tests=True) == ("curl",)


def test_names() -> None:
    assert parse_backends("nftables, simulator,nftables") == ("nftables", "simulator")
    for wrong in ("", ",", "nftables,what"):
        with pytest.raises(InputError):
            parse_backends(wrong)
    with pytest.raises(InputError):
        backend("what")
    assert [backend(n).name for n in BACKENDS] == list(BACKENDS)


def _lacking(monkeypatch: pytest.MonkeyPatch, *, checkout: bool, environment: bool) -> dict[str, Check]:
    """The checks of a machine without kernel headers and without the libraries of pyproject.toml."""

    def nothing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(nfparity.doctor, "_CHECKOUT", checkout)
    monkeypatch.setattr(nfparity.doctor, "_OWN_ENVIRONMENT", environment)
    monkeypatch.setattr(nfparity.doctor, "find_headers", lambda: None)
    monkeypatch.setattr(importlib.metadata, "version", nothing)
    monkeypatch.setattr(nfparity.doctor, "_backends", lambda: ())
    return {check.name: check for check in diagnose()}


def test_an_installed_package_is_told_to_use_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = _lacking(monkeypatch, checkout=False, environment=False)
    assert "sudo apt install python3-deepdiff" in checks["deepdiff"].detail
    assert "sudo apt install python3-distributed" in checks["distributed"].detail
    wanted = packages_to_install(tuple(checks.values()))
    assert {"python3-deepdiff", "python3-scapy", headers_package()} <= set(wanted)
    assert "python3-distributed" not in wanted
    assert not [check for check in checks.values() if check.kind == "test" or "make" in check.detail]


def test_a_checkout_is_told_to_use_make_and_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = _lacking(monkeypatch, checkout=True, environment=True)
    assert "make setup" in checks["kernel headers"].detail
    assert checks["kernel headers"].package is None
    assert "pip install deepdiff" in checks["deepdiff"].detail
    assert checks["deepdiff"].package is None
    assert "curl" in checks
