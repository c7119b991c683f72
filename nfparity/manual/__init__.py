"""Man pages and completion, generated from the argument parsers.

``commands`` reads the parsers, ``manpage`` writes roff, and ``bash``, ``zsh`` and ``fish`` write completion.
``python -m nfparity.manual FOLDER`` writes all files where a package installs them.
"""

__all__: list[str] = []
