"""Draw docs/review_*.webp: the review page on the sample edition, in Chromium.

Run `python docs/screenshots.py` in the root after `dvc repro`. Nothing is written into `reviews/`.
"""

import io
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from cleanset.review.reasons import REASON_KEYS

DOCS = Path("docs")
SIZE = (1280, 800)
LARGEST = 250_000
"""Bytes of an image."""

BALL = "n04254680"
BANANA = "n07753592"


def main() -> None:
    """Write the images."""
    with tempfile.TemporaryDirectory() as name:
        edition = Path(name)
        shutil.copy("params.yaml", edition)
        (edition / "reviews").mkdir()
        (edition / "data").symlink_to(Path("data").resolve())
        program = str(Path(sys.executable).parent / "cleanset")
        command = [program, "review", "serve", "--reviewer", "ada", "--no-browser"]
        server = subprocess.Popen(command, cwd=edition, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            address = re.search(r"http://\S+", server.stdout.readline())
            assert address is not None
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
                )
                page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
                page.goto(address[0])
                draw(page, address[0].partition("?")[0])
                browser.close()
        finally:
            server.kill()
            server.wait()


def draw(page: Page, address: str) -> None:
    """Go through the states of the page."""
    saved = yaml.safe_load(Path(f"reviews/ada/{BALL}.yaml").read_text())[BALL]
    page.goto(f"{address}?class={BALL}")
    page.wait_for_selector("#view")
    page.wait_for_timeout(6000)  # until the hints are there
    for _ in range(4):
        entry = saved[page.get_attribute("#view", "data-focus")]
        if entry["verdict"] == "clean":
            press(page, "c")
        else:
            press(page, "r", next(key for key, reason in REASON_KEYS.items() if reason == entry["reason"]))
    save(page, "class")
    page.goto(f"{address}?class={BANANA}")
    page.wait_for_selector("#view")
    page.wait_for_timeout(3000)
    watermarked = page.locator("figure", has=page.locator(".sign", has_text="text")).first
    watermarked.click()
    press(page, "x")
    page.wait_for_selector("[data-look=crop][data-ready]", state="attached")
    for _ in range(40):
        page.keyboard.press("Shift+ArrowUp")
    press(page, "w", "v")
    save(page, "crop")
    press(page, "Escape", "?")
    save(page, "keys")
    press(page, "Escape", "/")
    page.locator(".q-dialog input").press_sequentially("ball", delay=60)
    save(page, "search")


def press(page: Page, *keys: str) -> None:
    """Press keys, each after the page has answered the one before."""
    for key in keys:
        page.keyboard.press(key)
        page.wait_for_timeout(600)


def save(page: Page, name: str) -> None:
    """Write the screen as WebP."""
    page.wait_for_timeout(1500)
    path = DOCS / f"review_{name}.webp"
    Image.open(io.BytesIO(page.screenshot())).save(path, quality=80, method=6)
    size = path.stat().st_size
    print(f"{path}: {size:,} bytes")
    if size > LARGEST:
        sys.exit(f"{path}: more than {LARGEST:,} bytes")


if __name__ == "__main__":
    main()
