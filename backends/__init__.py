"""The backends: the reference simulator and the real kernels, with one protocol.

``model`` has the types that all of them share. ``simulator`` is the reference: it imports ``model`` and
``translate.ir``, never the lowered Program. ``wire``, ``testbed`` and ``replay`` carry packets through a real
kernel for the kernel backends ``iptables``, ``nftables``, ``given_nftables``, ``combined`` and ``tc_ebpf``,
which import neither the simulator nor, except to extend it, each other. ``harness`` drives them all.
"""

__all__: list[str] = []
