"""The path of a packet through the node's hooks, and the node's answers."""
