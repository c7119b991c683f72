"""Reports: what was found, for people (``text``), programs (``jsonreport``) and CI (``junit``).

``progress`` shows how far a replay is while it runs. Reports decide nothing; they print what
``harness.diff.parity``, ``harness.corpus.coverage`` and ``harness.explain.explain`` found. The command line
imports them.
"""

__all__: list[str] = []
