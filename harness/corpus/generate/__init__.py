"""Generation of a corpus from the rules themselves.

``nfparity`` and ``tests`` import ``generate_corpus`` from here, or ``generate_flows`` without its report.

``search`` looks for flows that hit each rule and flows that just miss it. ``rule_paths`` lists the tests on
the paths to a rule, ``candidates`` builds flows that may pass them, and ``addresses`` lists the addresses of
the node. ``goals`` reads from the simulator's trace which rules a flow hits and which it misses; ``members``
makes flows for elements of ipsets. ``further`` makes flows for the services and rules that were found.
``minimal`` keeps the fewest flows that meet all goals; ``generate`` runs all of it, and ``report`` adds which
rules the flows hit.

``alike`` makes the flows of rules that differ from searched rules only in constants; ``selection`` holds the
rules to search for.
"""

from harness.corpus.generate.generate import GeneratedFlows, generate_flows
from harness.corpus.generate.report import GeneratedCorpus, generate_corpus

__all__ = ["GeneratedCorpus", "GeneratedFlows", "generate_corpus", "generate_flows"]
