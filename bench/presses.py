"""Key presses of a review at the page, in Chromium: the published verdicts again, and the sample with all clean.

Each class is reviewed with the fewest presses that the page offers: exceptions first, then one key for the rest.
Whether the page guesses the reason of an exception depends on its hints, so that every replay is made without any, and
with hints drawn at the recall that bench/hints.py measured on photographs. `without-browser` gives the same keys to the
tab on the server, which takes a tenth of the time; `wide` makes the window 1,920 x 940 pixels, as on a full screen of
1,920 x 1,080, in place of 1,280 x 800; a number limits each replay to N classes, drawn with a fixed seed, a second
number to one model or three.
"""

import json
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Protocol

import pandas as pd
import yaml
from playwright.sync_api import Page, ViewportSize, sync_playwright

import effort
import simulation
from cleanset.classes import imagenet
from cleanset.dataset.ilsvrc import CLASSES
from cleanset.edition.params import ReviewPolicy
from cleanset.edition.paths import Edition
from cleanset.images.boxes import Box
from cleanset.plumbing.files import sha256
from cleanset.review.decided import decisions_under
from cleanset.review.hints.background import BackgroundHints
from cleanset.review.hints.hints import Hint
from cleanset.review.page import library, server
from cleanset.review.page.keys import ReviewKey
from cleanset.review.page.library import open_library
from cleanset.review.page.tab import Tab
from cleanset.review.page.view import Card, cards
from cleanset.review.reasons import REASON_KEYS
from cleanset.review.store import read_reviews
from cleanset.sets.published.lists import read_top5
from cleanset.tables import CANDIDATES, INDEX, LOCATIONS, read_table, write_table
from measuring import BIN, PROJECT, PYTHON, print_machine, print_table, scratch, share
from photographs import photographs_or_drawings
from replay import real_labels

GOALS = {("norm_robust",): 2.5, simulation.ROLES: 4.8}
"""Presses a class."""
TODAY = {("norm_robust",): 5.06, simulation.ROLES: 11.0}
"""Presses a class with one key for each image, by bench/effort.py."""
SAMPLE_GOAL = 12
SAMPLE_TODAY = 70
CHROMIUM_OPTIONS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                    "--disable-component-update", "--disable-sync")  # fmt: skip
RECALL = {
    "watermark": ("text", 32 / 41), "text": ("text", 32 / 41), "border": ("border", 18 / 25),
    "filter": ("filter", 12 / 18), "collage": ("collage", 3 / 4), "too_small": ("few_pixels", 1.0),
    "artificial_background": ("artificial_background", 8 / 21),
}  # fmt: skip
"""By reason: the kind of hint, and its recall on the photographs that set no threshold. Others are never hinted at."""
FALSE = {"text": 7 / 284, "border": 2 / 300, "filter": 6 / 307, "collage": 6 / 321, "noise": 3 / 325}
"""By kind of hint: how many of the photographs without the flaw have it."""
SEED = 20_11
AS_IN_CLASS = 2 / 3
"""Two published rejections of a class have the same reason in 74 % of the pairs, two of any class in 19 %."""
MAX_PRESSES = 100
"""In a class; with more, the page takes none of them."""
WIDE: ViewportSize = {"width": 1920, "height": 940}
DRAW = "Control+ArrowRight"
"""Begins a box by moving its left edge."""

KEY_OF: dict[str, str] = {reason: key for key, reason in REASON_KEYS.items()}

CARDS = """
() => { const view = document.querySelector("#view");
  const cards = [...view.querySelectorAll("[data-card]")].map((card, place) => ({
    number: place + 1, id: card.dataset.card, queued: "queued" in card.dataset, reason: card.dataset.likeliest,
    focus: card.classList.contains("focus") }));
  return { wnid: view.dataset.classKey, cards } }
"""
SHOWN = """
async (before) => { const { whole } = await import("./static/looks.js");
  const { secondsShown } = await import("./web/view.js");
  const isDone = () => { const view = document.querySelector("#view");
    return view.dataset.pressed !== before && [...view.querySelectorAll("img")].every((each) => each.complete); };
  const start = performance.now();
  while (!isDone()) await new Promise((wait) => setTimeout(wait, 5));
  const queued = document.querySelectorAll("#view [data-queued]").length;
  const early = Number(document.querySelector("#view").dataset.needed ?? 0);
  const isOver = document.querySelector("#view").dataset.mode !== "class"; // a crop: it hides the cards
  const isReady = () => !document.querySelector("#overlay [data-look]:not([data-ready])");
  const isWhole = () => whole().length >= queued || performance.now() - start > 1000; // or some lie below
  const isShown = () => (isOver ? isReady() : isWhole() && secondsShown() >= early);
  while (!isShown()) await new Promise((wait) => setTimeout(wait, 10)); }
"""
"""Wait until a key is answered and the images are on the screen."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The reviewer's decision on an image."""

    verdict: str
    reason: str | None


