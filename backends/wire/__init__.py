"""Packets to bytes, and bytes to packets with every checksum checked.

Imports ``backends.model``; replay and testbed import it.
"""

__all__: list[str] = []
