# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven through its debugging pipe (the DevTools protocol, one JSON text a message, closed by a NUL byte)."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class Browser:
    """One page; `console` collects what it logs, `errors` what goes wrong in it, `requests` the addresses that it asks for."""

    def __init__(self, width=1280, height=900):
        self._profile = tempfile.mkdtemp(prefix="rdmasim-report-")
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def place_pipes():
            # The protocol is spoken on descriptors 3 and 4; copies first, in case one of the pipes sits there.
            a, b = os.dup(to_browser), os.dup(from_browser)
            a, b = os.dup(a), os.dup(b)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self._process = subprocess.Popen(
            [
                shutil.which("chromium"),
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--remote-debugging-pipe",
                f"--user-data-dir={self._profile}",
                f"--window-size={width},{height}",
                "about:blank",
            ],
            preexec_fn=place_pipes,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._id, self._buffer, self._session = 0, b"", None
        self.console, self.errors, self.requests = [], [], []
        target = next(t for t in self.send("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def _message(self, deadline):
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("Chromium does not answer")
            more = os.read(self._read, 1 << 16)
            if not more:
                raise RuntimeError("Chromium has ended")
            self._buffer += more
        text, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(text)
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.console.append((params["type"], [a.get("value") for a in params["args"]]))
        elif method == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"]["text"])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        return message

    def send(self, method, **params):
        self._id += 1
        call = {"id": self._id, "method": method, "params": params}
        if self._session:
            call["sessionId"] = self._session
        os.write(self._write, json.dumps(call).encode() + b"\0")
        deadline = time.monotonic() + 60
        while True:
            message = self._message(deadline)
            if message.get("id") == self._id:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def open(self, path):
        self.send("Page.navigate", url="file://" + os.path.abspath(path))
        deadline = time.monotonic() + 60
        while self._message(deadline).get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, script):
        """Value of a JavaScript expression."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def press(self, key, code=0, text=None):
        more = {"text": text} if text else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=code, **more)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)

    def screenshot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.send("Page.captureScreenshot", captureBeyondViewport=True)["data"]))

    def pdf(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.send("Page.printToPDF", preferCSSPageSize=True)["data"]))

    def close(self):
        if self._process.poll() is None:
            try:
                self._session = None
                self.send("Browser.close")
            except (RuntimeError, TimeoutError, OSError):
                self._process.kill()
        self._process.wait(timeout=30)
        os.close(self._write)
        os.close(self._read)
        shutil.rmtree(self._profile, ignore_errors=True)
