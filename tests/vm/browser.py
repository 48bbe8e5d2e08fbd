# SPDX-License-Identifier: GPL-2.0-only
"""A headless Chromium that is driven through a pipe, with Python's own means alone."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SHIFT = 8


class Failed(Exception):
    """The browser said no, or a script in a page threw something."""


class Browser:
    """One window. `log` has the errors of pages, `asked` the addresses that they wanted."""

    def __init__(self, width=1200, height=800):
        program = next(filter(None, map(shutil.which, PROGRAMS)), None)
        if not program:
            raise Failed("there is no Chromium: run scripts/setup test")
        self.folder = tempfile.mkdtemp()
        to_read, self.to = os.pipe()
        self.reader, to_write = os.pipe()
        # It wants them as 3 and 4.
        command = ["bash", "-c", f'exec 3<&{to_read} 4>&{to_write} && exec "$@"', "browser", program, "--headless",
                   "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
                   "--disable-background-networking", "--disable-component-update", "--disable-sync",
                   f"--user-data-dir={self.folder}", f"--window-size={width},{height}", "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(command, pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.rest, self.number, self.session = b"", 0, None
        self.log, self.asked = [], []
        target = self.call("Target.createTarget", url="about:blank", newWindow=True, width=width, height=height)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def message(self):
        while b"\0" not in self.rest:
            part = os.read(self.reader, 1 << 20)
            if not part:
                raise Failed("the browser has ended")
            self.rest += part
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.log.append(params["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.log.append(str(params["exceptionDetails"]))
        elif method == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") != self.number:
                self.note(answer)
                continue
            if "error" in answer:
                raise Failed(f"{method}: {answer['error']}")
            return answer["result"]

    def open(self, url):
        # Where but the fragment differs, it would be the same page.
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.wait("['ready', 'failed'].includes(document.documentElement?.dataset.state)")

    def evaluate(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise Failed(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, script, seconds=30):
        end = time.monotonic() + seconds
        while not self.evaluate(script):
            if time.monotonic() > end:
                raise Failed(f"it never was so: {script}")
            time.sleep(0.02)

    def text(self, name):
        return self.evaluate(f"document.getElementById('{name}').textContent")

    def frame(self):
        """Until what was asked for is drawn, and said."""
        self.evaluate("new Promise((go) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(go)), 250))")

    def key(self, key, modifiers=0):
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, modifiers=modifiers, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers)

    def write(self, text):
        self.call("Input.insertText", text=text)

    def mouse(self, kind, x, y, modifiers=0, **others):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, modifiers=modifiers, **others)

    def click(self, x, y, modifiers=0):
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, modifiers, button="left", clickCount=1)

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
