"""The bench: how loading, changing and carrying packets grow with the number of services.

Every subject gets the same cluster (``tests.lab.kuberules``) on the same node, in a private network
namespace that ends with its process. ``subjects`` says what is measured: iptables itself, its own
translator, kube-proxy's nftables layout (``kubelayout``), this project's translations, and plain
forwarding. ``node`` is the process in the namespace: it loads, changes, and floods with packets, and
takes the time. ``run`` goes through sizes and rounds with the subjects side by side; ``machine`` says
on what; ``throughput`` times the reader, the simulator and the replay;
``figures`` holds what was measured; ``report`` and ``plots`` write it down under ``tests/lab/bench/``.

``soak`` is another thing: minutes of real connections (``tests.lab.traffic``), of which none may fail, while
rules change; ``soakpage`` writes it down.

``python -m tests.lab.bench`` (or ``make bench``) runs it, as root. Nobody imports this package. Nothing here
passes or fails by a time; a test runs the smallest size, to see that everything works.
"""
