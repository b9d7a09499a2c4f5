"""What is on the screen: nothing cut, nothing jumping, the zoom kept, faults told."""

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from cleanset.review.page import server
from tests.browser_tab import Server

from .conftest import Open, Serve
from .reviewing import Reviewing, reviews

SIZES = {"small": (1280, 720), "large": (1920, 1080), "small at 150 %": (853, 480)}

CUT = """
() => [...document.querySelectorAll("#view figcaption *, footer *, aside *")]
  .filter((each) => each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0
    && getComputedStyle(each).overflowX !== "visible")
  .map((each) => each.className + ": " + each.textContent.trim().slice(0, 60))
"""
"""Elements whose text is cut at the right."""

SPILLED = """
() => { const cards = document.querySelector("#cards").getBoundingClientRect();
  return [...document.querySelectorAll("[data-card]")].filter((card) => {
    const own = card.getBoundingClientRect();
    return own.right > cards.right + 1 || own.left < cards.left - 1
      || [...card.querySelectorAll("figcaption, .photo")].some((part) => {
           const inner = part.getBoundingClientRect();
           return inner.bottom > own.bottom + 1 || inner.right > own.right + 1; });
  }).length }
"""
"""Cards that do not lie inside their area, or that do not hold what is in them."""

COVERED = """
() => document.querySelector("#cards").getBoundingClientRect().bottom
  - document.querySelector("footer nav").getBoundingClientRect().top
"""
"""How far the line of keys covers the cards, in pixels, while nothing is asked."""

ALL_LARGE = """
() => { const photos = [...document.querySelectorAll("[data-card] .photo")];
  return photos.length > 0 && photos.length === document.querySelectorAll("[data-card]").length
    && photos.every((photo) => photo.getBoundingClientRect().height >= 60) }
"""
"""Whether each card shows its image, at least 60 pixels high; asked in one go, for the page may be drawn anew."""

SCROLL_TOP = "() => document.querySelector('#cards').scrollTop"
AT_THE_END = """
() => { const cards = document.querySelector("#cards"); cards.scrollTo(0, cards.scrollHeight)
  return document.querySelector("#more").hidden }
"""
TOPS = "() => [...document.querySelectorAll('#view img')].map((image) => image.getBoundingClientRect().top)"


def test_no_script_imports_in_a_circle() -> None:
    scripts = Path(server.STATIC).glob("*.js")
    imports = {path.name: set(re.findall(r'from "\./(.+)";', path.read_text("utf-8"))) for path in scripts}
    assert "viewer.js" in imports["keys.js"]
    TopologicalSorter(imports).prepare()  # raises CycleError


@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_cut_and_nothing_jumps(unchanged: Server, visit: Open, size: str) -> None:
    at = visit(unchanged)
    width, height = SIZES[size]
    at.page.set_viewport_size({"width": width, "height": height})
    for every in (False, True):
        if every:
            at.press("m")
        assert at.page.evaluate(CUT) == []
        assert at.page.evaluate(SPILLED) == 0
        assert at.page.evaluate(COVERED) <= 0
        at.page.wait_for_function(ALL_LARGE)
        before = at.page.evaluate(TOPS)
        for key in ("r", "Escape", "f", "Escape", "f", "c"):
            at.press(key)
            assert at.page.evaluate(TOPS) == before
    hidden = at.page.evaluate(
        "() => { const { bottom } = document.querySelector('#cards').getBoundingClientRect();"
        " return [...document.querySelectorAll('[data-card]')]"
        ".filter((card) => card.getBoundingClientRect().top > bottom - 24).length }"
    )
    assert hidden > 0
    assert at.page.inner_text("#more") == f"▼ {hidden} more"
    at.page.wait_for_function(AT_THE_END)
    scrolled = at.page.evaluate(SCROLL_TOP)
    at.press("r")
    assert at.page.evaluate(SCROLL_TOP) == scrolled > 0


def test_the_zoom_is_kept_from_image_to_image(unchanged: Server, visit: Open) -> None:
    at = visit(unchanged)
    at.press("Enter")
    at.page.wait_for_selector("[data-look=zoom][data-ready]", state="attached")
    at.page.keyboard.press("2")
    for _ in range(2):
        at.press("ArrowRight")
        at.page.wait_for_selector("[data-look=zoom][data-ready]", state="attached")
        assert at.page.inner_text("#zoom-ratio") == "200 %"
    at.page.keyboard.press("0")
    whole = at.page.inner_text("#zoom-ratio")
    assert whole != "200 %"
    at.press("r")
    assert at.mode == "reason"
    assert at.page.is_visible("#overlay.zoom .cropper-canvas img")
    assert at.page.is_visible("#below button[data-key=w]")


