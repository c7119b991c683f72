"""The path of a packet through the node's hooks, and the answers that the node makes."""
