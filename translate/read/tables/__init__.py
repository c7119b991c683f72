"""Tables and chains: under construction, and the checks between them.

``building`` holds a table while its lines are read and ``faults`` collects what is wrong with them.
``hidden`` adds the chains that an input does not show. ``checks`` repeats the checks that the kernel makes
on a whole table.
"""