BELOW_CARDS = """
() => document.querySelector("footer .notice").getBoundingClientRect().top
  - document.querySelector("#cards").getBoundingClientRect().bottom
"""
SIZE_OF_SHEET = (
    "() => { const sheet = document.querySelector('.help .sheet');"
    """
  return [sheet.scrollHeight - sheet.clientHeight, sheet.scrollWidth - sheet.clientWidth, sheet.scrollTop] }
"""
)
OVERPRINTED = """
() => { const sections = [...document.querySelectorAll(".help section")];
  return sections.flatMap((section) => [...section.querySelectorAll("td, td kbd")].filter((each) =>
    each.getBoundingClientRect().right > section.getBoundingClientRect().right + 1).map((each) => each.textContent)) }
"""


@pytest.mark.parametrize("size", [(1280, 800), (1000, 700), (800, 600), (700, 500)])
def test_a_message_covers_no_card(unchanged: Server, visit: Open, size: tuple[int, int]) -> None:
    at = visit(unchanged)
    width, height = size
    at.page.set_viewport_size({"width": width, "height": height})
    before = at.page.evaluate(TOPS)
    at.press("f", "c")
    assert at.notice == "No class here: conflicts."
    assert at.page.evaluate(BELOW_CARDS) >= 0
    assert at.page.evaluate(TOPS) == before


def test_the_keys_fit_or_are_scrolled(unchanged: Server, visit: Open) -> None:
    at = visit(unchanged)
    at.press("?")
    for width, height in ((1280, 800), (1024, 640), (800, 600), (640, 480)):
        at.page.set_viewport_size({"width": width, "height": height})
        below, beside, _ = at.page.evaluate(SIZE_OF_SHEET)
        assert (beside, at.page.evaluate(OVERPRINTED)) == (0, [])
        assert below <= 0 or height < 800
    for key in ("ArrowDown", "PageDown", "Space", "End"):
        at.page.keyboard.press("Home")
        at.page.keyboard.press(key)
        assert at.page.evaluate(SIZE_OF_SHEET)[2] > 0
    assert at.mode == "help"
    at.press("Escape")
    assert at.mode == "class"


def test_a_narrow_window_still_names_the_class(unchanged: Server, visit: Open) -> None:
    at = visit(unchanged)
    for width in (600, 330):
        at.page.set_viewport_size({"width": width, "height": 800})
        assert at.page.evaluate(
            "() => document.querySelector('#view h1').getBoundingClientRect().top"
            " >= document.querySelector('#narrow').getBoundingClientRect().bottom"
        )


def test_the_search_marks_the_state_of_each_class(unchanged: Server, visit: Open) -> None:
    at = visit(unchanged)
    at.press("/")
    at.page.locator(".q-dialog input").fill("goldfish")
    at.page.wait_for_selector(".hits .q-item--active:has-text('goldfish')")
    marked = at.page.locator(".hits .q-item--active .q-item__section--side").inner_text()
    assert marked.endswith(" to review")


def test_the_end_leads_to_rules_verdicts_and_short_classes(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start("ada", "--share", "1/12"))
    short = at.wnid
    while at.wnid:
        at.press("r", "b")
    for key in ("b", "Escape", "h", "Escape"):
        at.page.click(f"#view.end .aids [data-key={key}]") if key != "Escape" else at.press(key)
        at.page.wait_for_selector("#overlay", state="detached" if key == "Escape" else "attached")
    at.page.click(f"#view.end [data-visit={short}]")
    at.page.wait_for_selector(f"#view[data-class-key={short}]")
    assert "lacks 3" in at.page.inner_text("#view .state")
    at.press("e")
    assert "on card 1 (ILSVRC2012_val_" in at.page.inner_text(".q-dialog .title")


@pytest.fixture
def archive(edition: Path) -> Path:
    """The archive of the edition, by itself, to be broken."""
    data = (edition / "data").resolve()
    (edition / "data").unlink()
    (edition / "data" / "raw").mkdir(parents=True)
    for part in data.iterdir():
        if part.name != "raw":
            (edition / "data" / part.name).symlink_to(part)
    archive = edition / "data" / "raw" / "ILSVRC2012_img_val.tar"
    archive.write_bytes((data / "raw" / archive.name).read_bytes())
    return archive


def test_a_missing_archive_is_told_on_the_card(edition: Path, archive: Path, start: Serve, visit: Open) -> None:
    kept = archive.rename(archive.with_suffix(".kept"))
    at = visit(start(alone=True))
    at.page.wait_for_selector(".fault")
    assert str(archive.name) in at.page.inner_text(f"[data-card='{at.focus}'] .fault")
    at.press("c")
    assert at.notice.startswith(f"Not saved. {at.focus} cannot be shown.")
    assert archive.name in at.notice
    kept.rename(archive)
    at.page.reload()
    at.ready()
    at.page.wait_for_selector(".fault", state="detached")
    first = at.focus
    at.press("c")
    assert list(next(iter(reviews(edition).values()))) == [first]


