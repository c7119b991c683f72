"""nft's bytecode for a translation, compared with the meaning of the rules.

nft does not load a text literally. It merges matches on neighbouring bytes, adds matches on implied
protocols, and leaves out matches that it considers redundant. Whether the resulting instructions still have
the meaning of the text depends on the version of nft. So :func:`check` lets nft print the instructions and
runs them on packets drawn around the constants of each statement. It compares their effect with the
statement's meaning.

``instructions`` and ``effects`` are the instructions, which ``listing`` reads from the output of nft, and
``machine`` runs as ``nft_do_chain`` does. ``meaning`` evaluates statements of a Program,
and shares nothing with the emitter but the vocabulary. ``drawing`` draws the packets, which are
:class:`~tests.lab.bytecode.samples.Sample`.
"""

from tests.lab.bytecode.check import Checked, Difference, check
from tests.lab.bytecode.compiler import Nft, NftError

__all__ = ["Checked", "Difference", "Nft", "NftError", "check"]
