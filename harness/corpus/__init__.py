"""Corpora: flows as JSON Lines, as packet captures, and as folders of cases.

``jsonlines`` is the format of a flow, ``packets`` the part of it that is one packet, ``entry``
where a packet enters; ``cases`` a folder of regression cases; ``pcap`` captures in and out;
``randomflows`` draws flows around a ruleset's constants; ``generate`` makes a flow for every rule of one.
The command line and tests import from the modules.
"""

__all__: list[str] = []
