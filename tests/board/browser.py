"""Chromium, driven through chromedriver: the few commands of the WebDriver protocol that the tests need."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

_OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
            "--no-first-run", "--hide-scrollbars", "--force-color-profile=srgb", "--lang=en-US"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Browser:
    """A browser with a profile of its own. Use it in a ``with``."""

    def __init__(self, width: int = 1440, height: int = 900) -> None:
        self._profile = tempfile.mkdtemp(prefix="oar-board-")
        port = _free_port()
        self._driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._url = f"http://127.0.0.1:{port}"
        options = {"binary": shutil.which("chromium"), "args": [*_OPTIONS, f"--window-size={width},{height}",
                                                                f"--user-data-dir={self._profile}"]}
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}}
        self._url += "/session/" + self.wait(lambda: self._begin(wanted), "chromedriver does not answer")
        self._cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def _begin(self, wanted: dict[str, Any]) -> str:
        try:
            return self._call("POST", "/session", wanted)["sessionId"]
        except urllib.error.URLError as error:
            if isinstance(error, urllib.error.HTTPError):
                raise
            return ""

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self._url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def _cdp(self, command: str, **arguments: Any) -> Any:
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": arguments})

    @staticmethod
    def wait(found: Callable[[], Any], problem: str, seconds: float = 90) -> Any:
        """What a function returns, as soon as it is true."""
        deadline = time.monotonic() + seconds
        while not (value := found()):
            if time.monotonic() > deadline:
                raise TimeoutError(problem)
            time.sleep(0.1)
        return value

    def open(self, url: str) -> None:
        """Loads a page."""
        self._call("POST", "/url", {"url": url})

    def js(self, code: str, *arguments: Any) -> Any:
        """Runs JavaScript and returns its result."""
        return self._call("POST", "/execute/sync", {"script": code, "args": list(arguments)})

    def until(self, condition: str, seconds: float = 90) -> Any:
        """Waits until an expression is true."""
        return self.wait(lambda: self.js(f"return {condition}"), f"{condition} stays false", seconds)

    def prefer(self, scheme: str) -> None:
        """Sets what the system prefers: light or dark."""
        self._cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path: Path) -> None:
        """Writes what is seen, as PNG."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self._call("GET", "/screenshot")))

    def mouse(self, *moves: tuple[float, float], button: bool = False) -> None:
        """Moves the mouse through places, with the button held between the first and the last if wanted."""
        actions: list[dict[str, Any]] = []
        for i, (x, y) in enumerate(moves):
            actions.append({"type": "pointerMove", "duration": 30, "x": round(x), "y": round(y)})
            if button and i == 0:
                actions.append({"type": "pointerDown", "button": 0})
        if button:
            actions.append({"type": "pointerUp", "button": 0})
        self._call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]})

    def keys(self, *keys: str) -> None:
        """Presses keys, one after another; names are those of the protocol."""
        codes = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014",
                 "ArrowDown": "\ue015", "Space": " "}
        actions = [{"type": kind, "value": codes.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")]
        self._call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def complaints(self) -> list[str]:
        """What the console shows since the last call: errors of scripts, files that are not found."""
        return [entry["message"] for entry in self._call("POST", "/se/log", {"type": "browser"}) if entry["level"] in ("SEVERE", "WARNING")]

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            self._call("DELETE", "")
        finally:
            self._driver.terminate()
            self._driver.wait(10)
            shutil.rmtree(self._profile, ignore_errors=True)
