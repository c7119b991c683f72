"""Many snapshots at once: each assessed by itself, on several processors or machines, and told as one.

``places`` finds the snapshots; ``order`` is what is asked of each of them; ``node`` is what is kept of one;
``gathering`` hands them to a pool, tries again what a machine failed, and is told of each as it comes;
``grouping`` puts nodes with the same findings together. ``pool`` is what a pool has to do, and ``daskpool``
does it with dask.distributed; nothing else imports that. ``nfparity.cli`` and ``harness.report`` may import
from here; nothing else does.
"""

__all__: list[str] = []
