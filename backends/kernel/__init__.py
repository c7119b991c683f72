"""Real kernels: a private network namespace on TAP devices, and one module per way to load rules.

Backends here import neither the simulator nor each other. Importing this package needs no root
and no third-party library; opening a backend does.
"""
