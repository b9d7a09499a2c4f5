"""The command `attacks evaluate`: any models attacked outside DVC, and the files that are written of it."""

from functools import cache, partial

from cleanset.errors import CleansetError
from cleanset.evaluation.compare.result_files import ATTACK_RESULTS
from cleanset.evaluation.measures import measures_frame
from cleanset.evaluation.rendering import PAGE
from cleanset.plumbing.csv_files import write_frame
from cleanset.plumbing.files import remove_abandoned, write_text
from cleanset.plumbing.json_files import with_digest, write_json
from cleanset.plumbing.waiting import announced
from cleanset.studies.attacks.evaluation_results import AttackedModels, content_of
from cleanset.studies.attacks.evaluation_tables import page_of
from cleanset.studies.attacks.request import AttackRequest
from cleanset.studies.attacks.results import MEASURE_COLUMNS, measure_lines
from cleanset.studies.attacks.warnings import attacked_model


def run(request: AttackRequest) -> AttackedModels:
    """Attack the models; write the changed images, measures, warnings, results and page into the folder of the request.

    Raises CleansetError with the remedy.
    """
    from cleanset.evaluation.models import check_model
    from cleanset.scoring.decoding import worker_processes
    from cleanset.scoring.engine import settings_for
    from cleanset.studies.attacks.attacked import Found, attack
    from cleanset.studies.attacks.evaluated_models import EVALUATING, EvaluatedModel, facts_of_models

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
    for name, stem in request.stems.items():
        attack(
            EvaluatedModel(spec=request.specs[name], stem=stem, request=request, settings=settings),
            facts_of_others,
            found,
        )
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
    )
    with announced("writing the results and the page of the attacks"):
        write_frame(out / "attack_measures.csv", measures_frame(lines, MEASURE_COLUMNS))
        write_json(out / ATTACK_RESULTS, with_digest(content_of(evaluated)))
        write_text(out / PAGE, page_of(evaluated))
    return evaluated
