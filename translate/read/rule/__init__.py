"""One rule: from its words to tests and actions.

``options`` groups the words of a rule by extension, as iptables does with getopt. ``base`` has the options
that need no extension (``-s``, ``-p``, ``-i``). ``reader`` turns both into a :class:`~translate.ir.Rule`;
``shapes`` remembers the layout of a line, so that later lines with this layout are read faster.
"""
