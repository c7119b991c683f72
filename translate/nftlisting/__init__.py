"""nftables rulesets as ``nft`` prints or reads them, sorted so that they load.

:func:`read_listing` is the only entry point. This is not a parser of nft: ``pieces`` splits text at braces,
quotes, semicolons and newlines; ``text`` and ``jsonform`` find what each piece declares (``commands``);
``order`` sorts declarations before their uses. libnftables reads the rules themselves. Imports
``translate.errors`` and ``translate.ir``; backends and harness import this package.
"""

from __future__ import annotations

from translate.nftlisting.commands import Form, GivenSet
from translate.nftlisting.listing import Listing, Script, read_listing

__all__ = ["Form", "GivenSet", "Listing", "Script", "read_listing"]
