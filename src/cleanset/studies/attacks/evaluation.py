"""The command `attacks evaluate`: any models attacked outside DVC, and the files that are written of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial

import pandas as pd

from cleanset.errors import CleansetError
from cleanset.evaluation.compare.result_files import ATTACK_RESULTS
from cleanset.evaluation.measured_models import not_deterministic
from cleanset.evaluation.measures import measures_frame
from cleanset.evaluation.models import check_model
from cleanset.evaluation.rendering import PAGE
from cleanset.evaluation.sets import SetImages
from cleanset.evaluation.specs import CommandModel, is_custom
from cleanset.plumbing.csv_files import write_frame
from cleanset.plumbing.files import remove_abandoned, write_text
from cleanset.plumbing.json_files import JsonMapping, with_digest, write_json
from cleanset.plumbing.waiting import announced
from cleanset.scoring.checked_network import output_note
from cleanset.scoring.decoding import worker_processes
from cleanset.scoring.engine import dependence_of, settings_for
from cleanset.scoring.models import LoadedModel
from cleanset.studies.attacks.attacking import Attacking
from cleanset.studies.attacks.evaluated_models import EVALUATING, EvaluatedModel, facts_of_models
from cleanset.studies.attacks.evaluation_results import AttackedModels, content_of
from cleanset.studies.attacks.evaluation_tables import page_of
from cleanset.studies.attacks.request import AttackRequest
from cleanset.studies.attacks.results import MEASURE_COLUMNS, measure_lines
from cleanset.studies.attacks.threats import PROBE
from cleanset.studies.attacks.warning_stage import probed, settled_with_probe
from cleanset.studies.attacks.warnings import WarningRecord, attacked_model


@dataclass(frozen=True, slots=True)
class Found:
    """What was found on the models of a request."""

    results: dict[tuple[str, str], pd.DataFrame] = field(default_factory=dict)
    """Rows of NAMED_ATTACKED, by attack and model."""
    warnings: dict[str, WarningRecord] = field(default_factory=dict)
    """By model."""
    problems: dict[tuple[str, str], str] = field(default_factory=dict)
    """By attack and model what prevented a run."""
    notes: dict[str, list[str]] = field(default_factory=dict)
    """By model what else its readers must know: answers that depend on more than the image, outputs that are probably
    not logits."""

    def of_model(self, model: str) -> dict[str, pd.DataFrame]:
        """The results on a model, by attack."""
        return {name: each for (name, of), each in self.results.items() if of == model}


def attack(evaluated: EvaluatedModel, facts_of_others: Callable[[], JsonMapping], found: Found) -> None:
    """Attack a model of a request, and add what is found; `facts_of_others`: identifies those that images are made on.

    A model that cannot be loaded, or an attack that fails, is a problem of its own: the results of all others stay.
    """
    model = evaluated.name
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
    found.notes[model] = _notes(evaluated, named.loaded, record)
    found.results.update({(each.name, model): each.results() for each in finished})


def _notes(evaluated: EvaluatedModel, loaded: LoadedModel, record: WarningRecord | None) -> list[str]:
    found = []
    # the signs say it, where they were looked for
    if not evaluated.request.warnings and (record is None or not record.warnings):
        images = evaluated.request.images
        files = list(images.files)
        if dependence_of(loaded, SetImages(images.files), files, evaluated.settings) is not None:
            found.append(not_deterministic(evaluated.spec.text))
    note = output_note(loaded.network)
    return [*found, *([] if note is None else [note])]


def run(request: AttackRequest) -> AttackedModels:
    """Attack the models; write the changed images, measures, warnings, results and page into the folder of the request.

    Raises CleansetError with the remedy.
    """
    params = request.params
    out = request.out
    remove_abandoned(out)
    settings = settings_for(request.score)
    for spec in [*request.specs.values(), *request.others]:
        check_model(spec)
    worker_processes(EVALUATING)
    found = Found()
    # each is loaded once for this, whatever number of models is attacked
    facts_of_others = cache(partial(facts_of_models, request.others, settings, request.images.classes))
    for name in request.stems:
        attack(EvaluatedModel(name=name, request=request, settings=settings), facts_of_others, found)
    if not found.results:
        raise CleansetError(next(iter(found.problems.values())))
    with announced("measuring the attacked models"):
        attacked = {model: attacked_model(found.of_model(model), found.warnings.get(model)) for model in request.specs}
        lines = measure_lines(attacked, params.threats, params.resampling, request.images.group_of)
    evaluated = AttackedModels(
        request=request,
        attacked=attacked,
        lines=lines,
        warnings=found.warnings,
        problems=found.problems,
        notes=found.notes,
    )
    with announced("writing the results and the page of the attacks"):
        write_frame(out / "attack_measures.csv", measures_frame(lines, MEASURE_COLUMNS))
        write_json(out / ATTACK_RESULTS, with_digest(content_of(evaluated)))
        write_text(out / PAGE, page_of(evaluated))
    return evaluated
