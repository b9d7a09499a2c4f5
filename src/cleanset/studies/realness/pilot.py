"""`cleanset study pilot`: simulated people go through a plan's page in a real browser, and their answers are analysed.

A copy of the plan is served by the usual server, so that nothing of a pilot is in the plan's own answers. The page's
clock is set forward instead of waiting, so that times are those of the simulated people.

The ratings of careful people follow the model of the analysis, with the variances of the published studies; all draws
depend on the seed and the person alone.
"""

import io
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from itertools import chain
from math import log
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field, NonNegativeFloat

from cleanset.errors import CleansetError
from cleanset.plumbing.files import new_folder, read_text
from cleanset.plumbing.interpreter import python_command
from cleanset.plumbing.json_files import write_json
from cleanset.plumbing.progress import tracked
from cleanset.statistics.formats import counted, decimal, rounded
from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.realness import analysis_report
from cleanset.studies.realness.analysis import AnalysisSettings
from cleanset.studies.realness.layout import NOMINAL_PIXELS_PER_MM
from cleanset.studies.realness.mixed import Variances
from cleanset.studies.realness.plan import PlanRequest, read_trials
from cleanset.studies.realness.plan_files import KEY, PLAN, TRIALS, read_plan
from cleanset.studies.realness.planning import PUBLISHED_FIT, StudyDesign
from cleanset.studies.realness.ratings import SCALE, SIDES, parse_key
from cleanset.studies.realness.study_server import ANSWERS_FOLDER, FINISHED, PEOPLE, STUDY_ID

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from rich.console import RenderableType

Manner = Literal["careful", "careless", "fast", "biased"]
"""careful: rates and passes all checks. careless: answers at random. fast: rates, in a second, and guesses at checks.
biased: gives the first answer to everything."""

TrialKind = Literal["image", "attention", "pair", "plate"]

MANNERS: tuple[Manner, ...] = (
    "careful", "careful", "careless", "careful", "careful", "fast", "careful", "careful", "biased", "careful",
)  # fmt: skip
"""The kinds of ten people, in order; they repeat."""

SECONDS: Mapping[Manner, float] = {"careful": 6.0, "careless": 2.0, "fast": 1.0, "biased": 3.0}
"""Median time for an answer."""
SPREAD = 0.5
"""Standard deviation of the logarithm of the time."""
MEAN_RATING = 0.7
"""Share of real images, as in the published studies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTrial:
    """A trial as a person sees it, and what a careful person sees in it."""

    kind: TrialKind
    stimulus: str
    truth: str = ""
    """For an image, real or modified; for an attention check, the index of its answer in the scale; for a pair,
    the side of the modified image; for a plate, its digit or none."""


class SimulatedPerson:
    """A person of a pilot. `effect`: the mean rating of modified images minus that of real ones, -4 to 4."""

    def __init__(self, number: int, seed: int, *, effect: float, variances: Variances) -> None:
        self.number = number
        self.manner = MANNERS[number % len(MANNERS)]
        self.seed = seed
        self._variances = variances
        self._random = np.random.default_rng(change_seed(seed, "pilot", "person", number))
        slope = self._random.normal(0, variances.slope**0.5)
        self._means = {"real": MEAN_RATING, "modified": MEAN_RATING + effect + slope}
        self._own = self._random.normal(0, variances.person**0.5)

    def answer(self, trial: SeenTrial) -> tuple[int, float]:
        """The answer to a trial, as its place among the choices from 0, and the seconds that it takes."""
        seconds = float(self._random.lognormal(log(SECONDS[self.manner]), SPREAD))
        return self._choice(trial), seconds

    def _choice(self, trial: SeenTrial) -> int:
        choices = {"pair": len(SIDES), "plate": 10}.get(trial.kind, len(SCALE))
        guess = int(self._random.integers(choices))
        if self.manner == "biased":
            return 0
        if self.manner == "careless":
            return guess
        if trial.kind == "image":
            return self._rating(trial)
        is_right = self.manner == "careful" or trial.kind == "plate"
        return self._correct(trial) if is_right else guess

    def _correct(self, trial: SeenTrial) -> int:
        if trial.kind == "pair":
            return SIDES.index(trial.truth)
        if trial.kind == "plate":
            return 9 if trial.truth == "none" else int(trial.truth) - 1
        return int(trial.truth)

    def _rating(self, trial: SeenTrial) -> int:
        variances = self._variances
        of_image = np.random.default_rng(image_seed(change_seed(self.seed, "pilot", "image", 0), trial.stimulus))
        spread = variances.real if trial.truth == "real" else variances.modified
        mean = self._means[trial.truth] + self._own + of_image.normal(0, spread**0.5)
        drawn = round(float(self._random.normal(mean, variances.residual**0.5)))
        return SCALE.index(max(SCALE[0], min(SCALE[-1], drawn)))


BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""Programs that are looked for before the browser that playwright installs."""
OPTIONS = ("--no-sandbox", "--disable-gpu", "--no-first-run")
WINDOWS = ((1280, 800), (1920, 1080), (2560, 1440))
"""Widths and heights in CSS pixels, of one person after the other."""
READING_SECONDS = 60
"""For the pages before the first trial."""
PATIENCE_MILLISECONDS = 30_000
DOUBLE_CLICK_MILLISECONDS = 350
STEP_MILLISECONDS = 40
CARD_MM = 85.6
SCREENS = "screens"
COPY = "plan"
ANALYSIS = "analysis"
RESULT = "pilot.json"
WIDTH = 100
"""Characters of a line of the analysis."""