Truth = Mapping[str, Verdict]


@dataclass
class Count:
    """Presses by what they were for, and what came of them."""

    presses: Counter[str] = field(default_factory=Counter)
    classes: int = 0
    guessed: int = 0
    rejected: int = 0
    cropped: int = 0


def main(classes: int, models: int | None, in_browser: bool, is_wide: bool) -> None:
    """Print the table; `classes`: the number of classes to review; `models`: 1 or 3 (None: both)."""
    print_machine()
    rows = [sample_row()] if in_browser else []
    with scratch() as folder:
        tables, truth = published(Edition(PROJECT / "imagenet"))
        for roles in (each for each in GOALS if models in (None, len(each))):
            for hinted in (False, True):
                edition = folder / f"{len(roles)}-{hinted}"
                make_edition(edition, roles, tables, classes)
                (edition / "truth.json").write_text(json.dumps({i: [v.verdict, v.reason] for i, v in truth.items()}))
                rows.append(row(roles, hinted, replay(edition, truth, hinted, in_browser, is_wide)))
                shutil.rmtree(edition)
                print(rows[-1], file=sys.stderr, flush=True)
    header = ("for", "classes", "presses", "all clean", "exceptions", "reasons", "crops", "other", "a class", "before",
              "goal", "of the goal", "reasons guessed")  # fmt: skip
    print_table("Key presses, by what they are for", header, rows)


def row(roles: Sequence[str], hinted: bool, count: Count) -> tuple[str, ...]:
    name = "norm_robust alone" if len(roles) == 1 else "all three models"
    key = tuple(roles)
    each = count.presses.total() / count.classes
    return (
        f"{name}, {'hints as measured' if hinted else 'no hints'}", *counted(count), f"{each:.2f}",
        f"{TODAY[key]:.2f}", f"{GOALS[key]}", share(each, GOALS[key]), f"{count.guessed} of {count.rejected}",
    )  # fmt: skip


def counted(count: Count) -> tuple[str, ...]:
    kinds = ("all", "exception", "reason", "crop", "other")
    return (f"{count.classes:,}", f"{count.presses.total():,}", *(f"{count.presses[kind]:,}" for kind in kinds))


def sample_row() -> tuple[str, ...]:
    """The sample, every image clean, with the page's own hints and its usual time for each image."""
    with scratch() as folder:
        shutil.copy(PROJECT / "params.yaml", folder)
        (folder / "data").symlink_to(PROJECT / "data")
        (folder / "reviews").mkdir()
        with reviewing(folder) as address, opened(address) as page:
            count = review_all(InBrowser(page), {})
    presses = count.presses.total()
    return (
        "sample, all clean", *counted(count), f"{presses / count.classes:.2f}", f"{SAMPLE_TODAY / 12:.2f}",
        f"{SAMPLE_GOAL / 12:.0f}", share(presses, SAMPLE_GOAL), "",
    )  # fmt: skip


