"""Flows of rules that differ from searched rules only in constants.

``groups`` finds groups of such rules, ``classes`` chooses the members that are searched, and ``others`` makes
flows for the other members by an ``exchange`` of constants.
"""
