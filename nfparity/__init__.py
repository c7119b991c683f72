"""The program that people run: its commands, what they read, and what they change on a node.

May import ``translate``, ``backends`` and ``harness``; nothing imports it but ``vm`` and tests.

``cli`` is one module per command; ``inputs`` loads what a command is given; ``snapshot`` reads a node and
``capture`` (Python 3.8, standalone) takes it; ``kubeproxy`` recovers services from kube-proxy's rules;
``assess`` finds what changes with kube-proxy's nftables mode; ``migrate`` replaces a node's rules; ``tc``
keeps a tc program in a network namespace; ``persistent_state`` has the locks, records and guard that
``migrate`` and ``tc`` share; ``report`` prints what ``assess`` and ``migrate`` find; ``doctor`` checks this
machine.
"""

__all__: list[str] = []
