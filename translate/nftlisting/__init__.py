"""nftables rulesets as ``nft`` prints or reads them, sorted so that they load.

:func:`read_listing` is the entry point; :func:`base_chains` says where its tables see packets. This is not a
parser of nft: ``pieces`` splits text at braces, quotes, semicolons and newlines; ``text`` and ``jsonform``
find what each piece declares (``commands``); ``order`` sorts declarations before their uses. libnftables
reads the rules themselves. Imports ``translate.errors`` and ``translate.ir``; backends and harness import
this package.
"""

from __future__ import annotations

from translate.nftlisting.basechains import BaseChain, base_chains, table_names
from translate.nftlisting.commands import Form, GivenSet
from translate.nftlisting.listing import Listing, Script, read_listing

__all__ = ["BaseChain", "Form", "GivenSet", "Listing", "Script", "base_chains", "read_listing", "table_names"]
