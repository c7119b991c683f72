"""Packets as bytes and back, every checksum checked.

Imports ``backends.model``; replay and testbed import it.
"""

__all__: list[str] = []
