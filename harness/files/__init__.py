"""The user's files and terminal: every failure to read or write becomes a message.

``errors``, ``output`` and ``wholefiles`` need only Python 3.8 and the standard library, because ``nfparity
capture`` must run alone on a node. Any package above ``backends`` may import this one; it imports only
``translate``.
"""

__all__: list[str] = []
