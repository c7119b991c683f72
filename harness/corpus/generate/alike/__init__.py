"""Flows of rules that differ from searched rules only in constants.

``groups`` finds groups of such rules, and ``classes`` chooses the members that are searched. ``models`` has
the flows of the first of each class, and ``others`` makes flows for the other members by an ``exchange`` of
constants. ``followups`` finds those that only repeat the first packet of another.
"""
