from __future__ import annotations

from tests.unit.translate.helpers.rules import program
from translate.passes.inventory import Inventory
from translate.passes.states import account_origins, buckets, connection_limits, hash_tables, quotas

RULES = (
    "-A INPUT -m nfacct --nfacct-name a",
    "-A INPUT -m nfacct --nfacct-name a -m quota --quota 5 -j DROP",
    "-A INPUT -m limit --limit 1/sec -j DROP",
    "-A INPUT -m connlimit --connlimit-above 3 -j DROP",
    "-A INPUT -m hashlimit --hashlimit-upto 1/sec --hashlimit-name h -j DROP",
)


def test_a_state_is_placed_at_its_first_rule() -> None:
    inventory = Inventory.of(program("filter", *RULES))
    assert {name: origin.text for name, origin in account_origins(inventory).items()} == {"a": RULES[0]}
    assert [origin.text for _, origin in quotas(inventory).values()] == [RULES[1]]
    assert [origin.text for _, origin in buckets(inventory).values()] == [RULES[2]]
    assert [origin.text for _, origin in connection_limits(inventory).values()] == [RULES[3]]
    assert [origin.text for _, origin in hash_tables(inventory).values()] == [RULES[4]]
    assert list(hash_tables(inventory)) == ["h"]