def test_a_broken_image_is_told_on_the_card(edition: Path, archive: Path, start: Serve, visit: Open) -> None:
    archive.write_bytes(archive.read_bytes().replace(b"\xff\xda", b"\xff\xdb"))
    at = visit(start(alone=True))
    at.page.wait_for_selector(".fault")
    assert "has SHA-256" in at.page.inner_text(f"[data-card='{at.focus}'] .fault")
    at.press("c")
    assert "cannot be shown" in at.notice
    at.press("Enter", "Escape")
    assert (at.mode, reviews(edition)) == ("class", {})


# accessibility: what the rules of axe-core ask for, as far as it concerns this page

UNNAMED = """
() => [...document.querySelectorAll("button, input, textarea, [role=dialog], [role=checkbox], img, [tabindex='0']")]
  .filter((each) => each.offsetParent !== null && !each.closest("[aria-hidden=true]"))
  .filter((each) => !(each.getAttribute("aria-label") || each.alt || each.innerText || each.title || "").trim())
  .map((each) => each.outerHTML.slice(0, 80))
"""

SCROLLED = """
() => [...document.querySelectorAll("*")].filter((each) => {
  const style = getComputedStyle(each);
  const scrolls = /auto|scroll/.test(style.overflowY) && each.scrollHeight > each.clientHeight + 1
    && each.offsetParent !== null;
  return scrolls && each.tabIndex < 0 && !each.querySelector("[tabindex='0'], button, input, textarea");
}).map((each) => each.outerHTML.slice(0, 80))
"""

CONTRAST = """
() => {
  const light = ([r, g, b]) => { const [x, y, z] = [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z; };
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const over = ([r, g, b, alpha = 1], below) => [r, g, b].map((c, i) => alpha * c + (1 - alpha) * below[i]);
  const ground = (each) => { for (let at = each; at; at = at.parentElement) {
    const colour = parse(getComputedStyle(at).backgroundColor);
    if (colour.length < 4 || colour[3] === 1) return colour.slice(0, 3); } return [255, 255, 255]; };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const poor = [];
  while (walker.nextNode()) {
    const each = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || each.closest("script, style, [aria-hidden=true]")) continue;
    if (!each.checkVisibility() || each.offsetParent === null) continue;
    const [color, below] = [parse(getComputedStyle(each).color), ground(each)];
    const [a, b] = [light(over(color, below)), light(below)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(`${ratio.toFixed(2)} ${each.className}: ${each.textContent.trim().slice(0, 40)}`);
  }
  return [...new Set(poor)];
}
"""

STATES = {
    "class": (), "every": ("m",), "reason": ("r",), "crop": ("x",), "zoom": ("Enter",), "help": ("?",),
    "filter": ("f",), "note": ("e",), "search": ("/",),
}  # fmt: skip


@pytest.mark.parametrize("state", STATES)
def test_everything_is_named_and_can_be_read(unchanged: Server, visit: Open, state: str) -> None:
    at = visit(unchanged)
    at.press(*STATES[state])
    check_accessible(at)
    if state in ("crop", "zoom", "help", "note", "search"):
        assert at.page.locator("[role=dialog][aria-label]").count() == 1


def test_verdicts_are_named_and_can_be_read(start: Serve, visit: Open) -> None:
    at = visit(start())
    at.press("c", "r", "w", "u")
    check_accessible(at)


def check_accessible(at: Reviewing) -> None:
    at.page.wait_for_timeout(1200)
    assert at.page.evaluate(UNNAMED) == []
    assert at.page.evaluate(SCROLLED) == []
    assert at.page.evaluate(CONTRAST) == []
    assert at.page.get_attribute("html", "lang") == "en-US"
    assert at.page.locator("main main").count() == 0


def test_cards_are_reached_by_tab(start: Serve, visit: Open) -> None:
    at = visit(start())
    first, second = at.shown[:2]
    for _ in range(3):  # past the buttons for the rules and for looking back
        at.page.keyboard.press("Tab")
    assert at.page.evaluate("document.activeElement.dataset.card") == first
    before = at.of_view("pressed")
    at.page.keyboard.press("Tab")
    at.answered(before)
    assert at.focus == second
    assert at.page.evaluate("document.activeElement.dataset.card") == second
    at.press("ArrowLeft")
    assert at.page.evaluate("document.activeElement.dataset.card") == first
    label = at.page.get_attribute(f"[data-card='{first}'] img", "alt")
    assert label is not None
    assert label.startswith("goldfish, image 1, top5 ")
    assert label.endswith(", not reviewed yet")
    at.press("c")
    assert (at.page.get_attribute(f"[data-card='{first}'] img", "alt") or "").endswith(", clean")


def test_what_lies_under_a_dialog_is_out_of_reach(unchanged: Server, visit: Open) -> None:
    at = visit(unchanged)
    at.press("x")
    for _ in range(25):
        at.page.keyboard.press("Tab")
        assert at.page.evaluate("document.activeElement.closest('#view') === null")
