"""The tc eBPF backend: the lowered Program as a clsact program with its own conntrack and NAT.

``bcc`` finds and loads BCC and kernel headers; ``facts`` reads the node's facts that the program needs;
``loader`` compiles, fills the maps and attaches. Importing this package needs neither root nor BCC nor
pyroute2; opening the backend does. The namespace's own conntrack stays switched off.
"""

from backends.tc_ebpf.backend import TcEbpfBackend

__all__ = ["TcEbpfBackend"]
