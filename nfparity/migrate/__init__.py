"""Migration: the live iptables rules of a node are replaced by their nftables translation.

``planning`` makes a plan and tests it; ``state`` is what the plan replaces and what a rollback restores.
``migration`` runs the ``steps`` in order, each of which may be repeated; ``rollback`` undoes them, and
``recovery`` determines what can be undone after a crash. ``deadman`` is the process that rolls back unless
the user confirms. ``clients`` carries the addresses in lists of ``-m recent`` (``recentfiles``) over to sets
(``elements``), and back. ``verification`` compares the loaded table with the applied one.
``bootunit`` and ``bootload`` load a confirmed translation at boot.

Acts on the network namespace that it runs in, as root. Only the command line and its reports import this
package.
"""

from nfparity.migrate.migration import Migration
from nfparity.migrate.planning.plan import FamilyPlan, MigrationPlan

__all__ = ["FamilyPlan", "Migration", "MigrationPlan"]
