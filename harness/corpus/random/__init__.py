"""Random flows around the constants of rules. ``diff --random`` and ``corpus generate`` use it."""

__all__: list[str] = []
