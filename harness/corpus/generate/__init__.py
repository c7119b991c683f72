"""Generation of a corpus from the rules themselves; ``nfparity.cli`` imports ``generate_corpus`` from here.

``search`` looks for flows that hit each rule and flows that just miss it. ``rule_paths`` and ``constraints``
compute the constraints on the fields of such a packet, ``addresses`` lists those of a node, ``values``
picks values that satisfy the constraints, and ``candidates`` builds flows with them, ``counted`` those that
reach the counts of ``-m connbytes``. ``goals`` reads from the simulator's trace which rules a flow hits and
which it misses. Further flows come from ``services`` (every client of every service), ``teardown`` (ends of
connections), ``masked_matches`` (packets that fail one test on their path to a rule), ``edges`` (ends of
ranges) and ``members`` (elements of ipsets). ``minimal`` keeps the fewest flows that meet all goals;
``generate`` runs all of it.

``alike`` finds groups of rules that differ only in constants, ``classes`` chooses those that are searched,
as a ``selection`` of rules, and ``others`` makes flows for the rest by an ``exchange`` of constants.
"""

from harness.corpus.generate.generate import GeneratedCorpus, generate_corpus

__all__ = ["GeneratedCorpus", "generate_corpus"]
