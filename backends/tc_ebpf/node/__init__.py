"""The node's devices, addresses and routes, as the program's maps need them.

``facts`` collects them from ``listings``, with the ``sources`` of packets. ``direct`` finds the devices
between which the program may forward without the stack. ``sourcechecks`` and ``routingrules`` refuse nodes on
which the program would route differently.
"""