def published(edition: Edition) -> tuple[Mapping[str, pd.DataFrame], dict[str, Verdict]]:
    """The candidates of each model, and the verdict on every image: the published one, else drawn as effort.py does.

    A reason that is not published is drawn from those of the same verdict: AS_IN_CLASS of them from the class's own, if
    it has any, the others from all.
    """
    labels: dict[str, Sequence[int]] = dict(real_labels())
    votes = read_reviews(edition.reviews, imagenet())
    decided = decisions_under(ReviewPolicy(unknown_boxes="open", crops="in_rank"), votes)
    lists = read_top5(edition.published_lists, labels)
    tables = effort.candidates_of_models(lists, labels, decided)
    rates = effort.rates_by_rank(decided, effort.ranks_of(lists[lists["model"] == effort.ROLE]))
    decisions = effort.verdicts(tables, decided, effort.ranks_of(lists), rates)
    listed = set(lists["class_index"]) - {effort.LEFT_OUT}
    reviews = {key: next(iter(by_reviewer.values())).review for key, by_reviewer in votes.items()}
    reasons: dict[tuple[str, int | None], list[str]] = defaultdict(list)
    for (class_index, _), review in sorted(reviews.items()):
        for place in (class_index, None):
            reasons[review.verdict.kind, place].append(str(review.reason))
    rng = Random(SEED)
    truth = {}
    for key, decision in sorted(decisions.items()):
        verdict = effort.verdict_of(decision)
        alike = reasons.get((verdict, key[0]), ()) if rng.random() < AS_IN_CLASS else ()
        drawn = rng.choice(alike or reasons[verdict, None]) if verdict != "clean" else None
        truth[key[1]] = Verdict(verdict, str(reviews[key].reason) if drawn and key in reviews else drawn)
    return {role: table[table["class_index"].isin(listed)] for role, table in tables.items()}, truth


def make_edition(folder: Path, roles: Sequence[str], tables: Mapping[str, pd.DataFrame], classes: int) -> None:
    """The candidates as published; drawn images under their ids. The time for each image is 0: presses are counted."""
    folder.mkdir()
    listed = sorted(set().union(*(tables[role]["class_index"].tolist() for role in roles)))
    listed = sorted(Random(SEED).sample(listed, min(classes, len(listed))))
    simulation.write_params(
        folder,
        dataset={"images": "data/raw/images.bin", "classes": [imagenet().keys[index] for index in listed]},
        review={"seconds_per_image": 0, "crops": "in_rank"},
    )
    params = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    params["models"] = {role: params["models"][role] for role in roles}
    params.pop("count")  # of all models
    (folder / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    edition = Edition(folder)
    edition.reviews.mkdir()
    write_table(
        edition.index, simulation.index_of([labels for _, labels in sorted(real_labels().items())]), INDEX, imagenet()
    )
    write_images(folder, photographs_or_drawings()[1])
    for role in roles:
        write_table(edition.candidates(role), tables[role].assign(log_odds=0.0), CANDIDATES, imagenet())


def write_images(folder: Path, images: list[bytes]) -> None:
    """One file with all distinct JPEGs, and an index and locations that name them again and again."""
    edition = Edition(folder)
    index = read_table(edition.index, INDEX, imagenet())
    path = folder / "data" / "raw" / "images.bin"
    path.parent.mkdir(parents=True)
    places: list[tuple[int, int, str]] = []
    with path.open("wb") as file:
        for data in images:
            places.append((file.tell(), len(data), sha256(data)))
            file.write(data)
    of_each = [places[number % len(places)] for number in range(len(index))]
    index = index.assign(sha256=[each[2] for each in of_each], size=[each[1] for each in of_each])
    write_table(edition.index, index, INDEX, imagenet())
    table = pd.DataFrame({"image_id": index["image_id"], "file": "."})
    table["offset"] = [each[0] for each in of_each]
    table["size"] = [each[1] for each in of_each]
    write_table(edition.locations, table, LOCATIONS, imagenet())


class DrawnHints(BackgroundHints):
    """Hints at the flaws of the verdicts, with the recall and the false alarms that were measured; or none."""

    truth: ClassVar[Truth] = {}

    def request(self, image_ids: Collection[str]) -> None:  # type: ignore[override]  # nothing is measured
        pass

    def of(self, image_ids: Collection[str]) -> Mapping[str, list[Hint]]:  # type: ignore[override]
        return {image_id: self._drawn(image_id) for image_id in image_ids}

    def _drawn(self, image_id: str) -> list[Hint]:
        if not self.truth:
            return []
        rng = Random(f"{SEED} {image_id}")
        known = self.truth[image_id]
        kind, recall = RECALL.get(known.reason or "", ("", 0.0)) if known.verdict != "clean" else ("", 0.0)
        found = [each for each, rate in FALSE.items() if rng.random() < rate]
        return [Hint(each, "") for each in ([kind] if rng.random() < recall else []) + found]  # type: ignore[arg-type]

    def complete(self, image_ids: Iterable[str]) -> set[str]:
        return set(image_ids)

    def measure_all(self, classes: Iterable[Sequence[str]]) -> None:
        pass


def serve(folder: Path, hinted: bool) -> None:
    """The review page of an edition with drawn hints, as a process of its own."""
    if hinted:
        DrawnHints.truth = {i: Verdict(*each) for i, each in json.loads((folder / "truth.json").read_text()).items()}
    vars(library)["BackgroundHints"] = DrawnHints
    address = server.PageAddress("127.0.0.1", 0, browser=False, public_url=None)
    server.run(Edition(folder), ["bench"], address)


@contextmanager
def reviewing(folder: Path) -> Iterator[str]:
    """Start `cleanset review serve`; yield the address of the page."""
    command = [str(BIN / "cleanset"), "review", "serve", "--reviewer", "bench", "--no-browser"]
    with address_of(command, cwd=folder) as address:
        yield address


@contextmanager
def served(folder: Path, hinted: bool) -> Iterator[str]:
    """Start the review page of an edition with drawn hints; yield its address."""
    with address_of([str(PYTHON), __file__, "--serve", str(folder), *(["--hinted"] if hinted else [])]) as address:
        yield address


@contextmanager
def address_of(command: Sequence[str], cwd: Path | None = None) -> Iterator[str]:
    """Start a command that serves a page; yield the address that it prints."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=cwd)
    assert process.stdout is not None
    address = re.search(r"http://\S+", process.stdout.readline())
    if address is None:
        sys.exit(f"{' '.join(command)}: exit code {process.wait()}")
    try:
        yield address[0]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


@contextmanager
def opened(address: str) -> Iterator[Page]:
    """The page in Chromium, its view there."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        sys.exit("no Chromium: install the package chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_OPTIONS)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(address)
        page.wait_for_selector("#view")
        yield page
        browser.close()


