"""Corpora: flows as JSON Lines, as packet captures, and as folders of cases.

``formats`` reads and writes flows, packets, outcomes, captures and files of rules. ``cases`` reads folders of
regression cases, ``newcase`` writes one, and ``expectations`` compares them with the simulator.
``coverage`` and ``reachability`` list the rules that flows hit, and those that no packet can hit. ``random``
draws flows around a ruleset's constants; ``generate`` makes a flow for every rule.
"""

__all__: list[str] = []
