"""Boot a distribution kernel under QEMU and run a command inside it as root.

``python -m vm --kernel 6.1 -- COMMAND`` is the door; ``make diff-test`` uses it. The guest's file system is
the machine's own, read-only (virtme-ng over 9p), so the guest has every tool and the virtual environment that
the machine has, and a different kernel. The host needs no root for any of it.

``apt`` knows where Debian's packages come from, ``kernel`` unpacks one under ``build/``, ``accel`` finds out
whether KVM works, ``guest`` starts the machine and brings back output and exit status; ``guest.sh`` is what
runs inside.

Standard library and ``translate.errors`` only; nothing imports this package but its own ``__main__`` and its
tests.
"""

from __future__ import annotations

__all__: list[str] = []
