"""Tests that one variant of iptables is enough for: what they show has no code of its own for either."""

from __future__ import annotations

from typing import Final

import pytest

from nfparity.snapshot import Variant

__all__ = ["ONE_VARIANT"]

ONE_VARIANT: Final = pytest.mark.parametrize(
    "variant", [Variant.LEGACY, pytest.param(Variant.NFT, marks=pytest.mark.slow)], indirect=True
)
"""The legacy variant; iptables-nft is for ``make test-all``."""