_BUTTONS = "#jspsych-html-button-response-btngroup button"
_MARK_ANSWERED = "() => document.querySelector('main h1').setAttribute('data-answered', '')"
_STATE = (files("cleanset.studies.realness") / "static" / "pilot.js").read_text(encoding="utf-8").rstrip().rstrip(";")


@dataclass(frozen=True, slots=True)
class PilotSettings:
    """Options of a pilot."""

    effect: Annotated[float, Field(ge=-4, le=4)] = 0.0
    """The mean rating of modified images minus that of real ones, of careful people."""

    wage: NonNegativeFloat = 0.0
    """Payment for an hour; 0: none is reckoned."""

    consent: Path | None = None
    """File with a piece of HTML, as of `study serve`."""

    instructions: Path | None = None
    """File with a piece of HTML, as of `study serve`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PilotPerson:
    """How far a simulated person came."""

    manner: Manner
    seconds: float
    """From opening the page to its end."""

    end: str
    """The first line of the last page."""

    is_complete: bool
    is_screened_out: bool
    """Whether the page has promised payment to one who cannot continue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pilot:
    """The result of a pilot."""

    seed: int
    settings: PilotSettings
    people: tuple[PilotPerson, ...]
    planned_people: int
    """The number of lists of the plan."""

    remaining: int | None
    """Number of people whom the analysis does not exclude; None if there is no analysis."""

    power: float | None
    """The power of the planned number of complete people, less the share excluded in the pilot; None as above."""

    wanted_power: float
    analysis: str
    """The analysis of the answers, in lines, or why there is none."""

    screens: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageState:
    """What is on the page, as static/pilot.js finds it."""

    kind: str
    """A kind of trial, or card, consent, page (with one button), window (too small) or end; empty: not yet."""

    text: str
    """For an attention check, what to choose; for a window and an end, the text of the page."""

    files: list[str]
    """The addresses of the images."""

    labels: list[str]
    """The labels of the buttons."""


@dataclass(slots=True)
class _Walk:
    """What a walk through the page needs to know, and the pictures taken so far."""

    kinds: Mapping[str, SeenTrial]
    """By stimulus, what is known of it."""

    pairs: Mapping[frozenset[str], str]
    """The stimulus of a pair, by the names of its two files."""

    screens: Path
    shown: set[tuple[int, str]] = field(default_factory=set)

    def photograph(self, page: "Page", width: int, kind: str) -> None:
        """Take a picture of the first page of a kind in a window."""
        if (width, kind) not in self.shown:
            self.shown.add((width, kind))
            number = sum(each == width for each, _ in self.shown)
            page.screenshot(path=self.screens / f"{width}-{number}-{kind}.png")

    def seen(self, state: PageState) -> SeenTrial:
        """The trial of a page."""
        if state.kind == "attention":
            return SeenTrial(kind="attention", stimulus="", truth=str(state.labels.index(state.text)))
        names = [each.rpartition("/")[2] for each in state.files]
        stimulus = self.pairs[frozenset(names)] if state.kind == "pair" else names[0].partition(".")[0]
        return self.kinds[stimulus]


