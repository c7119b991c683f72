"""Words, numbers, names, addresses and ports as iptables spells them.

Each parser follows the function of iptables that its docstring names, and raises :class:`OptionError` for
text that this function rejects. No name is looked up on the machine.
"""
