"""Fixtures of a migration whose files or tables are damaged: a node with the old rules, and a plan for it.

A module of tests imports them by name.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backends.iptables.backend import IptablesBackend
from backends.replay.worker import Worker
from nfparity.snapshot import Variant
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.migratedamage import Harm
from tests.kernel.helpers.migratenode import Fresh, MakePlan, migrate_node

__all__ = ["node", "plan", "started", "variant"]


@pytest.fixture(scope="module", params=[Variant.LEGACY, pytest.param(Variant.NFT, marks=pytest.mark.slow)])
def variant(request: pytest.FixtureRequest) -> Variant:
    """The variant of iptables; the two differ in the names of tools alone."""
    require(IptablesBackend(f"iptables-{request.param}"))
    return Variant(request.param)


@pytest.fixture(scope="module")
def started(variant: Variant) -> Iterator[Worker]:
    """A worker process on a node of its own."""
    with migrate_node(variant, Harm) as worker:
        yield worker


@pytest.fixture(scope="module")
def plan(started: Worker, variant: Variant) -> str:
    """The plan for the node's rules, as text."""
    text: str = started.ask(MakePlan(variant))
    return text


@pytest.fixture
def node(started: Worker, variant: Variant) -> Worker:
    """The worker, whose node has the old rules again and no traces of a migration."""
    started.ask(Fresh(variant))
    return started
