"""nftables rulesets as ``nft`` prints or takes them, put into an order in which they load.

:func:`read_listing` is the only door. This is no parser of nft: ``pieces`` takes text apart at braces,
quotes, semicolons and newlines; ``text`` and ``jsonform`` say what each piece declares (``commands``);
``order`` puts them so that nothing names what is not there yet. libnftables reads the rules themselves.
Imports ``translate.errors`` and ``translate.ir``; backends and harness import this package.
"""

from __future__ import annotations

from translate.nftlisting.commands import Form, GivenSet
from translate.nftlisting.listing import Listing, Script, read_listing

__all__ = ["Form", "GivenSet", "Listing", "Script", "read_listing"]
