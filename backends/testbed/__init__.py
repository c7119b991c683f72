"""A Node in a private namespace: TAP devices, netlink, sysctls, a sniffer, and running of tools.

Imports ``backends.model`` and ``backends.wire``; ``backends.replay`` and the kernel backends import it.
"""

__all__: list[str] = []
