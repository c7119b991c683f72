"""SARIF 2.1.0 logs (OASIS Standard, 27 March 2020): results on the lines of the rules.

For code scanning views and editors. Lines are those of the file that was read; for a snapshot in an archive,
the path is that of the file inside the archive.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import quote

from translate.ir import Origin

__all__ = ["sarif_locations", "sarif_log"]

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_log(
    rules: Sequence[dict[str, object]],
    results: Iterable[dict[str, object]],
    *,
    version: str,
    untested: Sequence[str] = (),
) -> str:
    """Return a log of one run. ``version`` is the version of nfparity, ``untested`` lists untested parts.

    ``rules`` are reporting descriptors; each result refers to one of them by its id.
    """
    order = {str(rule["id"]): index for index, rule in enumerate(rules)}
    notifications = [{"level": "error", "message": {"text": f"not tested: {reason}"}} for reason in untested]
    invocation: dict[str, object] = {"executionSuccessful": not untested}
    if notifications:
        invocation["toolExecutionNotifications"] = notifications
    run = {
        "tool": {"driver": {"name": "nfparity", "semanticVersion": version, "rules": list(rules)}},
        "invocations": [invocation],
        "columnKind": "utf16CodeUnits",
        "results": [{**result, "ruleIndex": order[str(result["ruleId"])]} for result in results],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def sarif_locations(origins: Iterable[Origin], files: Iterable[str] = ()) -> list[dict[str, object]]:
    """Return the locations of a result: its lines, or whole ``files`` if it has no lines."""
    locations: list[dict[str, object]] = [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": _uri(origin.file)},
                "region": {"startLine": max(origin.line, 1), "snippet": {"text": origin.text}},
            }
        }
        for origin in origins
    ]
    whole: list[dict[str, object]] = [
        {"physicalLocation": {"artifactLocation": {"uri": _uri(file)}}} for file in dict.fromkeys(files)
    ]
    return locations or whole


def _uri(path: str) -> str:
    return quote(path, safe="/:@!$&'()*+,;=~-._", errors="surrogateescape")
