"""The bench: cost of loading rules, changing them and forwarding packets, by number of services.

``subjects`` lists what is compared: both iptables, iptables' own translator, kube-proxy's nftables layout
(``kubelayout``), nfparity's translations, and plain forwarding. Each gets the same cluster
(``tests.lab.kuberules``) in a network namespace of its own. ``node`` is the process in the namespace, which
takes the times. ``run`` goes through sizes and rounds, and ``throughput`` measures the reader, the simulator
and the replay. ``figures`` holds the measurements, ``targets`` the values to reach, and ``machine`` describes
the machine. ``report`` and ``plots`` write ``tests/lab/bench/RESULTS.md``.

``soak`` sends real connections (``tests.lab.traffic``) for minutes while rules change, and none may fail;
``soakpage`` writes its results. ``fleet`` assesses many snapshots.

``python -m tests.lab.bench`` (or ``make bench``) runs the bench as root. Nobody imports this package. No
result depends on a time; a test runs the smallest size.
"""
