"""The other components of a node."""

from __future__ import annotations

from nfparity.assess.node.components import NativeTables
from translate.ir import Family
from translate.nftlisting import Listing, read_listing


def table(priority: str, family: str = "inet") -> Listing:
    text = f"table {family} t {{\n\tchain c {{ type nat hook postrouting priority {priority}; }}\n}}\n"
    return read_listing(text, name="t")


def test_notes_name_what_is_loaded_and_what_is_not() -> None:
    native = NativeTables(loaded=(table("100"), table("100", "ip6")), left_out=(("ip x", "no such device"),))
    assert [listing.families for listing in native.reaching(Family.IP).loaded] == [("inet",)]
    left_out, loaded = native.notes
    assert left_out.startswith("table ip x cannot be loaded here")
    assert left_out.endswith("no such device")
    assert "loaded in both modes: t, t" in loaded
