"""Reports of ``assess`` and ``migrate``, as text, JSON, JUnit and SARIF. ``nfparity.cli`` imports them."""

__all__: list[str] = []
