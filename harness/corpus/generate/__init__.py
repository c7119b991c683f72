"""Corpora made from the rules themselves; ``nfparity.cli`` imports ``generate_corpus`` from here.

``wants`` and ``ways`` say what a packet must be like to come to a rule, ``places`` what addresses a
node knows, ``values`` what of these a packet can carry, ``candidates`` makes flows of them; ``goals``
reads from the simulator's trace what a flow really shows, ``search`` joins them; ``services`` adds
every client of every service, ``strays`` what differs on the way to a rule, ``edges`` the ends of
ranges and ``members`` the elements of ipsets, ``minimal`` keeps the fewest flows that show everything,
``generate`` puts it together.
"""

from harness.corpus.generate.generate import GeneratedCorpus, generate_corpus

__all__ = ["GeneratedCorpus", "generate_corpus"]