def replay(folder: Path, truth: Truth, hinted: bool, in_browser: bool, is_wide: bool) -> Count:
    if in_browser:
        with served(folder, hinted) as address, opened(address) as page:
            if is_wide:
                page.set_viewport_size(WIDE)
            count = review_all(InBrowser(page), truth)
    else:
        count = review_all(OnServer(folder, truth if hinted else {}), truth)
    found = {
        image_id: Verdict(entry["verdict"], entry.get("reason"))
        for path in (folder / "reviews" / "bench").glob("*.yaml")
        for entries in yaml.load(path.read_text(), yaml.CSafeLoader).values()
        for image_id, entry in entries.items()
    }
    wrong = [image_id for image_id, verdict in found.items() if verdict != truth[image_id]]
    print(f"{len(found):,} verdicts on the disk, {len(wrong)} other than replayed", flush=True)
    return count


Cards = Sequence[Mapping[str, Any]]
"""The cards of a class: number, image id, whether it is in the queue and in focus, and its likeliest reason."""


class Reviewed(Protocol):
    """A review page: the class on it with its cards, and its keys."""

    def state(self) -> tuple[str, Cards]: ...
    def press(self, key: str) -> None: ...


class InBrowser:
    """The page in Chromium."""

    def __init__(self, page: Page) -> None:
        self._page = page
        page.evaluate(SHOWN, "")

    def state(self) -> tuple[str, Cards]:
        found = self._page.evaluate(CARDS)
        return found["wnid"], found["cards"]

    def press(self, key: str) -> None:
        before = self._page.get_attribute("#view", "data-pressed")
        shift, _, click = key.rpartition("Click")
        if click.isdecimal():
            card = self._page.locator("[data-card]").nth(int(click) - 1)
            card.click(modifiers=["Shift"] if shift else [])
        else:
            self._page.keyboard.press(key)
        if key != DRAW:  # the box is the browser's own
            self._page.evaluate(SHOWN, before)


