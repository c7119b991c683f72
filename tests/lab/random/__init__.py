"""Random rulesets: matches, whole rules, and texts as people write and misspell them."""

__all__: list[str] = []
