"""Ways to install nfparity and to run it elsewhere, and the programs that build them.

``deb`` is the Debian package; ``capture.yaml``, ``kustomization.yaml`` and ``helm`` capture all nodes of a
cluster; ``kubectl`` has the plugin's manifests; ``gitlab`` is a CI job. The modules serve a checkout and are
not installed.
"""
