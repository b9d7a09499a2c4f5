"""Photograph the sample edition's report into docs/report.webp: the first page, a contact sheet.

Run `python docs/report.py` in the root after `dvc repro`; it needs Chromium.
"""

import io
import shutil
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

WIDTH, HEIGHT, GAP = 820, 1010, 20


def main() -> None:
    """Write the image."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        views = [view(browser, name) for name in ("index.html", "sheet-1.html#n04254680")]
        browser.close()
    both = Image.new("RGB", (2 * WIDTH + GAP, HEIGHT), "#c9ccd1")
    for place, image in enumerate(views):
        both.paste(image, (place * (WIDTH + GAP), 0))
    both.save("docs/report.webp", quality=82, method=6)


def view(browser: Browser, name: str) -> Image.Image:
    """What a window of WIDTH x HEIGHT shows of a page."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
    page.goto(f"{(Path('report')).resolve().as_uri()}/{name}")
    image = Image.open(io.BytesIO(page.screenshot()))
    page.close()
    return image.convert("RGB")


if __name__ == "__main__":
    main()
