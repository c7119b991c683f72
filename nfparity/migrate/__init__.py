"""A node's iptables rules in the kernel, replaced by their nftables translation while packets pass.

``tables`` reads and writes the live iptables tables; ``owned`` is the nftables table that nfparity owns,
``meaning`` what its listing says, ``drift`` how two of these differ. ``plan`` is what is to be done;
``planning`` makes it of the live ``rules`` without those of tables that it is ``leaving``, and of the
``livenode``, refuses what is not ``repeatable``, and has ``trial`` send packets, also with both rulesets in
force at once (``overlap``); ``translation`` makes the nft text, and again when a plan is applied. ``place``,
``record``, ``saved`` and ``journal`` are what is kept on disk, ``deadman`` the process that rolls back unless
somebody says that all is well; ``steps`` are the changes of the kernel, each of which may be done again,
``migration`` puts them in order, ``undoing`` goes back, ``recovery`` finds out to what when not all is left;
``verifying`` looks at what is in force. Acts on the network namespace that it runs in, as root. The command
line and its reports import this package; nobody else does.
"""

from nfparity.migrate.migration import Migration
from nfparity.migrate.plan import FamilyPlan, MigrationPlan

__all__ = ["FamilyPlan", "Migration", "MigrationPlan"]
