"""The forms of JUnit XML and SARIF, as far as reports use them."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

COUNTS = {"tests": "testcase", "failures": "testcase/failure", "errors": "testcase/error"}
TIME = re.compile(r"\d+\.\d{3}")


def checked_junit(text: str, *, times: bool = True) -> ElementTree.Element:
    """Assert that a report has the form of ``junit-10.xsd`` (Jenkins' xUnit plugin); return its root."""
    root = ElementTree.fromstring(text)
    assert root.tag == "testsuites"
    timed = {"time"} if times else set()
    counted = {*COUNTS, "skipped"}
    assert set(root.keys()) == {"name", *COUNTS, *timed}
    suites = list(root)
    for name in COUNTS:
        assert int(root.get(name, "")) == sum(int(suite.get(name, "")) for suite in suites)
    for suite in suites:
        assert suite.tag == "testsuite"
        assert set(suite.keys()) == {"name", *counted, *timed}
        for name, path in {**COUNTS, "skipped": "testcase/skipped"}.items():
            assert int(suite.get(name, "")) == len(suite.findall(path)), name
        names = [case.get("name") for case in suite]
        assert len(names) == len(set(names))
        for case in suite:
            assert case.tag == "testcase"
            assert set(case.keys()) == {"name", "classname", *timed}
            assert all(case.get(key) for key in case.keys())  # noqa: SIM118  # an element is no mapping
            assert len(case) <= 1, "a case has one end"
            for end in case:
                wanted = {"message"} if end.tag == "skipped" else {"message", "type"}
                assert end.tag in ("failure", "error", "skipped")
                assert set(end.keys()) == wanted
    for element in (root, *root.iter("testsuite"), *root.iter("testcase")):
        assert not times or TIME.fullmatch(element.get("time", ""))
    return root


def checked_sarif(log: dict[str, Any]) -> dict[str, Any]:
    """Assert the requirements of SARIF 2.1.0 (sections 3.13 to 3.30 and 3.49); return the only run."""
    assert set(log) == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    run: dict[str, Any]
    (run,) = log["runs"]
    assert set(run) == {"tool", "invocations", "columnKind", "results"}
    assert run["columnKind"] == "utf16CodeUnits"
    driver = run["tool"]["driver"]
    assert driver["name"] == "nfparity"
    assert re.fullmatch(r"\d+\.\d+\.\d+", driver["semanticVersion"])
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
    (invocation,) = run["invocations"]
    notifications = invocation.get("toolExecutionNotifications", [])
    assert invocation["executionSuccessful"] is not bool(notifications)
    assert all(n["message"]["text"] and n["level"] == "error" for n in notifications)
    for result in run["results"]:
        _check_result(result, ids)
    return run


def _check_result(result: dict[str, Any], ids: list[str]) -> None:
    assert set(result) == {"ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"}
    assert ids[result["ruleIndex"]] == result["ruleId"]
    assert result["level"] in ("none", "note", "warning", "error")
    assert result["message"]["text"]
    assert result["locations"]
    for location in result["locations"]:
        physical = location["physicalLocation"]
        assert re.fullmatch(r"[!-~]+", physical["artifactLocation"]["uri"])
        assert physical.get("region", {"startLine": 1})["startLine"] >= 1
    assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
