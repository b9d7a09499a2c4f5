"""A study of 20 people who press as fast as they can: is anything rated too early, or before it has arrived?

Six have a link on which images are late, broken off or refused, four double-click, the others hold a key. The page
itself is watched: at each press that counts as an answer, how long ago the last image of the trial arrived.
"""

import asyncio
import csv
import json
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from PIL import Image
from playwright.async_api import Browser, Page, Route, async_playwright

from cleanset.classes import imagenet
from cleanset.files import read_text, write_text
from cleanset.json_files import with_digest
from cleanset.studies.realness.plan import PlanRequest, StudyImage, key_csv, make_plan, trials_csv
from cleanset.studies.realness.plan_files import KEY, PAGE_IMAGES, PLAN, SHOWN_MILLISECONDS, TRIALS, digests
from cleanset.studies.realness.planning import plain_png
from cleanset.studies.realness.ratings import IMAGE_KINDS
from measuring import print_machine, print_table, scratch
from page import OPTIONS, chromium_path, served

PEOPLE, BAD_LINKS, DOUBLE_CLICKS = 20, 6, 4
EACH = 6
"""Images of each kind, all of which everybody rates."""
SIDE = 224
PRESS_SECONDS = 0.1
GAPS_SECONDS = (0.06, 0.25)
FAILING, LATE_SECONDS = 0.4, (0.2, 2.0)
"""Share of requests for images that fail on a bad link, and the delay of the others."""

WATCH = """
{ const arrived = new Map(); window.given = [];
  document.addEventListener("load", ({ target }) => arrived.set(target, performance.now()), true);
  addEventListener("click", ({ target }) => {
    if (!document.querySelector(".progress") || !target.closest("#study button")) return;
    const images = [...document.querySelectorAll("#study img")];
    given.push({ missing: images.filter((each) => !each.complete || !each.naturalWidth).length,
      milliseconds: performance.now() - Math.max(0, ...images.map((each) => arrived.get(each) ?? Infinity)) });
  }, true); }
"""
IS_OVER = "() => document.querySelector('#study') === null && document.querySelector('h1') !== null"
BUTTON = """() => { const box = document.querySelectorAll("#study button")[1]?.getBoundingClientRect();
  return box ? [box.x + box.width / 2, box.y + box.height / 2] : null }"""


@dataclass
class Group:
    """People of one kind. `given`: the answers that the page took, as it was watched."""

    name: str
    people: int
    presses: int = 0
    given: list[dict[str, float]] = field(default_factory=list)


def main() -> None:
    """Serve a plan, let everybody rate it at once, and print what was rated when."""
    groups = [
        Group("hold a key", PEOPLE - BAD_LINKS - DOUBLE_CLICKS), Group("bad link", BAD_LINKS),
        Group("double clicks", DOUBLE_CLICKS),
    ]  # fmt: skip
    with scratch() as folder:
        write_plan(folder / "plan")
        print_machine()
        with served(folder / "plan", "study", "serve", "--plan", ".", "--port", "0") as (_, address):
            asyncio.run(rate(address, groups))
        texts = [read_text(path, "") for path in sorted((folder / "plan" / "answers").iterdir())]
    saved = [row for text in texts for row in csv.DictReader(text.splitlines())]
    rows = [_row(group.name, group.people, group.presses, group.given) for group in groups]
    everybody = [each for group in groups for each in group.given]
    rows.append(_row("all", PEOPLE, sum(group.presses for group in groups), everybody))
    header = ["people", "number", "presses", "answers", f"within {SHOWN_MILLISECONDS} ms", "of a missing image"]
    print_table(f"{PEOPLE} people, {len(saved)} answers saved", header, rows)
    early = sum(int(row["milliseconds"]) < SHOWN_MILLISECONDS for row in saved)
    print_table("Saved", ["answers", f"recorded within {SHOWN_MILLISECONDS} ms"], [[str(len(saved)), str(early)]])


def _row(name: str, people: int, presses: int, given: list[dict[str, float]]) -> list[str]:
    early = sum(each["milliseconds"] is None or each["milliseconds"] < SHOWN_MILLISECONDS for each in given)
    missing = sum(each["missing"] > 0 for each in given)
    return [name, *map(str, (people, presses, len(given), early, missing))]


def write_plan(folder: Path) -> None:
    """A plan of images of noise, in which everybody rates all of them."""
    images = [
        StudyImage(kind, f"{kind}{number}.png", f"{kind}{number}") for kind in IMAGE_KINDS for number in range(EACH)
    ]
    plan = make_plan(images, PlanRequest(people=PEOPLE, real=EACH, modified=EACH, attention=1, pairs=1, seed=1))
    files = [f"{plan.stimulus(each)}.png" for each in images]
    (folder / PAGE_IMAGES).mkdir(parents=True)
    for number, file in enumerate([*files, *(side for pair in plan.pairs for side in (pair.left, pair.right))]):
        image = Image.frombytes("RGB", (SIDE, SIDE), Random(number).randbytes(3 * SIDE * SIDE))
        (folder / PAGE_IMAGES / file).write_bytes(plain_png(image))
    write_text(folder / KEY, key_csv(plan, {(each.kind, each.name): "0" * 64 for each in images}, imagenet()))
    write_text(folder / TRIALS, trials_csv(plan))
    record = {
        "images": {"pixels": [SIDE, SIDE]},
        "shown_milliseconds": SHOWN_MILLISECONDS,
        "sha256": digests(folder),
    }
    write_text(folder / PLAN, json.dumps(with_digest(record)))


async def rate(address: str, groups: list[Group]) -> None:
    """Everybody at once, each in a browser of their own."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium_path(), args=OPTIONS)
        people = [group for group in groups for _ in range(group.people)]
        await asyncio.gather(*(person(browser, address, number, group) for number, group in enumerate(people)))
        await browser.close()


async def person(browser: Browser, address: str, number: int, group: Group) -> None:
    """Press on and on until the list is at its end."""
    draw = Random(number)
    context = await browser.new_context()
    page = await context.new_page()
    page.set_default_timeout(0)
    await page.add_init_script(WATCH)

    async def bad_link(route: Route) -> None:
        if draw.random() < FAILING:
            await route.abort()
        else:
            await asyncio.sleep(draw.uniform(*LATE_SECONDS))
            await route.continue_()

    if group.name == "bad link":
        await page.route("**/images/*", bad_link)
    await page.goto(f"{address}?person=p{number}")
    await page.get_by_role("button", name="Begin").click()
    while not await page.evaluate(IS_OVER):
        presses = await press(page, draw, group.name == "double clicks")
        group.presses += presses  # after the wait, in which others press
        await asyncio.sleep(PRESS_SECONDS)
    group.given += await page.evaluate("given")
    await page.unroute_all(behavior="ignoreErrors")
    await context.close()


async def press(page: Page, draw: Random, twice: bool) -> int:
    """Press a key, or click twice at the same place; the number of presses."""
    if not twice:
        await page.keyboard.press("1")
        return 1
    place = await page.evaluate(BUTTON)
    if place is None:
        return 0
    await page.mouse.click(*place)
    await asyncio.sleep(draw.uniform(*GAPS_SECONDS))
    await page.mouse.click(*place)
    return 2


if __name__ == "__main__":
    main()
