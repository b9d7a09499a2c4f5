"""`cleanset study plan`: reads a finished set and attacked images, writes lists, stimuli, key and page."""

import json
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

from cleanset.errors import CleansetError
from cleanset.exports.folder import read_entries
from cleanset.files import new_folder, write_text
from cleanset.studies.realness.analysing import texts_of
from cleanset.studies.realness.equivalence import (
    POWER,
    PUBLISHED,
    EquivalenceQuestion,
    StudyDesign,
    people_needed,
    power,
    standard_error,
)
from cleanset.studies.realness.lists import ListSizes, StudyImage
from cleanset.studies.realness.mixed import Variances, fit
from cleanset.studies.realness.plan import StudyPlan, key_csv, make_plan, page_data, trials_csv
from cleanset.studies.realness.ratings import ImageKind, read_ratings
from cleanset.studies.realness.stimuli import Size, attacked_images, common_size, source_of, write_stimuli

PAGE, KEY, TRIALS, PLAN = "page", "key.csv", "trials.csv", "plan.json"
"""Content of a plan's folder: the page for people; key, table of lists, and plan for the organiser."""
STATIC = (
    "index.html", "study.css", "study.js", "jspsych.min.js", "html-button-response.min.js", "jspsych.LICENSE",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The organiser's options; `people` None: as many as the bound needs."""

    people: int | None
    real: int
    modified: int
    attention: int
    pairs: int
    question: EquivalenceQuestion
    power: float = POWER
    side: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """A plan, its size in pixels, and its power; `needed`: people for the bound (None: no number is enough)."""

    plan: StudyPlan
    size: Size
    needed: int | None
    power: float
    standard_error: float


def run(set_folder: Path, attacked: Path, out: Path, wish: PlanRequest, pilot: Path | None = None) -> PlanOutcome:
    """Write the plan into `out`, a new or empty folder. Raises CleansetError for images that cannot be read."""
    entries = {entry.file: entry for entry in sorted(read_entries(set_folder), key=lambda entry: entry.file)}
    made = attacked_images(attacked)
    images = [StudyImage("real", name, entry.image_id) for name, entry in entries.items()]
    images += [StudyImage("modified", name, source_of(name)) for name in made]
    variances = PUBLISHED if pilot is None else variances_of(pilot)
    design = StudyDesign(len(entries), len(made), wish.real, wish.modified)
    needed = _needed(design, variances, wish)
    people = wish.people or needed
    if people is None:
        # this raises, and gives the reason
        people_needed(design, variances, wish.question, wish.power)
        raise AssertionError("no number of people")
    plan = make_plan(images, ListSizes(people, wish.real, wish.modified, wish.attention, wish.pairs), wish.seed)
    # the size of the attacked images by default, so that these are not resampled
    size = (wish.side, wish.side) if wish.side else common_size({name: attacked / name for name in made})
    outcome = PlanOutcome(
        plan, size, needed, power(people, design, variances, wish.question), standard_error(people, design, variances)
    )
    with new_folder(out) as folder:
        digests = write_stimuli(folder / PAGE / "images", plan, size, set_folder, entries, attacked)
        wnids: dict[tuple[ImageKind, str], str] = {("real", name): entry.wnid for name, entry in entries.items()}
        write_text(folder / KEY, key_csv(plan, wnids, digests))
        write_text(folder / TRIALS, trials_csv(plan))
        write_text(folder / PLAN, json.dumps(record(outcome, wish, variances), indent=2) + "\n")
        for name in STATIC:
            (folder / PAGE / name).write_bytes((files("cleanset.studies.realness") / "static" / name).read_bytes())
        data = json.dumps(page_data(plan), separators=(",", ":"))
        write_text(folder / PAGE / "lists.js", f"const STUDY = {data};\n")
    return outcome


def variances_of(pilot: Path) -> Variances:
    """The variance components of a pilot study's ratings."""
    ratings = read_ratings(texts_of([pilot])).ratings
    kinds = [each.kind == "modified" for each in ratings]
    values = [each.rating for each in ratings]
    return fit(values, [each.person for each in ratings], [each.image for each in ratings], kinds).variances


def record(outcome: PlanOutcome, wish: PlanRequest, variances: Variances) -> dict[str, object]:
    """The content of plan.json: the options of the plan, and its power."""
    plan = outcome.plan
    kinds = [image.kind for image in plan.images]
    return {
        "people": len(plan.lists),
        "seed": plan.seed,
        "images": {"real": kinds.count("real"), "modified": kinds.count("modified"), "pixels": list(outcome.size)},
        "list": {"real": wish.real, "modified": wish.modified, "attention": wish.attention, "pairs": wish.pairs},
        "people_of_an_image": {kind: list(ends) for kind, ends in plan.shown.items()},
        "people_who_see_two_of_one_source": plan.sources_twice,
        "test": asdict(wish.question),
        "variances": {name: round(value, 4) for name, value in asdict(variances).items()},
        "standard_error": round(outcome.standard_error, 4),
        "power": round(outcome.power, 4),
        "people_needed": {"power": wish.power, "people": outcome.needed},
    }


def _needed(design: StudyDesign, variances: Variances, wish: PlanRequest) -> int | None:
    try:
        return people_needed(design, variances, wish.question, wish.power)
    except CleansetError:
        return None


def plan_summary(outcome: PlanOutcome, wish: PlanRequest, out: Path) -> str:
    """The plan in a few lines of text."""
    plan, test = outcome.plan, wish.question
    shown = "; ".join(
        f"each {kind} image to {low if low == high else f'{low} or {high}'}" for kind, (low, high) in plan.shown.items()
    )
    needed = f"{outcome.needed:,} people" if outcome.needed else "more images: no number of people is enough"
    lines = [
        f"{out}: {len(plan.lists):,} lists of {wish.real} real and {wish.modified} modified images, "
        f"{wish.attention} attention checks and {wish.pairs} pairs",
        f"people who see it: {shown}",
        f"power for a bound of ±{test.bound:g} at alpha {test.alpha:g}: {outcome.power:.2f} (standard error "
        f"{outcome.standard_error:.3f}); {wish.power:g} needs {needed}",
    ]
    if plan.sources_twice:
        lines.append(f"{plan.sources_twice:,} people see two images of one source: more images would prevent it")
    return "\n".join(
        [*lines, f"give people {out / PAGE}, index.html?list=1 and so on; keep {KEY} and {PLAN} to yourself"]
    )
