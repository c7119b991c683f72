"""Types shared by all backends: packets, flows, outcomes, nodes, and the Backend protocol.

The package imports only ``translate.ir``; every backend and every later package imports it.
"""

__all__: list[str] = []
