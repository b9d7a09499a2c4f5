"""A model of a request: loaded, attacked, searched for signs of gradient masking, judged anew."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pandas as pd

from cleanset.errors import CleansetError
from cleanset.evaluation.specs import CommandModel, is_custom
from cleanset.plumbing.json_files import JsonMapping
from cleanset.studies.attacks.attacking import Attacking
from cleanset.studies.attacks.evaluated_models import EvaluatedModel
from cleanset.studies.attacks.threats import PROBE
from cleanset.studies.attacks.warning_stage import probed, settled_with_probe
from cleanset.studies.attacks.warnings import WarningRecord


@dataclass(frozen=True, slots=True)
class Found:
    """What was found on the models of a request."""

    results: dict[tuple[str, str], pd.DataFrame] = field(default_factory=dict)
    """Rows of NAMED_ATTACKED, by attack and model."""
    warnings: dict[str, WarningRecord] = field(default_factory=dict)
    """By model."""
    problems: dict[tuple[str, str], str] = field(default_factory=dict)
    """By attack and model what prevented a run."""

    def of_model(self, model: str) -> dict[str, pd.DataFrame]:
        """The results on a model, by attack."""
        return {name: each for (name, of), each in self.results.items() if of == model}


def attack(evaluated: EvaluatedModel, facts_of_others: Callable[[], JsonMapping], found: Found) -> None:
    """Attack a model of a request, and add what is found; `facts_of_others`: identifies those that images are made on.

    A model that cannot be loaded, or an attack that fails, is a problem of its own: the results of all others stay.
    """
    model = evaluated.spec.text
    attacks = evaluated.request.params.attacks
    try:
        named = evaluated.open()
    except CleansetError as error:
        found.problems.update({(name, model): str(error) for name in attacks})
        return
    target = evaluated.target(named, evaluated.settings.devices[0])
    finished = list[Attacking]()
    for name in attacks:
        try:
            search = evaluated.search(name, named, target, facts_of_others)
            search.attacking.run_unfinished(search, evaluated.other_searches(name))
        except CleansetError as error:
            found.problems[name, model] = str(error)
        else:
            finished.append(search.attacking)
    if not finished:
        return
    kept = evaluated.attacking(PROBE, target)
    is_command = isinstance(evaluated.spec, CommandModel)
    try:
        seen = None
        if evaluated.request.warnings:
            seen = probed(kept, evaluated.sources(target), is_command=is_command)
        record = settled_with_probe(finished, kept, seen, evaluated.anew(), is_custom=is_custom(evaluated.spec))
    except CleansetError as error:
        found.problems["verdicts and warnings", model] = str(error)
        return
    if record is not None:
        found.warnings[model] = record
    found.results.update({(each.name, model): each.results() for each in finished})
