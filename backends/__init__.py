"""The backends: the reference simulator and the real kernels, with one protocol.

``model`` has the types that all of them share. ``simulator`` is the reference: it imports ``model`` and
``translate.ir``, never the lowered Program. ``wire``, ``testbed`` and ``replay`` carry packets through a real
kernel for the kernel backends ``iptables``, ``nftables``, ``given_nftables``, ``combined`` and ``tc_ebpf``.
No kernel backend imports the simulator, and none imports another backend unless it extends it. ``harness``
runs all of them.
"""

__all__: list[str] = []
