"""The stages attacks, further_attacks, wrapped_attacks and guess: one attack on one model of a study, opened and run.

The search runs in any precision; candidates are judged in float64, and again in a fresh process for a custom model.
"""

from cleanset.errors import CleansetError
from cleanset.evaluation.specs import is_custom
from cleanset.plumbing.progress import print_notice
from cleanset.scoring.decoding import worker_processes
from cleanset.studies.attacks.evaluated_models import EVALUATING, EvaluatedModel
from cleanset.studies.attacks.judged_anew import settle
from cleanset.studies.attacks.study import AllParams, AttackParams, AttackStudy


def run_attack(study: AttackStudy, model: str, name: str, attack_params: AttackParams | None = None) -> None:
    """Read the images and the model's weights, write data/attacks/<name>/<model>/.

    `model` is a role of the edition or the name of a further or a wrapped model, `name` an attack's.
    `attack_params` default to the params.yaml of the attacks. Finished groups are kept next to the results until the
    end, so that an interrupted run is continued. Raises CleansetError, too, where a clean image does not get the stored
    scores, bit for bit.
    """
    worker_processes(EVALUATING)
    # a node of a cluster has another working folder
    study = AttackStudy(study.folder.resolve())
    params = AllParams.read(study, attack_params)
    roles = list(params.edition.models)
    if params.attacks.is_left_out(name, model, roles):
        raise CleansetError(
            f"{name} {model}: {name} reads stored predictions, which only the edition's models have; expected another "
            f"attack, or one of {', '.join(roles)}"
        )
    evaluated = EvaluatedModel.of_study(study, params, model)
    search = evaluated.opened_search(name, evaluated.settings.devices[0])
    engine = params.attacks.engine or params.edition.engine
    search.attacking.run(search, search.attacking.first_images(), evaluated.other_searches(name, engine))
    # networks of a zoo remember nothing
    if is_custom(evaluated.spec) and (sign := settle([search.attacking], evaluated.anew(), is_custom=True)):
        print_notice(f"{name} {model}: {sign.text}")
