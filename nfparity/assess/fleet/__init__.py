"""Assessment of many snapshots, on several processors or machines, with one summary.

``paths`` finds the snapshots. ``job`` assesses one snapshot in a worker, and ``node`` is its summary.
``gathering`` hands snapshots to a pool, retries failures of the machine, and reports progress.
``grouping`` groups nodes with the same findings. ``pool`` is the protocol of a pool; ``daskpool`` implements
it with dask.distributed, which no other module imports. Only ``nfparity.cli`` and ``nfparity.report`` import
this package.
"""

__all__: list[str] = []
