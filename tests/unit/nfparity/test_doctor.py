from __future__ import annotations

import pytest

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