class OnServer:
    """The same tab without a browser: every image of the class is on the screen."""

    def __init__(self, folder: Path, hinted: Truth) -> None:
        DrawnHints.truth = hinted
        vars(library)["BackgroundHints"] = DrawnHints
        self._tab = Tab(server.open_session(Edition(folder), open_library(Edition(folder)), "bench"))
        self._tab.start()
        self._box: Box | None = None
        self._show()

    def _show(self) -> None:
        self._tab.cursor.keep_places()
        self._cards: list[Card] = cards(self._tab)
        self._tab.history.shown = {card.image.image_id: card.own for card in self._cards}

    def state(self) -> tuple[str, Cards]:
        return self._tab.wnid, [
            {
                "number": card.number, "id": card.image.image_id, "reason": card.likeliest, "focus": card.in_focus,
                "queued": card.queued and not (card.question and card.question.only_box),
            }
            for card in self._cards
        ]  # fmt: skip

    def press(self, key: str) -> None:
        ids = [card.image.image_id for card in self._cards]
        if key == DRAW:
            self._box = simulation.BOX
            return
        modifier, _, name = key.rpartition("+")
        card = None
        reason = None
        if name.startswith(("Digit", "Click")):
            place = int(name[5:]) - 1
            key = "guess"
            card = ids[place]
            reason = self._cards[place].likeliest
            key = key if modifier else "focus"
        elif modifier:
            key = "reason"
            reason = name[-1].lower()
        self._tab.press(
            ReviewKey(
                key=key, number=0, seen=dict.fromkeys(ids, 1.0), box=self._box, card=card, reason=reason,
                subject=self._tab.wnid, seconds=dict.fromkeys(ids, 0.0),
            )
        )  # fmt: skip
        if key == "Enter":
            self._box = None
        self._show()


def review_all(page: Reviewed, truth: Truth) -> Count:
    """Review every class with the fewest presses; an image that is not in `truth` is clean."""
    count = Count()
    wnid = ""
    is_after_guess = False
    before = 0
    while True:
        shown, cards_of_class = page.state()
        if not shown:
            return count
        if shown != wnid:
            count.classes += 1
            wnid = shown
            before = count.presses.total()
        elif count.presses.total() > before + MAX_PRESSES:
            sys.exit(f"{wnid}: not settled after {MAX_PRESSES} presses")
        queued = [card for card in cards_of_class if card["queued"]]
        presses = next_presses(queued, truth, count, is_after_guess)
        for kind, key in presses:
            page.press(key)
            count.presses[kind] += kind != "mouse"
        is_after_guess = presses[0][1].startswith(("Shift+Digit", "Shift+Click"))


def next_presses(
    queued: Sequence[Mapping[str, Any]], truth: Truth, count: Count, is_after_guess: bool
) -> list[tuple[str, str]]:
    """The next keys with what they are for; `mouse` is what a person does with the mouse, or what is proposed.

    `is_after_guess`: Shift with a reason's key would change the guess before.
    """
    clean = Verdict("clean", None)
    flawed = [
        (card, truth.get(card["id"], clean)) for card in queued if truth.get(card["id"], clean).verdict != "clean"
    ]
    if not flawed:
        return [("all", "a")]
    card, known = next((each for each in flawed if each[0]["focus"]), flawed[0])
    letter = KEY_OF[known.reason or ""]
    if known.verdict == "crop":
        count.cropped += 1
        # the box and its reason are proposed; here an arrow and the reason's key stand for the proposal
        draw = [("mouse", DRAW), ("mouse", letter)]
        return [*focus_on(card), ("crop", "x"), *draw, ("crop", "v"), ("crop", "Enter")]
    count.rejected += 1
    is_guessed = card["reason"] == known.reason
    count.guessed += is_guessed
    if card["focus"] and not is_after_guess:
        return [("exception", f"Shift+Key{letter.upper()}")]
    if is_guessed:
        return [("exception", f"Shift+{digit_of(card)}")]
    return [("reason", digit_of(card)), ("exception", f"Shift+Key{letter.upper()}")]


def focus_on(card: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [] if card["focus"] else [("other", digit_of(card))]


def digit_of(card: Mapping[str, Any]) -> str:
    """The key of a card, or a click on one that has none: Digit3, Click12."""
    return f"{'Digit' if card['number'] < 10 else 'Click'}{card['number']}"


if __name__ == "__main__":
    if "--serve" in sys.argv:
        serve(Path(sys.argv[2]), "--hinted" in sys.argv)
    else:
        limits = [int(each) for each in sys.argv[1:] if each.isdecimal()]
        classes = limits[0] if limits else CLASSES
        models = limits[1] if limits[1:] else None
        main(classes, models, in_browser="without-browser" not in sys.argv, is_wide="wide" in sys.argv)
