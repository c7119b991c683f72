"""Reports as text (``text``), JSON (``jsonreport``), JUnit and SARIF.

``progress`` shows the progress of a replay. Reports only print the results of ``harness.diff.parity``,
``harness.corpus.coverage`` and ``harness.explain.explain``.
"""

__all__: list[str] = []
