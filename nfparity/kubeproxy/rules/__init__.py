"""Readers of kube-proxy's rules.

``serving`` reads the chains of one service, ``service_dispatch`` the rules that lead to them, ``filters``
refusals, source ranges and health checks, ``common_chains`` the rules that belong to no service, and ``ipvs``
ipsets. They use ``rule_matches`` and fill a ``reading`` with ``draft`` services.
"""
