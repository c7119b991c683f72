"""Real clients and servers around a real node: namespaces joined by veth pairs, sockets on both sides.

``plan`` says who is where and which services there are; ``topology`` builds it of processes that each hold a
network namespace, ``host`` is what runs in them; ``subjects`` are the ways to have the rules in force;
``servers``, ``clients``, ``streams`` and ``programs`` are the traffic. Nothing here judges: tests and the
bench do.
"""
