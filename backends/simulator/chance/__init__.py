"""Random decisions of a run, and every branch that they open."""
