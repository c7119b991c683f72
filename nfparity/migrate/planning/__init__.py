"""Plans of a migration: made from the live rules, and tested with packets.

``planning`` makes a ``plan`` from the live ``rules`` and the node, without the ``kept_tables``; ``planshape``
is the form of the plan's file. ``repeatable`` refuses rules that must not run twice, and ``trial`` sends
packets through the translation alone and with both rulesets loaded (``overlap``). ``translation`` makes the
nft text, again at apply.
"""
