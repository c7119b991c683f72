"""The tc eBPF backend: the lowered Program as a clsact program with its own conntrack and NAT.

``programs`` compiles a program and loads it; ``node`` reads the facts of the node that its maps need;
``dataplane`` fills the maps and attaches the program by ``filters``, and ``loader`` does so for a session.
Importing this package needs neither root nor BCC; opening the backend does. The namespace's own
conntrack stays switched off.
"""

from backends.tc_ebpf.backend import TcEbpfBackend

__all__ = ["TcEbpfBackend"]
