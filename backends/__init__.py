"""Whatever carries a packet: the reference simulator and the real kernels, behind one protocol.

``packet``, ``flow``, ``outcome``, ``node``, ``exchange`` and ``contract`` are the words that all
backends share; they import ``translate.ir`` alone. ``simulator`` imports these words and
``translate.ir``, never the lowered Program. ``kernel`` holds one module or folder per real
backend; they import neither the simulator nor each other. ``harness`` drives them all.
"""
