"""Headless Chromium, driven over WebDriver with Python's standard library."""

import base64
import json
import pathlib
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request


def is_there():
    return shutil.which("chromedriver") is not None and shutil.which("chromium") is not None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Browser:
    """One window. Leave it with close()."""

    def __init__(self, width=1280, height=900):
        self._port = free_port()
        self._driver = subprocess.Popen(
            ["chromedriver", f"--port={self._port}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._session = ""
        try:
            self._wait()
            arguments = [
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                f"--window-size={width},{height}",
            ]
            wanted = {
                "browserName": "chrome",
                "goog:loggingPrefs": {"browser": "ALL"},
                "goog:chromeOptions": {"args": arguments, "binary": shutil.which("chromium")},
            }
            self._session = self._send(
                "POST", "/session", {"capabilities": {"alwaysMatch": wanted}}
            )["sessionId"]
        except BaseException:
            self._driver.kill()
            self._driver.wait()
            raise

    def close(self):
        try:
            self._send("DELETE", f"/session/{self._session}")
        finally:
            self._driver.terminate()
            self._driver.wait(timeout=30)

    def _wait(self):
        for _ in range(300):
            try:
                if self._send("GET", "/status")["ready"]:
                    return
            except urllib.error.URLError:
                pass
            time.sleep(0.1)
        raise RuntimeError("chromedriver does not answer")

    def _send(self, method, path, content=None):
        body = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}{path}",
            body,
            {"Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from error

    def _post(self, path, content):
        return self._send("POST", f"/session/{self._session}{path}", content)

    def command(self, name, **parameters):
        """A command of the Chrome DevTools protocol."""
        return self._post("/goog/cdp/execute", {"cmd": name, "params": parameters})

    def open(self, path):
        self._post("/url", {"url": pathlib.Path(path).resolve().as_uri()})

    def resize(self, width, height=900, scale=1):
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )

    def prefer(self, scheme):
        self.command(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def run(self, script, *arguments):
        """What the body of a function returns; a promise's value."""
        return self._post("/execute/sync", {"script": script, "args": list(arguments)})

    def point(self, x, y):
        self.command("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def drag(self, x, y, by):
        for kind, at in (("mousePressed", x), ("mouseMoved", x + by), ("mouseReleased", x + by)):
            self.command(
                "Input.dispatchMouseEvent",
                type=kind,
                x=at,
                y=y,
                button="left",
                buttons=1,
                clickCount=1,
            )

    def wheel(self, x, y, by):
        self.command("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=by)

    def key(self, key):
        self.command(
            "Input.dispatchKeyEvent", type="keyDown", key=key, text=key if len(key) == 1 else ""
        )
        self.command("Input.dispatchKeyEvent", type="keyUp", key=key)

    def picture(self, path):
        pathlib.Path(path).write_bytes(
            base64.b64decode(self._send("GET", f"/session/{self._session}/screenshot"))
        )

    def pdf(self):
        return base64.b64decode(self._post("/print", {"background": True}))

    def complaints(self):
        """Errors and warnings on the console since the last call."""
        entries = self._post("/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]
