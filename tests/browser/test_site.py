"""The built site in headless Chromium without a network, on a desktop and on a phone."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

DOCS = Path(__file__).parents[2] / "docs"
WIDTHS = {"desktop": 1280, "phone": 390}
LOOK = """
const all = [...document.querySelectorAll(".math")];
const screen = document.documentElement.clientWidth;
const reachable = one => one && (getComputedStyle(one).overflowX !== "visible"
  || (one.tagName !== "ARTICLE" && reachable(one.parentElement)));
return {
  formulas: all.length,
  raw: all.filter(one => !one.querySelector(".katex-html") || one.querySelector(".katex-error"))
    .map(one => one.textContent),
  broken: [...document.images].filter(one => one.complete && !one.naturalWidth).map(one => one.src),
  cut: [...document.querySelectorAll("article *")]
    .filter(one => one.getBoundingClientRect().right > screen + 1 && !reachable(one))
    .map(one => `${one.tagName} ${one.textContent.slice(0, 60)}`).slice(0, 3),
  width: document.documentElement.scrollWidth,
}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("sphinx", reason="needs the extra fmnes[docs]")
    folder = tmp_path_factory.mktemp("site")
    words = ("-m", "sphinx", "-W", "-q", "-b", "html", str(DOCS), str(folder))
    subprocess.run([sys.executable, *words], check=True)
    return folder


def requests(browser):
    """The addresses that the browser has asked for since the last call."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]


@pytest.mark.parametrize("device", WIDTHS)
def test_pages_need_no_other_host_and_fit_the_screen(browser, site, device):
    size = {"width": WIDTHS[device], "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    formulas = 0
    browser.get_log("browser")  # forget what earlier pages said
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        if "_static" in page.relative_to(site).parts:
            continue  # pages of the theme
        browser.get(page.as_uri())
        seen = browser.execute_script(LOOK)
        formulas += seen["formulas"]
        where = str(page.relative_to(site))
        assert (where, seen["raw"], seen["broken"], seen["cut"]) == (where, [], [], [])
        assert (where, seen["width"]) <= (where, WIDTHS[device])
        loaded = requests(browser)
        assert page.as_uri() in loaded
        inside = (site.as_uri(), "data:")
        assert (where, [url for url in loaded if not url.startswith(inside)]) == (where, [])
        severe = [one for one in browser.get_log("browser") if one["level"] == "SEVERE"]
        assert (where, severe) == (where, [])
    assert formulas > 100
