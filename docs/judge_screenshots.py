"""Draw docs/judge_*.webp: the judge page of the sample's contest, in Chromium.

Run `python docs/judge_screenshots.py` in the root. Nothing is written into `studies/contest`.
"""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.browser_tab import WINDOW, started
from tests.studies.contest.judging_page import ADA, Judging, serve, unjudged

DOCS = Path("docs")
ROOT = Path()
CORNERS = [
    [76, 25], [81, 23], [88, 29], [92, 33], [109, 30], [126, 37], [124, 42], [132, 50], [135, 61], [132, 75], [124, 92],
    [113, 110], [105, 120], [96, 121], [80, 109], [60, 87], [52, 71], [52, 57], [58, 50], [54, 44], [64, 36], [82, 31],
]  # fmt: skip


def main() -> None:
    """Write the images."""
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        server = serve(unjudged(ROOT, Path(name)), ADA)
        try:
            with started(playwright.chromium) as browser:
                at = Judging(browser.new_page(viewport=WINDOW), server.address)
                at.press("Enter", "4")
                save(at.page, "judge_question")
                at.press("1")
                at.draw(CORNERS)
                save(at.page, "judge_outline")
        finally:
            server.kill()


def save(page: Page, name: str) -> None:
    """Store a picture of the screen."""
    Image.open(io.BytesIO(page.screenshot())).save(DOCS / f"{name}.webp", quality=80, method=6)


if __name__ == "__main__":
    main()
