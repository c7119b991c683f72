"""Headless Chromium, driven through the pipe of its DevTools protocol: no port is opened.

https://chromedevtools.github.io/devtools-protocol describes the commands and events.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["CHROMIUM", "Chromium", "Tab", "chromium"]

CHROMIUM = shutil.which("chromium")

_PATIENCE = 300
"""The seconds without an answer after which the browser counts as stuck."""


class Chromium:
    """A running browser. ``events`` are all events that have arrived."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = os.fdopen(reading, "rb")
        self._writing = os.fdopen(writing, "wb")
        self._data = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, session: str = "", **parameters: object) -> dict[str, Any]:
        """Send a command and return its result, after all events before it."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        self._writing.write(json.dumps(message).encode() + b"\0")
        self._writing.flush()
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def wait_for(self, method: str, session: str, since: int) -> None:
        """Wait for an event of a tab that is not among the first ``since``."""
        while not any(
            e.get("method") == method and e.get("sessionId") == session for e in self.events[since:]
        ):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._data:
            assert select.select([self._reading], [], [], _PATIENCE)[0], "the browser does not answer"
            data = self._reading.read1(1 << 16)
            assert data, "the browser has ended"
            self._data += data
        message, _, self._data = self._data.partition(b"\0")
        parsed: dict[str, Any] = json.loads(message)
        return parsed

    def tab(self, width: int = 1280, *, dark: bool = False, media: str = "", scripts: bool = True) -> Tab:
        """Open an empty tab of that width. Events of the network, the log and exceptions are recorded."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session)
        for domain in ("Page", "Network", "Log", "Runtime"):
            tab.send(f"{domain}.enable")
        tab.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.send("Emulation.setEmulatedMedia", media=media, features=[scheme])
        tab.send("Emulation.setScriptExecutionDisabled", value=not scripts)
        return tab

    def close(self) -> None:
        """End the browser."""
        self.send("Browser.close")
        self._writing.close()
        self._reading.close()


class Tab:
    """A tab of the browser."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self.browser = browser
        self.session = session

    def send(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send a command for this tab."""
        return self.browser.send(method, self.session, **parameters)

    def open(self, page: Path) -> None:
        """Load a file and wait until it is complete."""
        since = len(self.browser.events)
        self.send("Page.navigate", url=page.as_uri())
        self.browser.wait_for("Page.loadEventFired", self.session, since)

    def value(self, expression: str) -> Any:
        """Return the value of an expression; for a promise, its fulfilment value."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def press(self, key: str, text: str = "", *, code: int = 0) -> None:
        """Press and release a key; ``code`` is its Windows virtual key code."""
        names = {"key": key, "windowsVirtualKeyCode": code, "code": key if len(key) > 1 else ""}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **names)
        self.send("Input.dispatchKeyEvent", type="keyUp", **names)

    def tab_key(self) -> None:
        """Move the focus to the next control."""
        self.press("Tab", code=9)

    def enter(self) -> None:
        """Press Enter."""
        self.press("Enter", "\r", code=13)

    def space(self) -> None:
        """Press the space bar."""
        self.press(" ", " ", code=32)

    def requests(self) -> list[str]:
        """Return the addresses that this tab has requested."""
        return [e["params"]["request"]["url"] for e in self._events("Network.requestWillBeSent")]

    def complaints(self) -> list[object]:
        """Return the messages of the browser: exceptions, violations of the policy, and others."""
        return [
            e["params"]
            for e in self._events("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
        ]

    def screenshot(self, file: Path, *, whole: bool = True) -> None:
        """Write a PNG of the page."""
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        file.write_bytes(base64.b64decode(data))

    def pdf(self, file: Path) -> None:
        """Write the page as it is printed."""
        file.write_bytes(base64.b64decode(self.send("Page.printToPDF", preferCSSPageSize=True)["data"]))

    def _events(self, *methods: str) -> Iterator[dict[str, Any]]:
        return (
            e
            for e in self.browser.events
            if e.get("method") in methods and e.get("sessionId") == self.session
        )


@contextmanager
def chromium(profile: Path) -> Iterator[Chromium]:
    """Run a browser that stores its data in this folder."""
    assert CHROMIUM is not None
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    # Not among the numbers that the browser wants them as.
    reading, writing = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (to_read, from_write))
    script = f'exec "$@" 3<&{reading} 4>&{writing}'
    words = (
        CHROMIUM, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
        "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--disable-dev-shm-usage",
        f"--user-data-dir={profile}", "about:blank",
    )  # fmt: skip
    process = subprocess.Popen(
        ["bash", "-c", script, "chromium", *words],
        pass_fds=(reading, writing),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for end in (to_read, from_write, reading, writing):
        os.close(end)
    browser = Chromium(from_read, to_write)
    try:
        yield browser
        browser.close()
    finally:
        process.kill()
        process.wait()
