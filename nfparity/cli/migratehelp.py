"""Help texts of the actions of ``nfparity migrate``: examples, effects and exit statuses."""

from __future__ import annotations

__all__ = ["APPLY", "EXAMPLE", "LOAD", "PLAN", "ROLLBACK", "VERIFY"]

EXAMPLE = """\
example:
  nfparity migrate plan -o node.plan        # shows the changes, and tests them with packets
  nfparity migrate apply node.plan          # rolls back by itself unless confirmed within 120 s
  nfparity migrate verify --confirm
  nfparity migrate rollback                 # the rules from before, with their counters

Acts on the network namespace that it is run in. The result is static: it does not follow later changes, of
Services for example; plan says which alternatives do. First stop the program that writes the rules
(kube-proxy): it would write them again next to the translation. The old rules are kept under
/var/lib/nfparity/migrate.
"""

PLAN = """\
example:
  nfparity migrate plan -o node.plan
  nfparity migrate plan --family ip --variant legacy -o node.plan
  nfparity migrate plan --keep-table filter --keep-table raw -o node.plan
  nfparity migrate plan -o node.plan --format html >plan.html    # a page for the change meeting

Nothing is changed. Packets made from the rules are sent through copies of this node in private namespaces:
with the translation alone, and with both rulesets loaded, as during apply. Exit status 1 if a packet is
treated differently; then no plan is written. Rules that cannot be translated, or must not run twice for
one packet, are refused with their lines (2); --keep-table TABLE leaves the table that they are in as it is.
"""

APPLY = """\
example:
  nfparity migrate apply node.plan
  nfparity migrate apply node.plan --confirm-within 600

Refuses to run if the rules or their ipsets have changed since the plan was made, or if the plan was edited
(exit status 2). The plan's rules are translated again, and the result is loaded. Disk space for the rollback
is reserved before the first change; without it nothing is changed (3). A background process rolls back
unless nfparity migrate verify --confirm is run in time, and at once if this command is killed.
"""

VERIFY = """\
example:
  nfparity migrate verify --confirm
  nfparity migrate verify --live --format json    # for monitoring: changes nothing, takes a moment

Compares the loaded nftables table with what apply loaded: chains by their rules, sets and maps by their
elements, in any order. Counters, handles, comments and elements that packets added are ignored. Then sends
the plan's packets through a copy of this node, unless --live is given. Exit status 0: nothing differs;
1: there are differences, which are listed; 3: nothing is applied, or the table is gone.
"""

LOAD = """\
example:
  nfparity migrate load

The systemd unit of verify --confirm --at-boot runs this before the network is configured. It loads the
nft text stored by --at-boot, of all families in one transaction, if the plan is confirmed and all digests
are right. Otherwise nothing is loaded and the exit status is 3 (2 for an edited plan): if the plan was not
confirmed before the reboot, if it was rolled back, if a file is missing or changed, or if another program has
loaded other rules into the replaced tables than before the migration. Tables into which it has loaded the
same rules (netfilter-persistent, iptables.service) are emptied. Exit status 0, too, if the translation is
loaded already.
"""

ROLLBACK = """\
example:
  nfparity migrate rollback

May be run again after any interruption. Needs no disk space. If the saved state is damaged, it restores from
the intact files, or prints the commands that restore the rules from a copy (exit status 3). After a reboot
without the unit of verify --at-boot the kernel has forgotten both rulesets: empty tables get the rules from
before the plan was applied, and other tables are left as they are. The unit is removed.
"""
