"""Further flows, made from the flows that a search has found.

``services`` has every client of every service, ``teardown`` ends of connections, ``masked_matches`` packets
that fail one test on their path to a rule, and ``edges`` the ends of ranges.
"""