def run_pilot(plan: Path, out: Path, people: int, seed: int, settings: PilotSettings) -> Pilot:
    """Let simulated people go through the page of a plan, and write what they see and answer into `out`.

    Raises CleansetError for a folder that is not a plan, and without a browser.
    """
    plan_files = read_plan(plan, images=True)
    record = json.loads(read_text(plan / PLAN, ""))
    with new_folder(out) as folder:
        of_people = shutil.ignore_patterns(ANSWERS_FOLDER, PEOPLE, FINISHED, f"{STUDY_ID}*")
        shutil.copytree(plan, folder / COPY, ignore=of_people)
        (folder / SCREENS).mkdir()
        walk = _Walk(kinds=_known(plan_files.key), pairs=_pairs(plan_files.trials), screens=folder / SCREENS)
        crowd = [
            SimulatedPerson(number, seed, effect=settings.effect, variances=PUBLISHED_FIT) for number in range(people)
        ]
        # playwright does not start in a thread with an event loop, such as a notebook's
        with _served(folder / COPY, people, settings) as address, ThreadPoolExecutor(1) as thread:
            found = thread.submit(_all_walked, address, walk, crowd).result()
        complete = sum(each.is_complete for each in found)
        remaining, analysis = _analysed(folder)
        pilot = Pilot(
            seed=seed,
            settings=settings,
            people=found,
            planned_people=record["people"],
            remaining=remaining,
            power=None if remaining is None else _power(record, record["people"] * remaining // max(1, complete)),
            wanted_power=record["people_needed"]["power"],
            analysis=analysis,
            screens=tuple(sorted(path.name for path in (folder / SCREENS).iterdir())),
        )
        # without what is elsewhere on this machine
        own = {
            name: path and path.name
            for name, path in (("consent", settings.consent), ("instructions", settings.instructions))
        }
        write_json(folder / RESULT, asdict(pilot) | {"settings": asdict(settings) | own})
    return pilot


def _all_walked(address: str, walk: _Walk, people: Sequence[SimulatedPerson]) -> tuple[PilotPerson, ...]:
    with _browser() as browser:
        return tuple(_walked(browser, address, walk, person) for person in tracked(people, len(people), "people"))


def _power(record: Mapping[str, Any], people: int) -> float:
    """The power of a number of people of a plan, with the variances that it was planned with."""
    images = record["images"]
    test = record["test"]
    wish = PlanRequest(**record["list"], bound=test["bound"], alpha=test["alpha"], effect=test["effect"])
    design = StudyDesign(images["real"], images["modified"], wish, Variances(**record["variances"]))
    return rounded(design.power(people), 4) if people >= 2 else 0.0


def _analysed(folder: Path) -> tuple[int | None, str]:
    """The number of people whom the analysis keeps, and its text; None and the reason if there is none."""
    answers = sorted((folder / COPY / ANSWERS_FOLDER).glob("*.csv"))
    if not answers:
        return None, "no answers: nobody came to the first trial"
    try:
        found = analysis_report.analyse_files(answers, AnalysisSettings(), folder / COPY, folder / ANALYSIS)
    except CleansetError as error:
        return None, str(error)
    return found.people, _in_lines(analysis_report.analysis_text(found))


def _in_lines(found: "RenderableType") -> str:
    from rich.console import Console

    lines = io.StringIO()
    Console(file=lines, width=WIDTH, color_system=None).print(found, highlight=False)
    return lines.getvalue().rstrip()


def _known(key: str) -> dict[str, SeenTrial]:
    """By stimulus, each trial of a plan's key but the attention checks, whose text says the answer."""
    kinds: Mapping[str, TrialKind] = {"real": "image", "modified": "image", "pair": "pair", "plate": "plate"}
    return {
        name: SeenTrial(
            kind=kinds[each.kind],
            stimulus=name,
            truth=each.kind if kinds[each.kind] == "image" else each.expected,
        )
        for name, each in parse_key(key, KEY).items()
        if each.kind in kinds
    }


def _pairs(trials: str) -> dict[frozenset[str], str]:
    shown = chain.from_iterable(read_trials(trials, TRIALS).values())
    return {frozenset((each.file, each.file_right)): each.stimulus for each in shown if each.kind == "pair"}


def _walked(browser: "Browser", address: str, walk: _Walk, person: SimulatedPerson) -> PilotPerson:
    """Go through the page to its end."""
    width, height = WINDOWS[person.number % len(WINDOWS)]
    context = browser.new_context(viewport={"width": width, "height": height})
    try:
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MILLISECONDS)
        page.clock.install()
        page.goto(address)
        seconds = float(READING_SECONDS)
        while True:
            state = _settled(page)
            kind = state.kind
            walk.photograph(page, width, kind)
            if kind == "window":
                raise CleansetError(f"the pilot: in a window of {width} x {height} the page says: {state.text}")
            if kind == "end":
                break
            if kind == "card":
                # as if the screen had 96 CSS pixels in an inch
                page.locator("#card-width").fill(f"{CARD_MM * NOMINAL_PIXELS_PER_MM:.1f}")
            page.evaluate(_MARK_ANSWERED)
            if kind == "consent":
                page.wait_for_timeout(DOUBLE_CLICK_MILLISECONDS)
                page.locator("main > p button").first.click()
                continue
            if kind in ("card", "page"):
                _click(page, 0)
                continue
            choice, taken = person.answer(walk.seen(state))
            page.clock.run_for(round(1000 * taken))
            seconds += taken
            if kind == "plate":
                _click(page, choice)
            else:
                page.keyboard.press(str(choice + 1))
        return PilotPerson(
            manner=person.manner,
            seconds=rounded(seconds, 1),
            end=state.text,
            is_complete=state.text == page.evaluate("() => STUDY.texts.done[0]"),
            is_screened_out=state.text
            in page.evaluate("() => [STUDY.texts.screened_out[0], STUDY.texts.colour_vision[0]]"),
        )
    finally:
        context.close()


