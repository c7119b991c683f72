"""Tools for tests and benches: clusters, random rules, mutation, traffic, scale.

May import everything; no product module imports it, and no wheel ships it.
"""

__all__: list[str] = []
