"""The differential harness: sends packets into every backend and compares the outcomes.

``corpus`` reads and generates flows and measures their coverage; ``diff`` replays and compares; ``explain``
explains the path of a packet; ``report`` prints; ``files`` reads and writes the user's files. May import
``translate`` and ``backends``; ``nfparity`` and tests import it.
"""

__all__: list[str] = []
