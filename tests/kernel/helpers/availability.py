"""Skipping of tests whose backend cannot run on this machine."""

from __future__ import annotations

import pytest

from backends.model.contract import Backend

__all__ = ["require"]


def require(*backends: Backend) -> None:
    """Skip the test, or all tests of a fixture, unless each backend can run; the reason is the backend's."""
    for backend in backends:
        availability = backend.probe()
        if not availability.ok:
            pytest.skip(f"{backend.name}: {availability.reason}")
