"""Migration: the live iptables rules of a node are replaced by their nftables translation.

``planning`` makes a ``plan`` from the live ``rules`` and the ``livenode``, without the ``kept_tables``;
``repeatable`` refuses rules that must not run twice, and ``trial`` sends packets through the translation
alone and with both rulesets loaded (``overlap``). ``translation`` makes the nft text, again at apply.
``migration`` runs the ``steps`` in order, each of which may be repeated; ``rollback`` undoes them, and
``recovery`` determines what can be undone after a crash. ``deadman`` is the process that rolls back unless
the user confirms. ``clients`` carries the addresses in lists of ``-m recent`` (``recentfiles``) over to sets
(``elements``), and back. ``verification`` compares the loaded table with the applied one.

``tables`` reads and writes the iptables tables; ``owned`` is the nftables table of nfparity. ``place``,
``record``, ``saved`` and ``journal`` are the files on disk. Acts on the network namespace that it runs in, as
root. Only the command line and its reports import this package.
"""

from nfparity.migrate.migration import Migration
from nfparity.migrate.plan import FamilyPlan, MigrationPlan

__all__ = ["FamilyPlan", "Migration", "MigrationPlan"]
