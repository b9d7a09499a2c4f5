"""The review page in Chromium: how large images are shown, and how soon on a slow link, by the number of images.

`python bench/seeing.py FOLDER` shows the JPEG files below a folder in place of drawn images.
"""

import sys
from pathlib import Path

import pandas as pd
import yaml
from playwright.sync_api import Browser, Page

import page as page_bench
import simulation
from cleanset.dataset.ilsvrc import image_id
from cleanset.edition.paths import Edition
from cleanset.tables import CANDIDATES, INDEX, write_table
from cleanset.vocabulary import class_keys
from measuring import print_machine, print_table, scratch

COUNTS = (1, 3, 5, 8)
WINDOWS = ((640, 400), (1280, 800), (1440, 900), (1920, 940))
"""The first is 1,280 x 800 at 200 %."""

CLASSES = 4
ROLE = "standard"
BITS_PER_SECOND = 1_400_000
LATENCY_MILLISECONDS = 50
MAX_SECONDS = 8.0

AREAS = """
async () => { const { placeOf } = await import("./static/looks.js");
  return [...document.querySelectorAll("#cards img[data-image]")].map((image) => {
    const { left, top, width, height } = placeOf(image);
    const { right, bottom } = document.querySelector("#cards").getBoundingClientRect();
    return [width * height, left + width <= right + 1 && top + height <= bottom + 1]; }) }
"""
"""Area and whether it is whole on the screen, of each image."""

CARDS = """
() => { const images = [...document.querySelectorAll("#cards img[data-image]")];
  return images.length > 0 && images.every((each) => each.complete && each.naturalWidth) }
"""


def main() -> None:
    """Make the editions, measure, print."""
    images = page_bench.images_of(sys.argv[1:])
    print_machine()
    areas: dict[int, list[str]] = {}
    with page_bench.chromium() as browser:
        for count in COUNTS:
            with scratch() as folder:
                make_edition(folder, count, images)
                with page_bench.server(folder) as (_, address):
                    areas[count] = [shown(browser, address, window) for window in WINDOWS]
                    if count == 3:
                        first, second = over_slow_link(browser, address), over_slow_link(browser, address, "n")
    header = ("images", *(f"{width:,} x {height}" for width, height in WINDOWS))
    rows = [(str(count), *found) for count, found in areas.items()]
    print_table(
        "Mean area of an image in square pixels of the page, and how many are whole on the screen", header, rows
    )
    print_table(
        f"Three images at {BITS_PER_SECOND / 1e6:.1f} Mbit/s",
        ("what", "seconds", "limit", "kB"),
        [("page and first class", *first), ("the next class, by n", *second)],
    )


def make_edition(folder: Path, count: int, images: list[bytes]) -> None:
    """One model, a few classes, of each of which the page asks for `count` images."""
    keys = class_keys()[:CLASSES]
    simulation.write_params(folder, dataset={"images": "data/raw/images.bin", "classes": list(keys)})
    params = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    params["models"] = {ROLE: params["models"][ROLE]}
    params["export"]["images_per_class"] = count
    params.pop("count")  # of all models
    (folder / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    edition = Edition(folder)
    edition.reviews.mkdir()
    each = count + 4
    write_table(edition.index, simulation.index_of([[number // each] for number in range(each * CLASSES)]), INDEX)
    page_bench.write_images(folder, images)
    rows = [
        (number // each, image_id(number + 1), number % each + 1, "top5" if number % each < 5 else "reserve")
        for number in range(each * CLASSES)
    ]
    table = pd.DataFrame(rows, columns=["class_index", "image_id", "rank", "tier"])
    write_table(edition.candidates(ROLE), table.assign(confidence=0.5, log_odds=0.0), CANDIDATES)


def shown(browser: Browser, address: str, window: tuple[int, int]) -> str:
    page = browser.new_page(viewport={"width": window[0], "height": window[1]})
    page.goto(address)
    page.wait_for_function(CARDS)
    found = page.evaluate(AREAS)
    page.close()
    return f"{sum(area for area, _ in found) / len(found):,.0f}; {sum(is_whole for _, is_whole in found)}"


def over_slow_link(browser: Browser, address: str, key: str = "") -> tuple[str, str, str]:
    """Seconds and kB until the images of a class are there: from nothing, or by a key once they are."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    conditions = {"offline": False, "latency": LATENCY_MILLISECONDS, "uploadThroughput": BITS_PER_SECOND / 8}
    network.send("Network.emulateNetworkConditions", conditions | {"downloadThroughput": BITS_PER_SECOND / 8})
    sizes: list[float] = []
    network.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    began = _now(page)
    page.goto(address, wait_until="commit")
    page.wait_for_function(CARDS, timeout=120_000)
    if key:
        before = page.get_attribute("#view", "data-class-key")
        sizes.clear()
        began = _now(page)
        page.keyboard.press(key)
        page.wait_for_function("before => document.querySelector('#view').dataset.classKey !== before", arg=before)
        page.wait_for_function(CARDS, timeout=120_000)
    seconds = _now(page) - began
    page.close()
    return f"{seconds:.1f}", f"{MAX_SECONDS:.0f}", f"{sum(sizes) / 1000:,.0f}"


def _now(page: Page) -> float:
    now: float = page.evaluate("Date.now() / 1000")
    return now


if __name__ == "__main__":
    main()
