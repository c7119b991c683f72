"""Flows through rules in a child process with a network namespace of its own.

Importing this package needs no root and no third-party library; opening a session does. Lowest first:

``loader``
    the one thing that a backend must supply, :class:`~backends.replay.loader.Loader`;
``bursts``
    datagrams, many at once, and what can be said of them for certain;
``replayer``
    flows through a TAP node, outcomes out;
``sampler``
    one packet again and again, and where it goes;
``worker``
    a child process in its own namespace that dies with its parent;
``pipe``
    flows and results as bytes between the two processes;
``session``
    ``open_session(node, loader)``: all of it, behind the Session protocol;
``availability``
    ``kernel_lacks(loader)``: a probe that tries in a throwaway namespace.

A backend is therefore: translate in ``open``, in the harness's process, where UnsupportedError
belongs; put the result as plain data into a picklable ``Loader`` whose ``load(tap)`` runs in the
child; ``return open_session(job.node, loader)``. A loader whose connections do not live in
conntrack overrides ``forget``; one that must not have conntrack switched on sets
``reset_fallback = ResetFallback.ALL``.
"""

__all__: list[str] = []
