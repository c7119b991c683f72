"""Real kernels: a private network namespace on TAP devices, and one module per way to load rules.

Backends here (``xtables``, ``nftables``, ``nftgiven``, ``tc_ebpf``) import neither the simulator nor each
other. Importing this package needs no root and no third-party library; opening a backend does.

How the pieces stand on each other, lowest first:

``checksums``, ``frames``
    packets as bytes and back, every checksum checked;
``netlink``, ``sysctls``, ``command``
    the few requests to the kernel, its settings, and running of tools;
``sniffer``
    what leaves, with its mark, many packets in one call;
``tapnode``
    a Node in the current namespace: sends packets, sees what comes out, with its mark;
``quiet``
    keeps the stack's own resets away from conntrack;
``loader``
    the one thing that a backend must supply, :class:`~backends.kernel.loader.Loader`;
``datagrams``
    flows of one UDP packet as plain numbers, without objects, and as bytes;
``bursts``
    datagrams, many at once, and what can be said of them for certain;
``replayer``
    flows through a TAP node, outcomes out;
``sampler``
    one packet again and again, and where it goes;
``worker``
    a child process in its own namespace that dies with its parent;
``wire``
    flows and results as bytes between the two processes;
``session``
    ``open_session(node, loader)``: all of it, behind the Session protocol;
``availability``
    ``kernel_lacks(loader)``: a probe that tries in a throwaway namespace.

A backend is therefore: translate in ``open``, in the harness's process, where UnsupportedError
belongs; put the result as plain data into a picklable ``Loader`` whose ``load(tap)`` runs in the
child; ``return open_session(job.node, loader)``. A loader whose connections do not live in
conntrack overrides ``forget``; one that must not have conntrack switched on sets
``quiet = Quiet.ALL``.
"""

__all__: list[str] = []
