"""The page of costs: time, rate and memory of each run, which differ from run to run and so lie outside DVC."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cleanset.errors import CleansetError
from cleanset.files import read_text, write_text
from cleanset.parsing import parse_json
from cleanset.report.pages import page_environment
from cleanset.studies.attacks.page import TEMPLATES as ATTACK_TEMPLATES
from cleanset.studies.robustness.pages import TEMPLATES as ROBUSTNESS_TEMPLATES
from cleanset.studies.training.finished import FinishedRun
from cleanset.studies.training.pages import TEMPLATES
from cleanset.studies.training.planning import duration
from cleanset.studies.training.study import TrainingStudy

MEBIBYTE = 2**20
NUMBERS = ("seconds", "images", "images_per_second", "peak_memory_bytes")


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of training a run on a fold. `finished`: UTC; None where the record lacks it.

    `factor`: the rate of the fastest run of the same size, batch and device by this one's.
    """

    run: str
    fold: str
    network: str
    parameters: float
    size: int
    batch: int
    device: str
    seconds: float
    images_per_second: float
    peak_mebibytes: float
    finished: str | None = None
    step: int | None = None
    factor: float = 1.0


def costs_of(study: TrainingStudy, runs: Sequence[FinishedRun]) -> list[Cost]:
    """The costs of all folds whose training left them, which a checkout from DVC's cache does not bring."""
    found = []
    for run in runs:
        for fold in run.folds:
            path = study.cost(run.name, fold.fold)
            if not path.is_file():
                continue
            remedy = "remove it; the table then leaves this run out"
            found.append(cost_of(run, fold.fold, parse_json(read_text(path, remedy), str(path), remedy), str(path)))
    return with_factors(found)


def cost_of(run: FinishedRun, fold: str, record: Any, where: str) -> Cost:
    """The cost in a record of the stage train. Raises CleansetError for a number that is missing."""
    values = record if isinstance(record, dict) else {}
    for name in NUMBERS:
        if not isinstance(values.get(name), int | float):
            raise CleansetError(f"{where}: no {name} as a number; expected the costs of a run: remove it")
    return Cost(
        run.name, fold, run.network, run.parameters, run.run.size, run.run.batch, str(values.get("device", "")),
        float(values["seconds"]), float(values["images_per_second"]), values["peak_memory_bytes"] / MEBIBYTE,
        values.get("finished"), values.get("step"),
    )  # fmt: skip


def with_factors(costs: Sequence[Cost]) -> list[Cost]:
    """The costs with their factors."""
    fastest: dict[tuple[int, int, str], float] = {}
    for each in costs:
        key = each.size, each.batch, each.device
        fastest[key] = max(fastest.get(key, 0.0), each.images_per_second)
    found = []
    for each in costs:
        rate = fastest[each.size, each.batch, each.device]
        factor = rate / each.images_per_second if each.images_per_second else 1.0
        found.append(replace(each, factor=factor))
    return found


def write_costs_page(study: TrainingStudy, runs: Sequence[FinishedRun]) -> None:
    """Write costs/index.html."""
    environment = page_environment(TEMPLATES, ROBUSTNESS_TEMPLATES, ATTACK_TEMPLATES)
    environment.filters["duration"] = duration
    costs = costs_of(study, runs)
    without = [run.name for run in runs if not any(each.run == run.name for each in costs)]
    text = environment.get_template("training_costs.html").render({"costs": costs, "without": without})
    study.costs.mkdir(parents=True, exist_ok=True)
    write_text(study.costs / "index.html", text)
