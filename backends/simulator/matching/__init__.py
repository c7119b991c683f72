"""The tests of rules as functions of a packet, with the state that they read: sets, lists, assumptions."""
