"""Replays of flows through rules, in a child process with its own network namespace.

Importing this package needs no root and no third-party library; opening a session does. The modules, each
with imports of earlier ones only:

- ``loader``: :class:`~backends.replay.loader.Loader`, the part that each backend supplies
- ``bursts``: replays of many datagrams at once, with the outcomes that are certain
- ``observed``: the outcome of a packet, by the packets that came out after it
- ``runs``: the runs of a flow as a tree, so that a run that repeats an earlier one costs little
- ``replayer``: replays of flows through a TAP node, with the outcome of each packet
- ``sampler``: counts of the destinations of many equal packets
- ``worker``: a child process in its own namespace that dies with its parent
- ``successive``: workers that hold one session after the other
- ``pipe``: flows and results as bytes between the two processes
- ``session``: ``open_session(node, loader)``, which joins all of these to a Session
- ``availability``: ``kernel_lacks(loader)``, a probe in a throwaway namespace

The ``open`` of a backend translates the rules in the harness's process, where it may raise UnsupportedError.
It puts the result as plain data into a picklable ``Loader``, whose ``load(tap)`` runs in the child, and
returns ``open_session(job.node, loader)``. A loader whose connections are not in conntrack overrides
``forget_connections``; one that must not switch on conntrack sets ``reset_fallback = ResetFallback.ALL``. One
whose ``close`` leaves nothing in the process sets ``leaves_nothing``.
"""

__all__: list[str] = []
