"""The review page on 1,000 classes with 15 candidates each: its start, turns and growth; its start on 5,000 classes.

`python bench/page.py FOLDER` shows the JPEG files below a folder in place of drawn images.
"""

import http.client
import io
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import yaml
from PIL import Image, ImageFilter
from playwright.sync_api import Browser, Page, sync_playwright

import simulation
from cleanset.classes import MAX_CLASSES, ClassName, ClassTable, use_classes
from cleanset.dataset.ilsvrc import CLASSES
from cleanset.edition.paths import Edition
from cleanset.files import sha256
from cleanset.stages import intersect, select
from cleanset.tables import INDEX, LOCATIONS, read_table, write_table
from measuring import BIN, Measure, print_machine, print_measures, scratch

CANDIDATES = 15
LARGE = MAX_CLASSES
DISTINCT = 300
"""Drawn images, repeated under 15,000 ids."""

ROUNDS = 5
TURNS = 1000
SETTLED = 20
LOOKING_SECONDS = 0.7
"""Seconds that a reviewer looks at a class."""

START_SECONDS = 3.0
TURN_MILLISECONDS = 100.0
MEMORY_MIB = 500.0
EARLY = TURNS // 5
GROWTH_MIB = 100.0
"""Limit of the memory's growth from turn EARLY, when the caches are full, to the last."""
OPTIONS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync")  # fmt: skip

Served = tuple["subprocess.Popen[str]", str]
"""A server's process and its address."""

CARDS = """
() => {
  const images = [...document.querySelectorAll("#view img")];
  return images.length && images.every((each) => each.complete && each.naturalWidth);
}
"""

WATCH = """
() => { window.turned = (key) => new Promise((done) => {
  const view = () => document.querySelector("#view");
  const before = view().dataset.classKey;
  let start = 0;
  addEventListener("keydown", () => { start = performance.now(); }, { once: true, capture: true });
  const look = () => {
    const images = [...document.querySelectorAll("#view img")];
    const there = view().dataset.classKey !== before && images.every((each) => each.complete && each.naturalWidth);
    // the frame in which all is there has been painted when the next one begins
    if (there) requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)));
    else setTimeout(look, 2);
  };
  look();
}); }
"""


def main() -> None:
    """Make the edition, measure, print."""
    images = images_of(sys.argv[1:])
    with scratch() as folder, scratch() as large:
        make_edition(folder, images)
        make_large_edition(large, images)
        print_machine()
        largest = [start_seconds(large) for _ in range(ROUNDS)]
        cards = [seconds_to_cards(large) for _ in range(ROUNDS)]
        of_1000 = [seconds_to_cards(folder) for _ in range(ROUNDS)]
        empty = [start_seconds(folder) for _ in range(ROUNDS)]
        with server(folder) as (process, address):
            turns, verdicts, memory = turn_milliseconds(address, process.pid)
            peak = peak_mib(process.pid)
        shutil.rmtree(folder / "reviews" / "bench")
        simulation.write_reviews(folder)
        full = [start_seconds(folder) for _ in range(ROUNDS)]

    def median(starts: list[tuple[float, float]], place: int) -> float:
        return statistics.median(each[place] for each in starts)

    measures: list[Measure] = [
        ("start to the first page, no reviews, s", median(empty, 0), ".2f", START_SECONDS),
        ("the same, processor seconds", median(empty, 1), ".2f", START_SECONDS),
        ("the same until the cards are there in Chromium, s", statistics.median(of_1000), ".2f", START_SECONDS),
        (f"start to the first page, {LARGE:,} classes of your own, s", median(largest, 0), ".2f", START_SECONDS),
        ("the same, processor seconds", median(largest, 1), ".2f", START_SECONDS),
        ("the same until the cards are there in Chromium, s", statistics.median(cards), ".2f", START_SECONDS),
        ("start with all classes reviewed, s", median(full, 0), ".2f", START_SECONDS),
        ("the same, processor seconds", median(full, 1), ".2f", START_SECONDS),
        (f"next class, median of {len(turns)}, ms", statistics.median(turns), ".0f", TURN_MILLISECONDS),
        ("next class, 95 % of them, ms", float(np.percentile(turns, 95)), ".0f", TURN_MILLISECONDS),
        (f"by a verdict, median of {len(verdicts)}, ms", statistics.median(verdicts), ".0f", TURN_MILLISECONDS),
        (f"memory of the server after {EARLY} classes, MiB", memory[0], ".0f", MEMORY_MIB),
        (f"memory of the server after {TURNS} classes, MiB", memory[1], ".0f", MEMORY_MIB),
        ("its growth in between, MiB", memory[1] - memory[0], ".0f", GROWTH_MIB),
        ("memory of the server, peak, MiB", peak, ".0f", MEMORY_MIB),
    ]
    print_measures(
        f"{CLASSES:,} classes x {CANDIDATES} candidates, three models, {len(images)} distinct images", measures
    )


