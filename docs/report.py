"""Photograph the sample's pages into docs/: report, study of robustness, attacks, contest; two views of each.

Run `python docs/report.py` in the root after `dvc repro` there and in the three studies; it needs Chromium.
"""

import io
import shutil
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

WIDTH = 820
HEIGHT = 1010
GAP = 20
VIEWS = {
    "report": ("report/index.html", "report/sheet-1.html#n04254680"),
    "robustness": ("studies/robustness/report/index.html#ce", "studies/robustness/report/images.html"),
    "attacks": ("studies/attacks/report/index.html#success", "studies/attacks/report/index.html#images"),
    "contest_page": ("studies/contest/results/page.html", "studies/contest/results/page.html#images"),
}


def main() -> None:
    """Write the images."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, pages in VIEWS.items():
            both = Image.new("RGB", (2 * WIDTH + GAP, HEIGHT), "#c9ccd1")
            for place, page in enumerate(pages):
                both.paste(view(browser, page), (place * (WIDTH + GAP), 0))
            both.save(f"docs/{name}.webp", quality=82, method=6)
        browser.close()


def view(browser: Browser, name: str) -> Image.Image:
    """The part of a page that a window of WIDTH x HEIGHT shows."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
    path, _, anchor = name.partition("#")
    page.goto(f"{Path(path).resolve().as_uri()}#{anchor}")
    page.wait_for_timeout(500)  # until images further down are there
    image = Image.open(io.BytesIO(page.screenshot()))
    page.close()
    return image.convert("RGB")


if __name__ == "__main__":
    main()
