"""The words that all backends share: packets, flows, outcomes, nodes, and the Backend protocol.

Imports ``translate.ir`` alone; every backend and everything above imports it.
"""

__all__: list[str] = []