def images_of(arguments: list[str]) -> list[bytes]:
    """The JPEG files below the folder that is named, by name; without one, drawn images."""
    if arguments:
        files = sorted(path for path in Path(arguments[0]).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
        return [path.read_bytes() for path in files] or sys.exit(f"{arguments[0]}: no JPEG file below it")
    return [photograph(number) for number in range(DISTINCT)]


def make_large_edition(folder: Path, images: list[bytes]) -> None:
    """As many classes as there may be, of images that are not ImageNet's."""
    names = [f"thing {number:04d}" for number in range(LARGE)]
    table = ClassTable(tuple(ClassName(number, name, name) for number, name in enumerate(names)))
    use_classes(table)
    Edition(folder).classes.parent.mkdir()
    Edition(folder).classes.write_text(table.text)
    make_edition(folder, images, LARGE)


def make_edition(folder: Path, images: list[bytes], classes: int = CLASSES) -> None:
    """Index, images, scores, candidates; every image classified correctly by every model."""
    labels = [[number % classes] for number in range(classes * CANDIDATES)]
    simulation.write_params(folder, dataset={"images": "data/raw/images.bin"})
    if classes != CLASSES:
        params = yaml.safe_load((folder / "params.yaml").read_text())
        params["dataset"] = {"reader": "folder", "images": "data/raw/images.bin"}
        (folder / "params.yaml").write_text(yaml.safe_dump(params | {"count": {"accuracy": False}}))
    simulation.write_edition(folder, labels, dict.fromkeys(simulation.ROLES, 1.0))
    write_images(folder, images)
    intersect.run(Edition(folder))
    for role in simulation.ROLES:
        select.run(Edition(folder), role)
        Edition(folder).scored_with(role).write_text(json.dumps(simulation.SCORED))


def write_images(folder: Path, images: list[bytes]) -> None:
    """One file with all distinct JPEGs, and an index and locations that name them again and again."""
    edition = Edition(folder)
    index = read_table(edition.index, INDEX)
    path = folder / "data" / "raw" / "images.bin"
    path.parent.mkdir(parents=True)
    places: list[tuple[int, int, str]] = []
    with path.open("wb") as file:
        for data in images:
            places.append((file.tell(), len(data), sha256(data)))
            file.write(data)
    of_each = [places[number % len(places)] for number in range(len(index))]
    index = index.assign(sha256=[each[2] for each in of_each], size=[each[1] for each in of_each])
    write_table(edition.index, index, INDEX)
    table = pd.DataFrame({"image_id": index["image_id"], "file": "."})
    table["offset"], table["size"] = [each[0] for each in of_each], [each[1] for each in of_each]
    write_table(edition.locations, table, LOCATIONS)


def photograph(number: int) -> bytes:
    """A JPEG of the size, and about the detail, of a photograph: soft shapes with some grain."""
    rng = np.random.default_rng(number)
    coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
    soft = coarse.resize((simulation.WIDTH, simulation.HEIGHT), Image.Resampling.BICUBIC).filter(ImageFilter.SHARPEN)
    grain = rng.normal(0, 9, (simulation.HEIGHT, simulation.WIDTH, 1))
    pixels = np.clip(np.asarray(soft, np.float64) + grain, 0, 255).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, format="JPEG", quality=90)
    return out.getvalue()


