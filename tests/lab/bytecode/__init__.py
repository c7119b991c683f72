"""nft's bytecode for a translation, compared with the meaning of the rules.

nft does not load what it reads: it merges matches on neighbouring bytes, adds matches on protocols where one
is implied, and leaves them out where it takes another for the same. Whether the resulting instructions
still have the meaning of the text depends on the version. So :func:`check` has nft print them, runs them on
packets drawn around the constants of each statement, and compares their effect with the statement's meaning.

``instructions`` and ``listing`` read what nft prints; ``machine`` runs it as ``nft_do_chain`` does;
``meaning`` evaluates statements of a Program, and shares nothing with the emitter but the vocabulary;
``drawing`` draws the packets, which are :class:`~tests.lab.bytecode.samples.Sample`.
"""

from tests.lab.bytecode.check import Checked, Difference, check
from tests.lab.bytecode.compiler import Nft, NftError

__all__ = ["Checked", "Difference", "Nft", "NftError", "check"]
