"""``kubectl nfparity``: snapshots of a cluster's nodes, each taken by a pod on the node.

It is packed into one file for kubectl's plugins (``package``), needs only Python 3.8, and may import
``nfparity.capture`` and ``harness.files``. ``program`` reads the options and assesses the snapshots;
``cluster`` has the steps from the list of nodes to the removal of what was created; ``objects`` has the pod;
``client`` sends requests with kubectl; ``interruption`` runs programs, and lets a signal interrupt only those
that change nothing.

It is in Python and not in a shell's language: the steps read JSON, and a signal must interrupt a wait but
never a request that creates something.
"""
