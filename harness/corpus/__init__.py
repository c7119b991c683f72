"""Corpora: flows as JSON Lines, as packet captures, and as folders of cases.

``jsonlines`` is the format of a flow, ``packets`` that of one packet, and ``outcomes`` that of outcomes.
``entry`` finds the entry interface of a packet. ``cases`` reads folders of regression cases, ``newcase``
writes one, and ``expectations`` compares them with the simulator. ``pcap`` reads and writes captures.
``coverage`` and ``reachability`` list the rules that flows hit, and those that no packet can hit. ``random``
draws flows around a ruleset's constants; ``generate`` makes a flow for every rule.
"""

__all__: list[str] = []
