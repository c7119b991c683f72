"""A detector for every difference of the catalogue that packets can show, by theme.

Their order matters: a difference belongs to the first detector that claims it, so that what asks for
more comes before what asks for less.
"""

from nfparity.assess.detectors.registry import DETECTORS

__all__ = ["DETECTORS"]
