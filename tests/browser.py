"""A real browser for tests, spoken to over its debugging pipe: nothing but the browser has to be installed."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

__all__ = ["BROWSER", "Browser"]

BROWSER = os.environ.get("CROSSWALK_BROWSER") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None
)
"""The program; ``None`` where there is none."""

_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
]


class Browser:
    """A headless Chromium with one page.

    Args:
        profile: an empty folder for what it keeps.

    Attributes:
        events: what the page told since it was opened: its errors, messages and requests.
    """

    def __init__(self, profile: Path) -> None:
        assert BROWSER is not None
        # It reads from 3 and writes to 4, which here may be anything.
        (to_read, to_write), (its_read, its_write) = os.pipe(), os.pipe()
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_read, its_write)]
        self._process = subprocess.Popen(
            [BROWSER, *_FLAGS, f"--user-data-dir={profile}"],
            preexec_fn=lambda: [os.dup2(fd, n) for n, fd in enumerate(theirs, 3)] and None,
            pass_fds=(3, 4),
            stderr=subprocess.DEVNULL,
        )
        for fd in (to_read, its_write, *theirs):
            os.close(fd)
        self._to, self._from = os.fdopen(to_write, "wb", buffering=0), os.fdopen(its_read, "rb")
        self._left, self._count, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Page", "Log", "Network"):
            self._call(f"{domain}.enable")

    def _call(self, method: str, **params: Any) -> Any:
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._count:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            read = self._from.read1(1 << 16)
            assert read, "the browser went away"
            self._left += read
        message, _, self._left = self._left.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def open(self, page: Path, *, width: int = 1200, scheme: str = "light") -> None:
        """Show *page* in a window of *width* pixels, in a light or dark scheme, and wait until it is laid out."""
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False
        )
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self._call("Page.navigate", url=page.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def run(self, script: str) -> Any:
        """The value of *script*, an expression."""
        found = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str, text: str = "") -> None:
        """Press and release *key*, which types *text*."""
        self._call(
            "Input.dispatchKeyEvent",
            type="keyDown",
            key=key,
            code=key,
            text=text,
            windowsVirtualKeyCode=_CODES[key],
        )
        self._call(
            "Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=_CODES[key]
        )

    def close(self) -> None:
        """End it."""
        self._to.close()
        self._process.kill()
        self._process.wait()
        self._from.close()


_CODES = {"Enter": 13, "Escape": 27, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9}
