"""Real clients and servers around a real node: namespaces joined by veth pairs, sockets on both sides.

``plan`` lists the hosts and the services; ``topology`` builds them of processes that each hold a network
namespace, and ``host`` runs in these processes. ``subjects`` are the backends that apply the rules;
``servers``, ``clients``, ``streams`` and ``programs`` are the traffic. Nothing here judges a result: tests
and the bench do.
"""
