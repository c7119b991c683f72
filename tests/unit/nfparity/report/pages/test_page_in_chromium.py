"""Pages in headless Chromium: nothing is requested, everything works by keyboard and can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nfparity.assess.summary import Summary
from nfparity.report.pages.assessment import assessment_page
from nfparity.report.pages.migration import migration_page
from tests.lab.commands import run_command
from tests.unit.nfparity.report.pages.helpers.chromium import CHROMIUM, Chromium, Tab, chromium
from tests.unit.nfparity.report.pages.helpers.plans import KUBE, PLAIN, family, planned

ROOT = Path(__file__).parents[5]
KIND = ROOT / "tests/corpus/rulesets/kind-node"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (apt-get install chromium)"),
]

CONTRAST = """(() => {
  const parts = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number);
  const light = (channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
  const backdrop = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const color = parts(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
      if (color[3] !== 0) throw new Error("a background that is partly transparent");
    }
    return [255, 255, 255];
  };
  const weak = [];
  let texts = 0;
  for (const element of document.querySelectorAll("body *")) {
    if (!element.checkVisibility() || element.matches("script, option, datalist")) continue;
    if (![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "")) continue;
    const style = getComputedStyle(element);
    const pair = [luminance(parts(style.color)), luminance(backdrop(element))].sort((a, b) => b - a);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    texts += 1;
    if (ratio < 4.5) weak.push([element.className || element.tagName, style.color, ratio]);
  }
  return {weak, texts};
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with chromium(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def pages(
    summary: Summary, many: Callable[[int], Summary], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Pages by name: every kind of finding; forty findings, most as data; of other commands."""
    folder = tmp_path_factory.mktemp("pages")
    texts = {"all": assessment_page(summary, version="1.2.3")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nfparity.report.pages.page.LAZY_FROM", 2)
        texts["later"] = assessment_page(many(40), version="1.2.3")
        texts["hostile"] = assessment_page(summary, version="1.2.3")
    rules = (str(KIND / "rules.iptables-save"), "--node", str(KIND / "worker.json"))
    packet = "udp 10.244.0.5:1 > 10.96.0.10:53 in pod5"
    texts["packet"] = run_command("explain", *rules, "--packet", packet, "--reply", "--format", "html").stdout
    real = "tests/corpus/cases-kube-real"
    texts["coverage"] = run_command(
        "corpus", "coverage", "--corpus", str(ROOT / real), "--format", "html"
    ).stdout
    checked = replace(family(PLAIN + KUBE, "filter"), untried=("filter",))
    texts["plan"] = migration_page(
        planned(checked), command="nfparity migrate plan", output=None, version="1"
    )
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text)
    return {name: folder / f"{name}.html" for name in texts}


def opened(browser: Chromium, page: Path, **options: object) -> Tab:
    tab = browser.tab(**options)  # type: ignore[arg-type]
    tab.open(page)
    return tab


def visible(tab: Tab) -> int:
    return int(
        tab.value("[...document.querySelectorAll('.finding')].filter((f) => f.checkVisibility()).length")
    )


def focused(tab: Tab) -> str:
    return str(
        tab.value(
            "document.activeElement.id || document.activeElement.value || document.activeElement.tagName"
        )
    )


@pytest.mark.parametrize("name", ["all", "later", "hostile", "packet", "coverage", "plan"])
def test_nothing_is_requested_and_nothing_foreign_runs(
    name: str, browser: Chromium, pages: dict[str, Path]
) -> None:
    tab = browser.tab()
    tab.send(
        "Page.addScriptToEvaluateOnNewDocument",
        source="window.hits = 0; window.hacked = () => { hits += 1; };",
    )
    tab.open(pages[name])
    tab.value("for (const finding of document.querySelectorAll('.finding')) finding.open = true")
    tab.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert not tab.value("document.querySelectorAll('[data-body]').length")
    assert tab.requests() == [pages[name].as_uri()]
    assert tab.complaints() == []
    assert tab.value("hits") == 0


def test_findings_are_filtered_by_keyboard(browser: Chromium, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["later"])
    assert visible(tab) == 40
    tab.press("/", "/", code=191)
    assert focused(tab) == "text"
    tab.send("Input.insertText", text="SERVICE-1")
    assert visible(tab) == 11
    assert tab.value("document.getElementById('shown').textContent") == "11 of 40 findings"
    assert tab.value("document.querySelector('.count').textContent") == "11"
    tab.tab_key()
    assert focused(tab) == "section"
    tab.tab_key()
    assert focused(tab) == "breaks"
    tab.space()
    assert visible(tab) == 0
    assert tab.value("document.querySelector('.group').checkVisibility()") is False
    tab.tab_key()
    tab.enter()
    tab.value("new Promise((done) => setTimeout(done))")
    assert visible(tab) == 40
    assert tab.value("document.getElementById('shown').textContent") == "40 findings"


def test_a_finding_is_opened_by_keyboard_and_its_details_are_made_then(
    browser: Chromium, pages: dict[str, Path]
) -> None:
    tab = opened(browser, pages["later"])
    tab.value("document.querySelectorAll('summary')[5].focus()")
    finding = "document.querySelectorAll('.finding')[5]"
    assert tab.value(f"{finding}.querySelectorAll('.hop').length") == 0
    made = tab.send(
        "Runtime.evaluate",
        expression=f"new Promise((done) => {finding}.addEventListener('toggle', () => setTimeout(done)))",
    )["result"]["objectId"]
    tab.enter()
    tab.send("Runtime.awaitPromise", promiseObjectId=made)
    first = "document.querySelectorAll('.finding')[0]"
    hops = "[...{}.querySelectorAll('.hop')].map((hop) => hop.textContent)"
    assert tab.value(hops.format(finding)) == tab.value(hops.format(first)) != []


@pytest.mark.parametrize("name", ["all", "packet", "coverage", "plan"])
@pytest.mark.parametrize(
    "options", [{}, {"dark": True}, {"media": "print"}, {"media": "print", "dark": True}]
)
def test_every_text_has_contrast(
    name: str, options: dict[str, object], browser: Chromium, pages: dict[str, Path]
) -> None:
    tab = opened(browser, pages[name], **options)
    tab.value("for (const details of document.querySelectorAll('details')) details.open = true")
    result = tab.value(CONTRAST)
    assert result["texts"] > 20
    assert result["weak"] == []


@pytest.mark.parametrize("name", ["all", "packet", "coverage", "plan"])
@pytest.mark.parametrize("width", [320, 375, 1280, 1920])
def test_no_page_is_wider_than_the_screen(
    name: str, width: int, browser: Chromium, pages: dict[str, Path]
) -> None:
    tab = opened(browser, pages[name], width=width)
    tab.value("for (const details of document.querySelectorAll('details')) details.open = true")
    assert tab.value("document.documentElement.scrollWidth") <= width


def test_every_control_has_a_name(browser: Chromium, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["all"])
    nodes = tab.send("Accessibility.getFullAXTree")["nodes"]
    roles = {"searchbox", "combobox", "textbox", "checkbox", "button", "link", "DisclosureTriangle", "group"}
    controls = [node for node in nodes if not node["ignored"] and node["role"]["value"] in roles]
    named = [node for node in controls if node["role"]["value"] != "group"]
    assert len(named) > 10
    assert not [node for node in named if not node["name"]["value"].strip()]


def test_without_scripts_all_findings_are_shown_and_no_filter(
    browser: Chromium, pages: dict[str, Path]
) -> None:
    tab = opened(browser, pages["later"], scripts=False)
    tab.send("Emulation.setScriptExecutionDisabled", value=False)  # for the questions of this test
    assert visible(tab) == 40
    assert not tab.value("document.getElementById('filters').checkVisibility()")
    assert tab.value("document.querySelector('noscript').textContent").strip()
    assert tab.value("[...document.querySelectorAll('.command')].length") == 40
    assert tab.value("document.querySelectorAll('.finding')[0].querySelectorAll('.hop').length") > 10


def test_few_findings_are_printed_with_their_details(browser: Chromium, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["later"])
    tab.value("dispatchEvent(new Event('beforeprint'))")
    assert tab.value("document.querySelectorAll('.finding[open]').length") == 40
    assert not tab.value("document.querySelectorAll('[data-body]').length")
    tab.value("dispatchEvent(new Event('afterprint'))")
    assert tab.value("document.querySelectorAll('.finding[open]').length") == 0


@pytest.fixture(scope="module")
def large(many: Callable[[int], Summary], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of ten thousand findings, of which few are elements when it is opened."""
    page = tmp_path_factory.mktemp("large") / "large.html"
    page.write_text(assessment_page(many(10_000), version="1.2.3"))
    return page


def test_ten_thousand_findings_are_opened_and_filtered(browser: Chromium, large: Path) -> None:
    """With ``-s``, the milliseconds until the page is shown, and from a key to the filtered page."""
    tab = opened(browser, large)
    painted = "new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))"
    times = [tab.value(painted)]
    for text, count in (("service-77", 111), ("service-777", 11), ("", 10_000), ("team-5/", 100)):
        typed = (
            f"(() => {{ const field = document.getElementById('text'), start = performance.now();"
            f" field.value = {text!r}; field.dispatchEvent(new Event('input', {{bubbles: true}}));"
            f" return {painted}.then((end) => end - start); }})()"
        )
        times.append(tab.value(typed))
        said = tab.value("document.getElementById('shown').textContent")
        assert said == ("10000 findings" if count == 10_000 else f"{count} of 10000 findings")
        assert 0 < visible(tab) <= min(count, 1000)
        assert tab.value(f"document.querySelector('.finding:not([hidden])').textContent.includes({text!r})")
    print(*map(round, times))


def test_later_findings_become_elements_when_they_come_near(browser: Chromium, large: Path) -> None:
    tab = opened(browser, large)
    last = "[...document.querySelectorAll('.chunk')].at(-1)"
    assert tab.value(f"{last}.querySelectorAll('.finding').length") == 0
    frame = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
    tab.value(f"{last}.scrollIntoView(); {frame}")
    tab.value(frame)
    assert tab.value(f"{last}.querySelectorAll('.finding').length") == 50
    assert "service-9999:" in tab.value(f"{last}.textContent")
    assert tab.value(f"{last}.lastElementChild.open = true; {frame}") is None
    assert tab.value(f"{last}.lastElementChild.querySelectorAll('.hop').length") > 0
    assert tab.complaints() == []


def test_all_of_ten_thousand_findings_are_there_without_scripts(browser: Chromium, large: Path) -> None:
    tab = opened(browser, large, scripts=False)
    height = tab.send("Page.getLayoutMetrics")["cssContentSize"]["height"]
    assert height > 10_000 * 40
    tab.send("Emulation.setScriptExecutionDisabled", value=False)  # for the question of this test
    assert tab.value("document.querySelectorAll('.finding').length") == 10_000


def test_all_of_ten_thousand_findings_are_printed(browser: Chromium, large: Path) -> None:
    tab = opened(browser, large)
    tab.value("dispatchEvent(new Event('beforeprint'))")
    assert visible(tab) == 10_000
