# SPDX-License-Identifier: GPL-2.0
"""The report in a browser: chromium of the distribution, without a window.

It is spoken to over a pipe (DevTools). No name is resolved, and the page may
ask for nothing but itself.
"""

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "scripts"), str(HERE / "golden")]

import synthetic  # noqa: E402
from tollwaylib import files  # noqa: E402
from tollwaylib.report.page import write_report  # noqa: E402

pytestmark = pytest.mark.skipif(
    not shutil.which("chromium"),
    reason="there is no chromium (package chromium): the report was not opened "
           "in a browser")
# The slowest start that was seen here took 4 s.
LONGEST_S = 60


class Browser:
    """A chromium, and one tab of it."""

    def __init__(self, folder):
        inner, self._to = os.pipe()
        self._from, outer = os.pipe()
        self._log = open(folder / "chromium.log", "wb")
        self._process = subprocess.Popen(
            # Where its pipe is: descriptors 3 and 4. Root has no sandbox.
            ["bash", "-c", f'exec chromium "$@" 3<&{inner} 4>&{outer}', "bash",
             "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-background-networking", "--disable-dev-shm-usage",
             "--host-resolver-rules=MAP * ~NOTFOUND",
             "--remote-debugging-pipe", f"--user-data-dir={folder}/profile",
             "about:blank"], pass_fds=(inner, outer), stdin=subprocess.DEVNULL,
            stdout=self._log, stderr=self._log)
        os.close(inner)
        os.close(outer)
        self._count, self._session, self._rest = 0, None, b""
        self.events = []
        tab = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=tab,
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def close(self):
        for end in (self._to, self._from):
            os.close(end)
        self._process.terminate()
        self._process.wait(10)
        self._log.close()

    def _receive(self, until):
        """The next message."""
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [],
                                        max(0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            got = os.read(self._from, 1 << 20)
            assert got, "the browser has ended"
            self._rest += got
        text, _, self._rest = self._rest.partition(b"\0")
        return json.loads(text)

    def ask(self, method, **words):
        """Call a method; returns its result."""
        self._count += 1
        call = {"id": self._count, "method": method, "params": words}
        if self._session:
            call["sessionId"] = self._session
        os.write(self._to, json.dumps(call).encode() + b"\0")
        until = time.monotonic() + LONGEST_S
        while True:
            got = self._receive(until)
            if got.get("id") == self._count:
                assert "error" not in got, got
                return got["result"]
            self.events.append(got)

    def wait_for(self, method):
        until = time.monotonic() + LONGEST_S
        while all(event.get("method") != method for event in self.events):
            self.events.append(self._receive(until))

    def value(self, expression):
        """What an expression of JavaScript is in the page."""
        got = self.ask("Runtime.evaluate", expression=expression,
                       returnByValue=True)
        assert "exceptionDetails" not in got, got
        return got["result"].get("value")

    def open(self, path, width, scheme):
        self.events.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=800,
                 deviceScaleFactor=1, mobile=width < 800)
        self.ask("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme}])
        self.ask("Page.navigate", url=path.as_uri())
        self.wait_for("Page.loadEventFired")

    def said(self, *methods):
        """Parameters of the events of these names since the page was opened."""
        return [event["params"] for event in self.events
                if event.get("method") in methods]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with contextlib.closing(Browser(tmp_path_factory.mktemp("chromium"))) as it:
        yield it


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Two settings of one experiment, of which one misses what was published,
    and one setting of another."""
    place = tmp_path_factory.mktemp("site")
    for name, raw in (
            ("sbrm", synthetic.steady()),
            ("reno", synthetic.as_published(wtps=None, cc="reno", aqm="pfifo",
                                            utilization=(0.96, 0.85))),
            ("dynamics", synthetic.dynamics())):
        folder = place / "runs" / name
        folder.mkdir(parents=True)
        files.write_json_atomic(folder / "raw.json", raw, indent=None)
        files.write_json_atomic(folder / "result.json", synthetic.analyse(raw))
    write_report(place)
    return place


NAMES = ("index", "double-bottleneck", "double-bottleneck-dynamics")
# Its own width, and what is wider than the window but not in a box that moves.
WIDE = """(() => {
  const top = document.documentElement, wide = [];
  for (const one of document.body.querySelectorAll("*"))
    if (!one.closest(".wide") && one.getBoundingClientRect().right >
        top.clientWidth + 1) wide.push(one.tagName + " " + one.className);
  return [top.scrollWidth - top.clientWidth, wide];
})()"""


@pytest.mark.parametrize("scheme", ("light", "dark"))
@pytest.mark.parametrize("width", (1280, 390))
@pytest.mark.parametrize("name", NAMES)
def test_page_asks_for_nothing_and_fits(name, width, scheme, site, browser):
    path = site / f"{name}.html"
    browser.open(path, width, scheme)
    assert not browser.said("Runtime.exceptionThrown", "Log.entryAdded",
                            "Runtime.consoleAPICalled")
    asked = [event["request"]["url"] for event in
             browser.said("Network.requestWillBeSent")]
    assert [url for url in asked if not url.startswith("data:")] == [
        path.as_uri()]
    assert browser.value(WIDE) == [0, []]
    dark = browser.value("getComputedStyle(document.body).backgroundColor")
    assert (dark == "rgb(255, 255, 255)") == (scheme == "light")


# Of each text that is shown, the contrast with the page: as WCAG 2 computes it.
CONTRAST = """(() => {
  const light = text => {
    const part = text.match(/[0-9.]+/g).slice(0, 3).map(Number).map(
      value => (value /= 255) <= .04045 ? value / 12.92 :
        ((value + .055) / 1.055) ** 2.4);
    return .2126 * part[0] + .7152 * part[1] + .0722 * part[2];
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const found = {};
  for (const one of document.body.querySelectorAll(
      "p, li, td, th, a, caption, summary, figcaption, svg text")) {
    const style = getComputedStyle(one);
    const colour = one.tagName == "text" ? style.fill : style.color;
    const [low, high] = [light(colour), paper].sort((a, b) => a - b);
    const ratio = (high + .05) / (low + .05);
    if (ratio < 4.5) found[one.tagName + " " + colour] = ratio;
  }
  return found;
})()"""


@pytest.mark.parametrize("scheme", ("light", "dark"))
def test_text_can_be_read(scheme, site, browser):
    browser.open(site / "double-bottleneck.html", 1280, scheme)
    assert browser.value(CONTRAST) == {}
    # Figures have the colours of the page, not their own.
    assert browser.value("document.querySelectorAll('svg.plot text').length") \
        > 50


# Legends that reach into axes or out of their figure.
LEGENDS = """(() => {
  const found = [];
  let count = 0;
  const box_of = element => element.getBoundingClientRect();
  for (const legend of document.querySelectorAll('g[id*="-legend_"]')) {
    count++;
    const box = box_of(legend), svg = legend.closest("svg");
    const whole = box_of(svg);
    const covers = [...svg.querySelectorAll('g[id*="-axes_"]')].some(axes => {
      const other = box_of(axes.querySelector('g[id*="-patch_"]'));
      return Math.min(box.right, other.right) >
               Math.max(box.left, other.left) + 2 &&
             Math.min(box.bottom, other.bottom) >
               Math.max(box.top, other.top) + 2;
    });
    if (covers || box.left < whole.left - 1 || box.right > whole.right + 1 ||
        box.top < whole.top - 1 || box.bottom > whole.bottom + 1)
      found.push(legend.id);
  }
  return [count > 3, found];
})()"""


def test_legends_cover_nothing(site, browser):
    for name in NAMES[1:]:
        browser.open(site / f"{name}.html", 1280, "light")
        assert browser.value(LEGENDS) == [True, []]


def test_values_are_read_by_pointing(site, browser):
    browser.open(site / "double-bottleneck.html", 1280, "light")
    place = browser.value("""(() => {
      const one = document.querySelectorAll(".reading")[7];
      one.scrollIntoView({block: "center"});
      const box = one.getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2]; })()""")
    opacity = """getComputedStyle(document.querySelectorAll(
        ".reading")[7].querySelector("path")).fillOpacity"""
    assert browser.value(opacity) == "0"
    browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=place[0],
                y=place[1])
    assert browser.value(opacity) == "0.1"
    shown = browser.value("""(() => {
      const one = document.elementFromPoint(%f, %f);
      return one.closest("g").querySelector("title").textContent; })()"""
                          % tuple(place))
    assert len(shown.splitlines()) > 1


def test_page_can_be_printed(site, browser):
    browser.open(site / "double-bottleneck.html", 1280, "dark")
    browser.ask("Emulation.setEmulatedMedia", media="print", features=[
        {"name": "prefers-color-scheme", "value": "dark"}])
    # Ink on white, whatever the screen has, and nothing that moves.
    assert browser.value("getComputedStyle(document.body).backgroundColor") \
        == "rgb(255, 255, 255)"
    assert browser.value("getComputedStyle(document.querySelector("
                         "'.wide')).overflowX") == "visible"
    assert len(browser.ask("Page.printToPDF")["data"]) > 50000
    browser.ask("Emulation.setEmulatedMedia", media="")
