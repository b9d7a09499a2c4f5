"""Photograph the sample's pages into docs/*.webp, in Chromium, light and dark; the judge page has one color scheme.

Run `python docs/screenshots.py` in the root after `dvc repro` there and in the studies of robustness, attacks and the
contest. Nothing is written into `reviews/` or `studies/`.
"""

import io
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import yaml
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))
from cleanset.review.reasons import REASON_KEYS
from tests.browser_tab import PATIENCE, WINDOW, Server, started
from tests.studies.contest.judging_page import ADA, Judging, serve, unjudged

DOCS = Path("docs")
Scheme = Literal["light", "dark"]
SCHEMES: Mapping[Scheme, str] = MappingProxyType({"light": "", "dark": "-dark"})
"""The ends of the names of images by color scheme."""
LARGEST = 250_000
"""Bytes of an image."""

VIEWS = {
    "report": ("report/classes/n04254680.html", "report/rejected.html"),
    "robustness": ("studies/robustness/report/index.html#ce", "studies/robustness/report/images.html"),
    "attacks": ("studies/attacks/report/index.html#success", "studies/attacks/report/index.html#images"),
    "contest_page": ("studies/contest/results/page.html", "studies/contest/results/page.html#images"),
}
"""Two places of the pages of the edition and of each study, which are shown next to each other."""
VIEW = (820, 1010)
GAP = 20

BALL = "n04254680"
BANANA = "n07753592"
CORNERS = [
    [76, 25], [81, 23], [88, 29], [92, 33], [109, 30], [126, 37], [124, 42], [132, 50], [135, 61], [132, 75], [124, 92],
    [113, 110], [105, 120], [96, 121], [80, 109], [60, 87], [52, 71], [52, 57], [58, 50], [54, 44], [64, 36], [82, 31],
]  # fmt: skip
"""Of an outline at the judge page."""


def main() -> None:
    """Write the images."""
    with (
        tempfile.TemporaryDirectory() as name,
        sync_playwright() as playwright,
        started(playwright.chromium) as browser,
    ):
        judge(browser, Path(name))
        for scheme, suffix in SCHEMES.items():
            for view in VIEWS:
                save(side_by_side(browser, view, scheme), f"{view}{suffix}")
        edition = Path(name) / "edition"
        (edition / "reviews").mkdir(parents=True)
        shutil.copy("params.yaml", edition)
        (edition / "data").symlink_to(Path("data").resolve())
        server = Server(edition, "review", "serve", "--reviewer", "ada", installed=True)
        try:
            for scheme, suffix in SCHEMES.items():
                page = browser.new_context(viewport=WINDOW, color_scheme=scheme).new_page()
                page.goto(server.address)
                review(page, server.page, suffix)
        finally:
            server.kill()


def side_by_side(browser: Browser, name: str, scheme: Scheme) -> Image.Image:
    """Both views of a name in VIEWS."""
    both = Image.new("RGB", (2 * VIEW[0] + GAP, VIEW[1]), "#808488")
    for place, view in enumerate(VIEWS[name]):
        page = browser.new_page(viewport={"width": VIEW[0], "height": VIEW[1]}, color_scheme=scheme)
        path, _, anchor = view.partition("#")
        page.goto(f"{Path(path).resolve().as_uri()}#{anchor}")
        page.wait_for_timeout(500)  # until images further down are there
        both.paste(shot(page), (place * (VIEW[0] + GAP), 0))
        page.close()
    return both


def review(page: Page, address: str, suffix: str) -> None:
    """Go through the states of the review page."""
    saved = yaml.safe_load(Path(f"reviews/ada/{BALL}.yaml").read_text())[BALL]
    page.goto(f"{address}?class={BALL}")
    page.wait_for_selector("#view")
    page.locator(".sign").first.wait_for(timeout=PATIENCE)  # until the hints are there
    for _ in range(4):
        entry = saved[page.get_attribute("#view", "data-focus")]
        if entry["verdict"] == "clean":
            press(page, "c")
        else:
            press(page, "r", next(key for key, reason in REASON_KEYS.items() if reason == entry["reason"]))
    save(shot(page), f"review_class{suffix}")
    page.goto(f"{address}?class={BANANA}")
    page.wait_for_selector("#view")
    watermarked = page.locator("figure", has=page.locator(".sign", has_text="text")).first
    watermarked.wait_for(timeout=PATIENCE)
    watermarked.click()
    press(page, "x")
    page.wait_for_selector("[data-look=crop][data-ready]", state="attached")
    for _ in range(40):
        page.keyboard.press("Shift+ArrowUp")
    press(page, "w", "v")
    save(shot(page), f"review_crop{suffix}")
    press(page, "Escape", "?")
    save(shot(page), f"review_keys{suffix}")


def press(page: Page, *keys: str) -> None:
    """Press keys, each after the page has answered the one before."""
    for key in keys:
        page.keyboard.press(key)
        page.wait_for_timeout(600)
    page.wait_for_timeout(600)


def judge(browser: Browser, folder: Path) -> None:
    """A question at the judge page, and an outline."""
    server = serve(unjudged(Path(), folder), ADA)
    try:
        at = Judging(browser.new_page(viewport=WINDOW), server.address)
        at.press("Enter", "4")
        save(shot(at.page), "judge_question")
        at.press("1")
        at.draw(CORNERS)
        save(shot(at.page), "judge_outline")
    finally:
        server.kill()


def shot(page: Page) -> Image.Image:
    """What the window shows."""
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def save(image: Image.Image, name: str) -> None:
    """Write an image as WebP."""
    path = DOCS / f"{name}.webp"
    image.save(path, quality=80, method=6)
    size = path.stat().st_size
    print(f"{path}: {size:,} bytes")
    if size > LARGEST:
        sys.exit(f"{path}: more than {LARGEST:,} bytes")


if __name__ == "__main__":
    main()
