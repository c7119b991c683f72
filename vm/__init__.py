"""Boot a distribution kernel under QEMU and run a command inside it as root.

Run it with ``python -m vm --kernel 6.1 -- COMMAND``; ``make diff-test`` does the same. The guest's file
system is the machine's own, read-only (virtme-ng over 9p), so the guest has every tool and the virtual
environment that the machine has, and a different kernel. No root privileges are needed on the host.

``apt`` downloads Debian's packages, ``kernel`` unpacks a kernel under ``build/``, ``accel`` tests whether KVM
works, and ``guest`` starts the guest and returns its output and exit status. ``guest.sh`` runs inside the
guest.

Uses only the standard library and ``translate.errors``. Only its own modules and tests import this package.
"""

from __future__ import annotations

__all__: list[str] = []
