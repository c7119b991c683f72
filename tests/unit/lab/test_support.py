from __future__ import annotations

from pathlib import Path

import translate.bpf
import translate.nft
from nfparity.inputs.rules import load_rules
from tests.lab.options import SAMPLES, options
from tests.lab.support import markdown, refused

ROOT = Path(__file__).parents[3]


def test_the_documentation_says_what_the_backends_say() -> None:
    page = (ROOT / "docs/support.md").read_text()
    assert markdown(options([load_rules(str(ROOT / path)) for path in SAMPLES])) in page
    for features in (translate.nft.REFUSED, translate.bpf.REFUSED):
        assert f"\n\n{refused(features)}\n" in page
