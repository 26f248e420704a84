"""The page in a browser: every tab, light and dark, with mouse and keyboard, while logs are written.

Pictures of all of it go to ``build/board``, to be looked at.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from browser import Browser  # noqa: E402
from example_logs import write  # noqa: E402

from oar.board import LogWriter  # noqa: E402
from oar.vision import image_load  # noqa: E402

PICTURES = Path(__file__).parents[2] / "build" / "board"
TABS = {
    "scalars": ".card canvas", "histograms": ".card canvas", "images": ".card img[src]", "text": ".card pre", "audio": ".card audio[src]",
    "graphs": ".stage .host", "embeddings": ".stage canvas", "hparams": "table.data tbody tr", "curves": ".card canvas",
}


def start(folder, *options):
    process = subprocess.Popen([sys.executable, "-m", "oar.board", str(folder), "--port", "0", "--reload", "0.5", *options],
                               stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().split(" at ")[1].split()[0]


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("board") / "logs"
    write(folder)
    return folder


@pytest.fixture(scope="module")
def address(logs):
    process, url = start(logs)
    yield url
    process.terminate()
    process.wait(20)


@pytest.fixture(scope="module")
def chromium():
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.fail("chromium and chromedriver are missing: tools/setup.sh browser installs them")
    with Browser() as browser:
        yield browser


@pytest.fixture
def browser(chromium, address):
    """A page without settings of an earlier test; at the end, none may have complained."""
    chromium.prefer("light")
    chromium.open(address)
    chromium.js("localStorage.clear()")
    chromium.complaints()
    yield chromium
    assert chromium.complaints() == []


def show(browser, address, tab):
    browser.open("about:blank")
    browser.open(f"{address}#{tab}")
    browser.until(f"document.querySelectorAll('{TABS[tab]}').length > 0")
    browser.until("document.querySelector('#live').textContent === 'Live'")


def colours(picture):
    """The brightness of a picture, from 0 to 255, and how many colours it has."""
    pixels = image_load(str(picture), backend="cv2")
    return pixels.mean(), len(np.unique(pixels.reshape(-1, 3), axis=0))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("tab", TABS)
def test_every_tab(browser, address, tab, scheme):
    browser.prefer(scheme)
    show(browser, address, tab)
    if tab == "images":
        browser.until("[...document.images].every((i) => i.complete && i.naturalWidth > 0)")
    if tab == "graphs":
        browser.until("document.querySelector('.host').shadowRoot.querySelectorAll('g > rect').length > 20")
    if "canvas" in TABS[tab]:
        browser.until("[...document.querySelectorAll('canvas')].slice(0, 2).every((c) => c.width > 300 && c.dataset.drawn > 0)")
    assert browser.js("return document.documentElement.dataset.theme") == scheme
    assert browser.js("return document.querySelector('main').scrollWidth <= document.querySelector('main').clientWidth")
    picture = PICTURES / f"{tab}-{scheme}.png"
    browser.picture(picture)
    brightness, count = colours(picture)
    assert (brightness > 200 if scheme == "light" else brightness < 80) and count > 300


def test_the_theme_stays(browser, address):
    show(browser, address, "scalars")
    browser.js("document.querySelector('#theme').click()")
    assert browser.js("return document.documentElement.dataset.theme") == "dark"
    show(browser, address, "scalars")
    assert browser.js("return document.documentElement.dataset.theme") == "dark"


def chart(browser, tag):
    """The place of a chart of a scalar, as soon as it is drawn."""
    browser.until("document.querySelectorAll('.card h3').length > 0")
    browser.js("""
        window.chart = [...document.querySelectorAll('.card')].find((c) => c.querySelector('h3').textContent === arguments[0]);
        window.chart.scrollIntoView({ block: 'center' })""", tag)
    browser.until("window.chart.querySelector('canvas').dataset.drawn > 0")
    return browser.js("const box = window.chart.querySelector('canvas').getBoundingClientRect(); return [box.left, box.top, box.width, box.height]")


def tip(browser):
    return browser.js("const t = document.querySelector('#tip'); return t.hidden ? '' : t.innerText")


def test_hover_shows_all_runs(browser, address):
    show(browser, address, "scalars")
    left, top, width, height = chart(browser, "test/accuracy")
    browser.until("document.querySelectorAll('.card').length === 6")
    browser.mouse((left + width * 0.6, top + height / 2))
    text = browser.wait(lambda: tip(browser), "no values are shown")
    assert all(f"{kind}-{rate}" in text for kind, rate in (("sgd", 0.1), ("sgd", 0.01), ("adam", 0.001), ("adam", 0.003), ("adamw", 0.0003)))
    assert "Smoothed" in text and "Step" in text
    browser.picture(PICTURES / "scalars-hover.png")
    browser.mouse((5, 5))
    assert tip(browser) == ""


def test_zoom_by_dragging(browser, address):
    show(browser, address, "scalars")
    left, top, width, height = chart(browser, "train/loss")
    at = lambda part: (left + 52 + (width - 62) * part, top + height / 2)  # noqa: E731
    browser.mouse(at(0.25), at(0.3), at(0.5), button=True)
    browser.mouse(at(0.001))
    step = int(browser.wait(lambda: tip(browser), "no values are shown").split("\n")[1].split("\t")[3])
    assert 80 <= step <= 120  # a quarter of 400
    browser.picture(PICTURES / "scalars-zoom.png")
    browser.keys("Escape")
    browser.mouse((5, 5))
    browser.mouse(at(0.001))
    browser.until("document.querySelector('#tip').innerText.split('\\n')[1].split('\\t')[3] === '0'")


def test_settings_of_scalars(browser, address):
    show(browser, address, "scalars")
    browser.js("const s = document.querySelector('input[type=range]'); s.value = 0; s.dispatchEvent(new Event('input'))")
    assert browser.js("return document.querySelector('.toolbar output').textContent") == "0.00"
    for name in ("Relative", "Wall"):
        browser.js("[...document.querySelectorAll('.segments button')].find((b) => b.textContent === arguments[0]).click()", name)
        left, top, width, height = chart(browser, "test/loss")
        browser.mouse((left + width * 0.5, top + height / 2), (left + width * 0.5 + 2, top + height / 2))
        assert "Smoothed" not in browser.wait(lambda: tip(browser), "no values are shown")
    browser.js("document.querySelector('.toolbar label input[type=checkbox]').click()")
    browser.picture(PICTURES / "scalars-wall-log.png")
    browser.js("const f = document.querySelector('main input[type=search]'); f.value = 'lo(ss|g)$'; f.dispatchEvent(new Event('input'))")
    assert browser.js("return [...document.querySelectorAll('.card h3')].map((h) => h.textContent)") == ["test/loss", "train/loss"]
    browser.js("const f = document.querySelector('main input[type=search]'); f.value = '('; f.dispatchEvent(new Event('input'))")
    assert browser.js("return document.querySelector('main input[type=search]').classList.contains('wrong')")
    assert browser.js("return document.querySelectorAll('.card h3').length") == 2


def test_runs_can_be_hidden(browser, address):
    show(browser, address, "scalars")
    browser.js("document.querySelector('#runs-none').click()")
    assert "No tag" in browser.js("return document.querySelector('main').innerText")
    browser.js("document.querySelector('#runs input').click()")
    assert browser.js("return document.querySelector('#run-count').textContent") == "1 of 5"
    left, top, width, height = chart(browser, "test/loss")
    browser.wait(lambda: (browser.mouse((left + width * 0.5, top + 80), (left + width * 0.55, top + 80)), tip(browser))[1], "no values are shown")
    assert len(tip(browser).strip().split("\n")) == 2
    browser.js("const f = document.querySelector('#run-filter'); f.value = 'adam'; f.dispatchEvent(new Event('input'))")
    assert browser.js("return document.querySelectorAll('#runs li').length") == 3
    browser.js("document.querySelector('#runs-all').click()")
    assert browser.js("return document.querySelector('#run-count').textContent").startswith(("3 of 5", "4 of 5"))


def test_downloads(browser, address):
    """The files as the page makes them."""
    show(browser, address, "scalars")
    browser.until("document.querySelectorAll('.card canvas').length > 3")
    browser.js("""
        window.made = [];
        URL.createObjectURL = (blob) => { blob.text().then((text) => window.made.push(text)); return 'data:text/plain,x'; };
        HTMLAnchorElement.prototype.click = () => {};
        const card = [...document.querySelectorAll('.card')].find((c) => c.querySelector('h3').textContent === 'test/accuracy');
        card.querySelector('.menu > button').click();
        const entries = card.querySelectorAll('.menu div button');
        setTimeout(() => { entries[0].click(); entries[1].click(); }, 800)""")
    browser.until("window.made.length === 2")
    csv, text = browser.js("return window.made.sort((a, b) => a[0] === 'r' ? -1 : 1)")
    lines = csv.strip().split("\n")
    assert lines[0] == "run,step,wall_time,value" and len(lines) == 1 + 5 * 20
    assert text.startswith('{"tag":"test/accuracy","runs":{')


def test_keyboard(browser, address):
    """Tabs by arrows, charts by Tab and arrows."""
    show(browser, address, "scalars")
    browser.js("document.querySelector('#tab-scalars').focus()")
    browser.keys("ArrowRight")
    browser.until("location.hash === '#histograms' && document.activeElement.id === 'tab-histograms'")
    browser.keys("ArrowLeft")
    browser.until("document.querySelectorAll('.card canvas').length === 6")
    seen = set()
    for _ in range(30):
        browser.keys("Tab")
        seen.add(browser.js("const a = document.activeElement; return a.tagName + (a.type ? ':' + a.type : '')"))
        if browser.js("return document.activeElement.tagName") == "CANVAS":
            break
    assert {"BUTTON:button", "INPUT:search", "INPUT:checkbox", "INPUT:range", "CANVAS"} <= seen
    browser.until("document.activeElement.tagName === 'CANVAS'")
    browser.wait(lambda: (browser.keys("ArrowRight", "ArrowRight"), tip(browser))[1], "arrow keys show no values")
    assert "Run" in tip(browser)


@pytest.mark.parametrize("form", ["Overlay", "Distribution"])
def test_forms_of_histograms(browser, address, form):
    show(browser, address, "histograms")
    browser.js("[...document.querySelectorAll('.segments button')].find((b) => b.textContent === arguments[0]).click()", form)
    browser.until("document.querySelector('.card canvas').dataset.drawn > 0")
    left, top, width, height = browser.js("const b = document.querySelector('.card canvas').getBoundingClientRect(); return [b.left, b.top, b.width, b.height]")
    browser.mouse((left + width / 2, top + height / 2))
    assert "median" in browser.wait(lambda: tip(browser), "no values are shown")
    browser.picture(PICTURES / f"histograms-{form.lower()}.png")


def test_images_of_other_steps(browser, address):
    show(browser, address, "images")
    browser.until("document.querySelector('.card img').naturalWidth > 0")
    first = browser.js("return document.querySelector('.card img').src")
    browser.js("const s = document.querySelector('.card input[type=range]'); s.value = 0; s.dispatchEvent(new Event('input'))")
    assert browser.js("return document.querySelector('.card img').src") != first
    assert browser.js("return document.querySelector('.card .stepper').textContent").startswith("step 0 ")


def test_graph(browser, address):
    show(browser, address, "graphs")
    browser.until("document.querySelector('.host').shadowRoot.querySelectorAll('g > rect').length > 20")
    place = "document.querySelector('.host').style.transform"
    before = browser.js(f"return {place}")
    left, top = browser.js("const b = document.querySelector('.stage').getBoundingClientRect(); return [b.left, b.top]")
    browser.mouse((left + 30, top + 300), (left + 130, top + 340), button=True)
    assert browser.js(f"return {place}") != before
    browser.js("document.querySelector('[aria-label=\"Zoom in\"]').click()")
    browser.js("const s = document.querySelector('[aria-label=\"Find boxes\"]'); s.value = 'softmax'; s.dispatchEvent(new Event('input'))")
    assert "found" in browser.js("return document.querySelector('.toolbar').innerText")
    assert browser.js("return document.querySelector('.host').shadowRoot.querySelectorAll('g.found').length") >= 1
    browser.picture(PICTURES / "graphs-found.png")
    browser.js("[...document.querySelectorAll('button')].find((b) => b.textContent === 'Text').click()")
    assert browser.js("return document.querySelector('.stage pre').innerText").startswith("program Net")
    browser.picture(PICTURES / "graphs-text.png")


def test_embeddings(browser, address):
    show(browser, address, "embeddings")
    browser.until("document.querySelector('.panel').innerText.includes('600 vectors')")
    assert browser.js("return [...document.querySelectorAll('.legend span')].map((s) => s.textContent)") == ["bird", "boat", "fish", "star", "tree"]
    left, top, width, height = browser.js("const b = document.querySelector('.stage canvas').getBoundingClientRect(); return [b.left, b.top, b.width, b.height]")
    browser.picture(PICTURES / "embeddings-before.png")
    browser.mouse((left + width / 2, top + 20), (left + width / 2 + 120, top + 60), button=True)
    browser.picture(PICTURES / "embeddings-turned.png")
    assert (PICTURES / "embeddings-before.png").read_bytes() != (PICTURES / "embeddings-turned.png").read_bytes()
    browser.js("const s = document.querySelector('[aria-label=\"Find labels\"]'); s.value = '^boat 1'; s.dispatchEvent(new Event('input'))")
    browser.until("document.querySelector('.panel').innerText.includes('found')")
    browser.js("document.querySelector('.panel li button').click()")
    browser.until("document.querySelectorAll('.panel li').length === 20")
    names = browser.js("return [...document.querySelectorAll('.panel li button span:first-child')].map((s) => s.textContent)")
    assert sum(name.startswith("boat") for name in names) >= 18
    browser.picture(PICTURES / "embeddings-neighbours.png")
    browser.js("[...document.querySelectorAll('.segments button')].find((b) => b.textContent === '2-d').click()")
    browser.js("const s = document.querySelector('[aria-label=\"Colour by\"]'); s.value = 2; s.dispatchEvent(new Event('change'))")
    browser.picture(PICTURES / "embeddings-2d.png")


def test_hparams(browser, address):
    show(browser, address, "hparams")
    column = "return [...document.querySelectorAll('tbody tr')].map((r) => r.cells[2].textContent)"
    browser.js("document.querySelectorAll('th button')[2].click()")
    assert browser.js(column) == ["0.0003", "0.001", "0.003", "0.01", "0.1"]
    browser.js("document.querySelectorAll('th button')[2].click()")
    assert browser.js(column) == ["0.1", "0.01", "0.003", "0.001", "0.0003"]
    assert browser.js("return document.querySelectorAll('th')[2].getAttribute('aria-sort')") == "descending"
    for form in ("Parallel coordinates", "Scatter"):
        browser.js("[...document.querySelectorAll('.segments button')].find((b) => b.textContent === arguments[0]).click()", form)
        browser.until("document.querySelector('.card canvas').width > 300")
        browser.picture(PICTURES / f"hparams-{form.split()[0].lower()}.png")
    browser.prefer("dark")
    browser.picture(PICTURES / "hparams-scatter-dark.png")


def test_a_narrow_window(browser, address):
    browser._cdp("Emulation.setDeviceMetricsOverride", width=420, height=860, deviceScaleFactor=1, mobile=False)
    try:
        show(browser, address, "scalars")
        browser.until("document.querySelectorAll('.card canvas').length === 6")
        browser.picture(PICTURES / "scalars-narrow.png")
        assert browser.js("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        browser._cdp("Emulation.setDeviceMetricsOverride", width=1440, height=900, deviceScaleFactor=1, mobile=False)


def test_live(chromium, tmp_path):
    """An empty folder says what to do; runs, points and damage appear as they happen; a lost server is said to be lost."""
    folder = tmp_path / "new"
    process, url = start(folder)
    try:
        chromium.prefer("light")
        chromium.open(url)
        chromium.js("localStorage.clear()")
        chromium.until("document.querySelector('main').innerText.includes('LogWriter')")
        assert "add_scalar" in chromium.js("return document.querySelector('main').innerText")
        assert "does not exist" in chromium.js("return document.querySelector('#problems').textContent")
        chromium.picture(PICTURES / "empty.png")
        writer = LogWriter(folder / "first", max_queue=1)
        writer.add_scalar("loss", 3.0, 0)
        chromium.until("document.querySelectorAll('.card canvas').length === 1")
        for step in range(1, 50):
            writer.add_scalar("loss", 3 / (step + 1), step)
        left, top, width, height = chart(chromium, "loss")
        chromium.wait(lambda: (chromium.mouse((left + width - 14, top + 50), (left + width - 12, top + 50)),
                               "\t49\t" in tip(chromium))[1], "new points do not appear")
        (folder / "broken").mkdir()
        (folder / "broken" / "events.out.tfevents.1").write_bytes(os.urandom(100))
        chromium.until("document.querySelector('#problems').textContent.includes('broken/events.out.tfevents.1')")
        chromium.js("document.querySelector('#problems').open = true")
        chromium.picture(PICTURES / "live.png")
        assert chromium.complaints() == []
    finally:
        process.terminate()
        process.wait(20)
    chromium.until("document.querySelector('#live').textContent === 'Server not reached'")
    chromium.complaints()


def test_a_hostile_log_is_only_text(chromium, tmp_path):
    """Names and texts are shown as they are; nothing of them runs."""
    attack = "<img src=x onerror=window.attacked=1>"
    with LogWriter(tmp_path / "run", display_name=attack) as writer:
        writer.add_scalar(attack, 1, 0)
        writer.add_text(attack, attack + "<script>window.attacked=1</script>", 0)
        writer.add_hparams({attack: attack}, [attack])
        writer.add_embeddings(attack, [[1.0, 2.0], [3.0, 4.0]], [attack, attack])
    process, url = start(tmp_path)
    try:
        for tab in ("scalars", "text", "hparams", "embeddings"):
            chromium.open("about:blank")
            chromium.open(f"{url}#{tab}")
            chromium.until(f"document.querySelectorAll('{TABS[tab]}').length > 0")
            assert attack in chromium.js("return document.body.innerText")
            assert not chromium.js("return window.attacked")
    finally:
        process.terminate()
        process.wait(20)
