"""Tables and chains: under construction, and the checks between them.

``building`` has a table while its lines are read, and ``faults`` collects their faults. ``hidden`` adds the
chains that an input does not show. ``checks`` repeats the checks that the kernel makes on a whole table.
"""
