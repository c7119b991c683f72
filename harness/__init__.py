"""The differential harness: packets into every backend, and the differences between what comes out.

``corpus`` reads, generates and covers flows; ``diff`` replays and compares; ``explain`` says why a packet
goes where it goes; ``report`` prints; ``files`` reads and writes the user's files. May import ``translate``
and ``backends``; ``nfparity`` and tests import it.
"""

__all__: list[str] = []
