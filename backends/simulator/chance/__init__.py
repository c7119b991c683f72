"""Random decisions of a run, and the branches of their results."""
