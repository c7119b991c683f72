"""The nfparity program: its commands, their inputs, and the changes that they make on a node.

May import ``translate``, ``backends`` and ``harness``; only ``deploy``, ``vm`` and tests import it.

``cli`` has one module per command, and ``inputs`` loads their inputs. ``capture`` (Python 3.8, standalone)
captures a snapshot of a node, and ``snapshot`` reads it. ``kubeproxy`` recovers services from kube-proxy's
rules, and generates the rules of its nftables mode. ``assess`` compares these modes; ``migrate`` replaces a
node's rules; ``tc`` keeps a tc program in a network namespace. ``persistent_state`` contains the locks,
records and guard of ``migrate`` and ``tc``; ``report`` prints the results of ``assess`` and ``migrate``;
``doctor`` checks this machine, and ``manual`` writes man pages and completion. ``api`` and ``pytest_plugin``
are for tests in Python.
"""

__all__: list[str] = []
