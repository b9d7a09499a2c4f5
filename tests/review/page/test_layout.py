"""What is on the screen: nothing cut, nothing jumping, the zoom kept, faults told."""

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from cleanset.review.page import server
from tests.browser_tab import Server

from .conftest import Open, Serve
from .reviewing import TabAlone, reviews

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
"""Cards outside their area, or smaller than their content."""

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
"""Whether each card shows its image, at least 60 pixels high; asked in one go, for the page may be drawn again."""

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


@pytest.mark.long
@pytest.mark.parametrize(
    "size", [(853, 480), *(pytest.param(each, marks=pytest.mark.long) for each in ((1280, 720), (1920, 1080)))], ids=str
)
def test_nothing_is_cut_and_nothing_jumps(unchanged: Server, visit: Open, size: tuple[int, int]) -> None:
    """In a small window, in a large one, and in a small one at 150 %."""
    at = visit(unchanged)
    at.resize(size[0], size[1])
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


@pytest.mark.long
def test_the_zoom_is_kept_from_image_to_image(unchanged: Server, visit: Open) -> None:
    at = visit(unchanged)
    at.press("Enter")
    at.page.wait_for_selector("[data-look=zoom][data-ready]", state="attached")
    at.page.keyboard.press("2")
    for _ in range(2):
        at.press("ArrowRight")
        at.page.wait_for_selector("[data-look=zoom][data-ready]", state="attached")
        assert at.page.inner_text("#zoom-ratio") == "200 %"
    assert "200 %, smoothed" in at.page.inner_text("#below")
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


@pytest.mark.long
def test_a_message_covers_no_card(unchanged: Server, visit: Open) -> None:
    at = visit(unchanged)
    for width, height in ((1280, 800), (1000, 700), (800, 600), (700, 500)):
        at.resize(width, height)
        at.press("ArrowRight", "ArrowLeft")  # the message of the size before goes
        before = at.page.evaluate(TOPS)
        at.press("f", "c")
        assert at.notice == "No class with this filter: conflicts."
        assert at.page.evaluate(BELOW_CARDS) >= 0
        assert at.page.evaluate(TOPS) == before


def test_the_keys_fit_or_are_scrolled(unchanged: Server, visit: Open) -> None:
    at = visit(unchanged)
    at.press("?")
    for width, height in ((1280, 800), (1024, 640), (800, 600), (640, 480)):
        at.resize(width, height)
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


@pytest.mark.long
def test_the_end_leads_to_rules_verdicts_and_short_classes(edition: Path, start: Serve, visit: Open) -> None:
    before = TabAlone(edition, share="1/12")
    short = before.wnid
    while len(before.cursor.asked()) > 1:
        before.type("r", "b")
    at = visit(start("ada", "--share", "1/12"))
    assert at.wnid == short
    at.press("r", "b")
    assert at.wnid == ""
    for key in ("b", "Escape", "h", "Escape"):
        at.page.click(f"#view.end .aids [data-key={key}]") if key != "Escape" else at.press(key)
        at.page.wait_for_selector("#overlay", state="detached" if key == "Escape" else "attached")
    at.page.click(f"#view.end [data-visit={short}]")
    at.page.wait_for_selector(f"#view[data-class-key={short}]")
    assert "lacks 3" in at.page.inner_text("#view .state")
    at.press("e")
    assert "on card 1 (ILSVRC2012_val_" in at.page.inner_text(".q-dialog .title")


@pytest.mark.long
def test_an_archive_that_is_missing_or_damaged_is_reported_on_the_card(
    edition: Path, start: Serve, visit: Open
) -> None:
    data = (edition / "data").resolve()
    (edition / "data").unlink()
    (edition / "data" / "raw").mkdir(parents=True)
    for part in data.iterdir():
        if part.name != "raw":
            (edition / "data" / part.name).symlink_to(part)
    archive = edition / "data" / "raw" / "ILSVRC2012_img_val.tar"
    whole = (data / "raw" / archive.name).read_bytes()
    at = visit(start(alone=True))
    for content, told in ((None, archive.name), (whole.replace(b"\xff\xda", b"\xff\xdb"), "has SHA-256")):
        if content:
            archive.write_bytes(content)
            at.page.reload()
            at.ready()
        # until the image has been asked for again, the card tells the last fault
        at.page.wait_for_selector(f"[data-card='{at.focus}'] .fault:has-text('{told}')")
        at.press("c")
        assert at.notice.startswith(f"Not saved: {at.focus} cannot be shown.")
        assert told in at.notice
        at.press("Enter", "Escape")
        assert (at.mode, reviews(edition)) == ("class", {})
    archive.write_bytes(whole)
    at.page.reload()
    at.ready()
    at.page.wait_for_selector(".fault", state="detached")
    first = at.focus
    at.press("c")
    assert list(next(iter(reviews(edition).values()))) == [first]


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
    assert label.startswith("goldfish, image 1, rank ")
    assert label.endswith(", not reviewed yet")
    at.press("c")
    assert (at.page.get_attribute(f"[data-card='{first}'] img", "alt") or "").endswith(", clean")


@pytest.mark.long
def test_what_is_under_a_dialog_is_out_of_reach(unchanged: Server, visit: Open) -> None:
    at = visit(unchanged)
    at.press("x")
    for _ in range(25):
        at.page.keyboard.press("Tab")
        assert at.page.evaluate("document.activeElement.closest('#view') === null")
