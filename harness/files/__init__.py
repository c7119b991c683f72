"""The user's files and terminal: read and written so that every failure is a message.

``errors``, ``output`` and ``wholefiles`` stay within Python 3.8 and the standard library, because ``nfparity
capture`` carries them to nodes. Anything above ``backends`` may import this package; it imports nothing of
the project but ``translate``.
"""

__all__: list[str] = []
