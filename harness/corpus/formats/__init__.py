"""Forms in which flows, packets, outcomes and rules are read and written.

``jsonlines`` is the format of flows, ``packets`` that of one packet, and ``outcomes`` that of outcomes;
``entry`` finds the entry interface of a packet. ``pcap`` and ``capturefile`` read and write captures.
``rulefile`` reads files of rules, and ``ruletext`` describes rules in words. ``headers`` changes header
fields of packets, and ``segments`` adds the MSS option to SYNs.
"""
