"""Everything that carries packets: the reference simulator and the real kernels, behind one protocol.

``model`` has the words that all of them share. ``simulator`` is the reference: it imports ``model`` and
``translate.ir``, never the lowered Program. ``wire``, ``testbed`` and ``replay`` carry packets through a real
kernel for the kernel backends ``iptables``, ``nftables``, ``given_nftables``, ``combined`` and ``tc_ebpf``,
which do not import the simulator, and of each other only what they extend. ``harness`` drives them all.
"""

__all__: list[str] = []
