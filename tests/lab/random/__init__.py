"""Random rulesets: matches, whole rules, and texts with the spellings and mistakes of people."""

__all__: list[str] = []