def _settled(page: "Page") -> PageState:
    """What is on the page once it can be answered."""
    for _ in range(PATIENCE_MILLISECONDS // STEP_MILLISECONDS):
        found = PageState(**page.evaluate(_STATE))
        if found.kind:
            return found
        page.wait_for_timeout(STEP_MILLISECONDS / 4)
        page.clock.run_for(STEP_MILLISECONDS)
    raise CleansetError(f"the pilot: the page cannot be answered; it shows: {page.inner_text('main')[:300]}")


def _click(page: "Page", place: int) -> None:
    """Click a button, later than a second click of one double click."""
    page.wait_for_timeout(DOUBLE_CLICK_MILLISECONDS)
    page.locator(f"{_BUTTONS} >> nth={place}").click()


@contextmanager
def _browser() -> "Iterator[Browser]":
    """A Chromium without a window. Raises CleansetError without one."""
    from playwright.sync_api import Error, sync_playwright

    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as started:
        try:
            browser = started.chromium.launch(executable_path=program, args=list(OPTIONS))
        except Error as error:
            raise CleansetError(
                f"no browser ({str(error).splitlines()[0]}); expected Chromium: install it, or run playwright install "
                "chromium"
            ) from None
        yield browser
        browser.close()


@contextmanager
def _served(plan: Path, people: int, settings: PilotSettings) -> Iterator[str]:
    """The address at which the usual server serves a plan, in a process of its own."""
    given = {"people": people, "consent": settings.consent, "instructions": settings.instructions}
    chosen = ",".join(f"{name}={value}" for name, value in given.items() if value is not None)
    options = ["--plan", str(plan), "--port", "0", "--no-browser", "--settings", chosen]
    command = python_command("-m", "cleanset", "study", "serve", *options)
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stderr is not None
    try:
        found = next(filter(None, (re.search(r"https?://\S+", line) for line in server.stdout)), None)
        if found is None:
            raise CleansetError(f"the pilot: the plan cannot be served: {server.stderr.read().strip()}")
        yield found[0]
    finally:
        server.kill()
        server.communicate()


def pilot_text(pilot: Pilot, out: Path) -> str:
    """The result in some lines."""
    manners = Counter(each.manner for each in pilot.people)
    complete = [each for each in pilot.people if each.is_complete]
    stopped = Counter(f"{each.manner}: {each.end}" for each in pilot.people if not each.is_complete)
    lines = [
        f"{counted(len(pilot.people), 'simulated person')}, seed {pilot.seed}: "
        + ", ".join(f"{count} {manner}" for manner, count in manners.items()),
        f"complete: {len(complete)}" + "".join(f"; {count} {what}" for what, count in stopped.items()),
    ]
    careful = [each.seconds for each in complete if each.manner == "careful"]
    if careful:
        minutes = median(careful) / 60
        lines.append(
            f"duration of careful people: {decimal(minutes, 1)} min (median), at most "
            f"{decimal(max(careful) / 60, 1)} min"
        )
        if pilot.settings.wage:
            lines.append(_payment(pilot, minutes))
    lines += [
        _power_text(pilot, len(complete)),
        "",
        pilot.analysis,
        "",
        f"pictures of the page: {out / SCREENS}; answers: {out / COPY / 'answers'}; analysis: {out / ANALYSIS}",
    ]
    return "\n".join(lines)


def _payment(pilot: Pilot, minutes: float) -> str:
    """The payment of the planned people, and of those who are screened out until that number is complete."""
    wage = pilot.settings.wage / 60
    each = wage * minutes
    total = each * pilot.planned_people
    of_all = f"{decimal(total, grouped=True)} for {counted(pilot.planned_people, 'person')}"
    text = f"payment at {pilot.settings.wage:g} an hour: {decimal(each)} each, {of_all}"
    screened = [one.seconds / 60 for one in pilot.people if one.is_screened_out]
    if not screened:
        return text
    times = pilot.planned_people / sum(one.is_complete for one in pilot.people)
    count = round(times * len(screened))
    theirs = wage * times * sum(screened)
    further = f"{decimal(theirs, grouped=True)} for {counted(count, 'person')} screened out on the way"
    return f"{text}; {further}; {decimal(total + theirs, grouped=True)} in all"


def _power_text(pilot: Pilot, complete: int) -> str:
    planned = counted(pilot.planned_people, "person")
    if pilot.power is None:
        return f"power with the {planned} planned: not known, as the answers could not be analysed"
    return (
        f"power with the {planned} planned, {pilot.remaining} in {complete} remaining after exclusions: "
        f"{decimal(pilot.power)} (wanted: {pilot.wanted_power:g})"
    )