def server(folder: Path) -> AbstractContextManager[Served]:
    """Start `cleanset review`; yield the process and its address."""
    return served(folder, "review", "serve", "--reviewer", "bench")


@contextmanager
def served(folder: Path, *command: str) -> Iterator[Served]:
    """Start a `cleanset` command that serves a page; yield the process and its address."""
    process = subprocess.Popen(
        [str(BIN / "cleanset"), *command, "--no-browser"], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    address = re.search(r"http://\S+", process.stdout.readline())
    if address is None:
        sys.exit(f"cleanset {command[0]}: exit code {process.wait()}")
    try:
        yield process, address[0]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def start_seconds(folder: Path) -> tuple[float, float]:
    """Wall-clock and processor seconds from the start of the process until the page is served."""
    start = time.perf_counter()
    with server(folder) as (process, address):
        site = urlsplit(address)
        connection = http.client.HTTPConnection(site.netloc)
        connection.request("GET", site.path)
        response = connection.getresponse()
        assert response.status == 200
        assert b"data-class-key" in response.read()
        seconds = time.perf_counter() - start
        ticks = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return seconds, sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def seconds_to_cards(folder: Path) -> float:
    """Seconds from the start of the process until Chromium, which runs already, shows the cards of the first class."""
    with chromium() as browser:
        start = time.perf_counter()
        with server(folder) as (_, address):
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(address)
            page.wait_for_function(CARDS)
            return time.perf_counter() - start


@contextmanager
def opened(address: str) -> Iterator[Page]:
    """The page in Chromium, its view there."""
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(address)
        page.wait_for_selector("#view")
        yield page


def chromium_path() -> str:
    """Where Chromium is."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        sys.exit("no Chromium: install the package chromium")
    return path


@contextmanager
def chromium() -> Iterator[Browser]:
    """Chromium, running."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=OPTIONS)
        yield browser
        browser.close()


def turn_milliseconds(address: str, pid: int) -> tuple[list[float], list[float], tuple[float, float]]:
    """Milliseconds from the key press until the next class's images are painted: by `n`, and by the settling verdict.

    Also the memory of the server in MiB, after turn EARLY and after the last turn by `n`.
    """
    with opened(address) as page:
        page.evaluate(WATCH)
        time.sleep(3)
        turns = [turned(page, "n") for _ in range(EARLY)]
        early = status_mib(pid, "VmRSS")
        turns += [turned(page, "n") for _ in range(TURNS - EARLY)]
        late = status_mib(pid, "VmRSS")
        verdicts = [settled(page) for _ in range(SETTLED)]
    return turns, verdicts, (early, late)


def turned(page: Page, key: str) -> float:
    """One turn, after a look at the class."""
    time.sleep(LOOKING_SECONDS)
    page.evaluate("() => { window.turning = window.turned() }")
    page.keyboard.press(key)
    took: float = page.evaluate("() => window.turning")
    return took


def settled(page: Page) -> float:
    """Press clean until one image is left, then measure the last."""
    time.sleep(LOOKING_SECONDS)
    while page.locator("figure.asked").count() > 1:
        before = page.get_attribute("#view", "data-pressed")
        page.keyboard.press("c")
        page.wait_for_function("before => document.querySelector('#view').dataset.pressed !== before", arg=before)
    return turned(page, "c")


def peak_mib(pid: int) -> float:
    """The most memory that a process has had."""
    return status_mib(pid, "VmHWM")


def status_mib(pid: int, name: str) -> float:
    """A figure of /proc/PID/status that is given in KiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"{name}:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


if __name__ == "__main__":
    main()
