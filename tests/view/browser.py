# SPDX-License-Identifier: Apache-2.0
"""A real headless Chromium, driven over the DevTools protocol through a pipe: no port, no driver, no package."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from queue import Empty, Queue
from typing import Any

PATIENCE = 240.0
"""Seconds that no load of the machine exhausts."""


def chromium() -> str | None:
    """The browser of this machine."""
    return next((found for name in ("chromium", "chromium-browser") if (found := shutil.which(name))), None)


class Browser:
    """One page. `messages`: of the console, of the policy, of exceptions; `requested`: addresses."""

    def __init__(self) -> None:
        program = chromium()
        assert program is not None
        self._profile = tempfile.mkdtemp(prefix="newskills-browser-")
        to_browser, our_end = os.pipe()
        our_ear, from_browser = os.pipe()

        # The browser reads from 3 and writes to 4, which only the shell can say without treading on Popen's own pipes.
        shell = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            [
                "bash",
                "-c",
                shell,
                program,
                "--headless=new",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--disable-extensions",
                "--hide-scrollbars",
                "--font-render-hinting=none",
                "--force-color-profile=srgb",
                f"--user-data-dir={self._profile}",
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(to_browser, from_browser),
        )
        os.close(to_browser)
        os.close(from_browser)
        self._out, self._in = our_end, our_ear
        self._number = 0
        self._answers: dict[int, Queue[dict[str, Any]]] = {}
        self.messages: list[str] = []
        self.requested: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = ""
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.size(1280, 900)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        number = self._number
        self._answers[number] = Queue()
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if getattr(self, "_session", ""):
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        try:
            answer = self._answers[number].get(timeout=PATIENCE)
        except Empty:
            raise AssertionError(f"the browser does not answer {method}") from None
        del self._answers[number]
        assert "error" not in answer, answer
        return answer["result"]

    def _listen(self) -> None:
        rest = b""
        while block := os.read(self._in, 1 << 16):
            *whole, rest = (rest + block).split(b"\0")
            for text in whole:
                message = json.loads(text)
                if message.get("id") in self._answers:
                    self._answers[message["id"]].put(message)
                else:
                    self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        match message.get("method"):
            case "Runtime.consoleAPICalled":
                self.messages.append(" ".join(str(one.get("value", "")) for one in parameters["args"]))
            case "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                self.messages.append(
                    f"exception: {details.get('exception', {}).get('description', details['text'])}"
                )
            case "Log.entryAdded":
                self.messages.append(parameters["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requested.append(parameters["request"]["url"])
            case "Page.javascriptDialogOpening":
                self.messages.append(f"dialog: {parameters['message']}")

    def size(self, width: int, height: int, *, dark: bool = False) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = "dark" if dark else "light"
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def forget(self) -> None:
        """Leave the page, whose server may end now, and forget what it said and asked for."""
        self.send("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank'")
        self.messages.clear()
        self.requested.clear()

    def open(self, address: str) -> None:
        """Waits until the page shows what the address means."""
        before, _, place = address.partition("#")
        now = self.run("location.href.split('#')[0]")
        if place and before == now:
            self.run("document.querySelector('main').setAttribute('aria-busy', 'true'); 0")
            same = self.run(f"location.hash === {json.dumps('#' + place)}")
            self.run("location.reload(); 0" if same else f"location.hash = {json.dumps('#' + place)}; 0")
            if same:
                time.sleep(0.2)
        else:
            self.send("Page.navigate", url=address)
        self.settled()

    def settled(self) -> None:
        shown = "document.querySelector('main')?.getAttribute('aria-busy') === 'false'"
        self.wait(f"document.readyState === 'complete' && {shown}")

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        found = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, script: str) -> Any:
        """Until the expression is true."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                if value := self.run(script):
                    return value
            except AssertionError as error:  # the page is being replaced
                if "Cannot find" not in str(error) and "context" not in str(error):
                    raise
            time.sleep(0.05)
        raise AssertionError(f"the page never got there: {script}\n{self.text()[:2000]}\n{self.messages[-5:]}")

    def text(self) -> str:
        return str(self.run("document.body ? document.body.innerText : ''"))

    def press(self, key: str) -> None:
        text = "\r" if key == "Enter" else key if len(key) == 1 else ""
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def click(self, selector: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).click(); 0")

    def downloads(self, folder: Path) -> None:
        """Files go into this folder."""
        folder.mkdir(parents=True, exist_ok=True)
        self.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def downloaded(self, path: Path) -> bytes:
        """The content of a file, once it is whole."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if path.is_file():
                return path.read_bytes()
            time.sleep(0.05)
        raise AssertionError(f"{path.name} never came; there is {[one.name for one in path.parent.iterdir()]}")

    def picture(self, path: Path, *, height: int = 0) -> Path:
        """A PNG of the top `height` pixels, or of the whole page."""
        whole = self.run("document.documentElement.scrollHeight")
        width = self.run("window.innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": min(whole, height or 12_000), "scale": 1}
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(data))
        return path

    def close(self) -> None:
        os.close(self._out)
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._profile, ignore_errors=True)
