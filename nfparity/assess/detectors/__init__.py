"""Detectors for every difference of the catalogue that packets can show, by topic.

Their order matters: a changed packet belongs to the first detector that claims it, so the more specific
detectors come first.
"""

from nfparity.assess.detectors.registry import DETECTORS

__all__ = ["DETECTORS"]
