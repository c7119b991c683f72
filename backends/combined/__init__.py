"""Rules of two loaders in one namespace, as on a node that has both."""

__all__: list[str] = []
