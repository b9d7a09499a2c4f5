"""The report of 3 x 3,000 images: its time, its size, and the delay until Chromium shows it."""

import shutil
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, sync_playwright

import simulation
from cleanset.edition.paths import Edition
from cleanset.tables import INDEX, LOCATIONS, SELECTION, read_table, write_table
from export import PER_CLASS, drawing, selection_of
from measuring import Run, cleanset, figures, in_child, print_machine, print_table, scratch, share
from replay import real_labels

ROUNDS = 3
IMAGES = 50_000
VIEWS = 5
SECONDS, INDEX_BYTES, PAINT = 60.0, 2_000_000, 1.0
DRAWN = 150

FIRST_PAINT = """
new Promise((done) => new PerformanceObserver((list) => {
  const [first] = list.getEntriesByName("first-contentful-paint");
  if (first) done(first.startTime / 1000);
}).observe({type: "paint", buffered: true}))
"""


def main() -> None:
    with scratch() as folder:
        simulated, distinct = folder / "simulated", folder / "distinct"
        in_child(build, simulated, distinct)
        editions = (simulated, distinct)
        runs = {edition: [cleanset("report", edition=edition) for _ in range(ROUNDS)] for edition in editions}
        print_machine()
        print_times({f"{images(edition):,} different images": each for edition, each in runs.items()})
        print_pages(distinct / "report")


def build(simulated: Path, distinct: Path) -> None:
    """Two editions of 50,000 images with the images that their models keep; in one of them no image is kept twice."""
    labels = simulation.fewest_first(list(real_labels().values())[:IMAGES])
    simulation.write_edition(simulated, labels)
    simulation.write_params(simulated, dataset={"images": simulation.TAR})
    rng = np.random.default_rng(0)
    write_images(simulated, [drawing(rng) for _ in range(DRAWN)])
    cleanset("intersect", edition=simulated)
    for role in simulation.ROLES:
        cleanset("select", "--model", role, edition=simulated)
    simulation.write_reviews(simulated)
    for role in simulation.ROLES:
        cleanset("review_apply", "--model", role, edition=simulated)
    cleanset("count", edition=simulated)
    shutil.copytree(simulated, distinct)
    index = read_table(Edition(distinct).index, INDEX)
    for place, role in enumerate(simulation.ROLES):
        write_table(Edition(distinct).selection(role), selection_of(index, place), SELECTION)


def write_images(folder: Path, drawn: Sequence[bytes]) -> None:
    """A tar of the drawn images; in index and locations each occurs many times."""
    edition = Edition(folder)
    index = read_table(edition.index, INDEX)
    simulation.write_images(folder, index.head(len(drawn)), drawn)
    write_table(edition.index, simulation.with_facts(index, drawn), INDEX)
    places = read_table(edition.locations, LOCATIONS).iloc[np.arange(len(index)) % len(drawn)].reset_index(drop=True)
    write_table(edition.locations, places.assign(image_id=index["image_id"]), LOCATIONS)


def images(folder: Path) -> int:
    """Number of different images in the sets."""
    tables = (read_table(Edition(folder).selection(role), SELECTION) for role in simulation.ROLES)
    return len({name for table in tables for name in table["image_id"]})


def print_times(found: dict[str, list[Run]]) -> None:
    found_figures = {name: figures(runs) for name, runs in found.items()}
    rows = [
        (name, f"{seconds:.1f}", f"{processor:.1f}", f"{peak:.0f}")
        for name, (seconds, processor, peak) in found_figures.items()
    ]
    slowest = max(seconds for seconds, _, _ in found_figures.values())
    rows += [("limit", f"{SECONDS:g}", "", ""), ("of the limit", share(slowest, SECONDS), "", "")]
    title = f"cleanset report, 3 models, {PER_CLASS * 1000:,} images each, median of {ROUNDS} rounds"
    print_table(title, ("sets of", "seconds", "processor seconds", "peak MiB"), rows)


def print_pages(report: Path) -> None:
    sheets = sorted(report.glob("sheet-*.html"), key=lambda path: path.stat().st_size)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or sys.exit("no chromium: install it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        largest = max((report / "classes").iterdir(), key=lambda path: path.stat().st_size)
        viewed = (report / "index.html", report / "classes.html", report / "rejected.html", sheets[-1], largest)
        shown = {path: first_paint(browser, path) for path in viewed}
        browser.close()
    rows = [(path.name, f"{path.stat().st_size / 1000:,.0f}", f"{seconds:.2f}") for path, seconds in shown.items()]
    files = [path for path in report.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 1000
    rows.append((f"all {len(files)} files, {len(sheets)} sheets", f"{size:,.0f}", ""))
    rows.append(("limit of index.html", f"{INDEX_BYTES / 1000:,.0f}", f"{PAINT:g}"))
    index = report / "index.html"
    rows.append(("of the limit", share(index.stat().st_size, INDEX_BYTES), share(shown[index], PAINT)))
    print_table(f"Pages in Chromium, median of {VIEWS} views", ("page", "kB", "first paint, seconds"), rows)


def first_paint(browser: Browser, path: Path) -> float:
    """Seconds from opening a page to its first paint, each time in a new window."""
    times: list[float] = []
    for _ in range(VIEWS):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(path.as_uri())
        times.append(page.evaluate(FIRST_PAINT))
        page.close()
    return statistics.median(times)


if __name__ == "__main__":
    main()
