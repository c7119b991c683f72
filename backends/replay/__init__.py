"""Replays of flows through rules, in a child process with its own network namespace.

Importing this package needs no root and no third-party library; opening a session does. Lowest first:

``loader`` the part that each backend supplies, :class:`~backends.replay.loader.Loader`; ``bursts`` many
    datagrams at once, with the outcomes that are certain; ``replayer`` flows through a TAP node, outcomes
    out; ``sampler`` counts of the destinations of many equal packets; ``worker`` a child process in its own
    namespace that dies with its parent; ``pipe`` flows and results as bytes between the two processes;
    ``session`` ``open_session(node, loader)``: all of these as a Session; ``availability``
    ``kernel_lacks(loader)``: a probe in a throwaway namespace.

So the ``open`` of a backend translates in the harness's process, where it may raise UnsupportedError, puts
the result as plain data into a picklable ``Loader`` whose ``load(tap)`` runs in the child, and returns
``open_session(job.node, loader)``. A loader whose connections are not in conntrack overrides ``forget``; one
that must not switch on conntrack sets ``reset_fallback = ResetFallback.ALL``.
"""

__all__: list[str] = []
