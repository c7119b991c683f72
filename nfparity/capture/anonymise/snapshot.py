"""Anonymisation of all files of a snapshot."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from harness.files.errors import CaptureError
from nfparity.capture.anonymise import jsonfiles
from nfparity.capture.anonymise.ipvstext import anonymise_services
from nfparity.capture.anonymise.mapping import Mapping
from nfparity.capture.anonymise.ruletext import anonymise_rules
from nfparity.capture.anonymise.settext import anonymise_sets
from nfparity.capture.files import RULE_FILES

__all__ = ["anonymise"]

_TEXTS: dict[str, Callable[[str, Mapping], str]] = {
    **dict.fromkeys(RULE_FILES, anonymise_rules),
    "ipset-save": anonymise_sets,
    "ipvs-save": anonymise_services,
}
_JSON: dict[str, Callable[[Any, Mapping], Any]] = {
    # Interfaces come first: a word in nft.json is recognised as an interface only by its name.
    "addr.json": jsonfiles.anonymise_addresses,
    "route.json": jsonfiles.anonymise_routes,
    "route6.json": jsonfiles.anonymise_routes,
    "rule.json": jsonfiles.anonymise_rules_of_routing,
    "rule6.json": jsonfiles.anonymise_rules_of_routing,
    "sysctl.json": jsonfiles.anonymise_sysctls,
    "meta.json": jsonfiles.anonymise_meta,
    "objects.json": jsonfiles.anonymise_objects,
    "nft.json": jsonfiles.anonymise_nft,
}


def anonymise(files: dict[str, bytes], key: bytes) -> tuple[dict[str, bytes], Mapping]:
    """Return the anonymised files, and the mapping.

    ``key`` should be random; discard it and the mapping afterwards. Raises CaptureError for contents that
    cannot be anonymised with the same effect on packets; these are never left unchanged.
    """
    mapping = Mapping(key)
    _pass(files, mapping)
    mapping.learnt()
    made = _pass(files, mapping)
    if "meta.json" not in made:
        made["meta.json"] = b'{"anonymised": true}\n'
    return made, mapping


def _pass(files: dict[str, bytes], mapping: Mapping) -> dict[str, bytes]:
    made: dict[str, bytes] = {}
    for name, on_json in _JSON.items():
        if name not in files:
            continue
        try:
            data = on_json(json.loads(files[name]), mapping)
        except RecursionError:
            raise CaptureError(f"{name}: lists and objects are nested too deeply") from None
        except (ValueError, TypeError, AttributeError, KeyError) as e:
            raise CaptureError(f"{name}: not in the form that ip, nft or capture write: {e}") from e
        made[name] = (json.dumps(data) + "\n").encode("utf-8", "surrogateescape")
    for name, on_text in _TEXTS.items():
        if name in files:
            try:
                text = on_text(files[name].decode("utf-8", "surrogateescape"), mapping)
            except CaptureError as e:
                raise CaptureError(f"{name}: {e}") from e
            made[name] = text.encode("utf-8", "surrogateescape")
    return made
