"""A node's iptables rules in the kernel, replaced by their nftables translation while packets pass.

``tables`` reads and writes the live iptables tables, ``owned`` the nftables table that nfparity owns, and
``meaning`` what its listing says; ``drift`` compares two of these. ``plan`` is what is to be done,
``planning`` makes it, with packets: ``trial`` sends them, ``overlap`` has both rulesets in force at once.
``place``, ``record`` and ``journal`` are what is kept on disk, ``deadman`` the process that rolls back
unless somebody says that all is well; ``steps`` are the changes of the kernel, each of which may be done
again, and ``migration`` puts them in order. Acts on the network namespace that it runs in, as root. The
command line imports this package; nobody else does.
"""

from harness.migrate.migration import Migration
from harness.migrate.plan import FamilyPlan, MigrationPlan

__all__ = ["FamilyPlan", "Migration", "MigrationPlan"]
