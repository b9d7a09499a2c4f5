"""The stages attacks, further_attacks, wrapped_attacks and guess: one attack on one model of a study, opened and run.

The candidates are searched for in any precision, judged in float64, and judged anew where the model's code is a user's.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

import pandas as pd

from cleanset.errors import CleansetError
from cleanset.plumbing.files import sha256_of
from cleanset.plumbing.json_files import JsonObject
from cleanset.plumbing.progress import print_notice
from cleanset.scoring.computation import Opened, Place
from cleanset.scoring.decoding import worker_processes
from cleanset.scoring.devices import Device, choose_devices
from cleanset.scoring.models import LoadedModel
from cleanset.studies.attacks.attacking import SEARCHING, Attacking, FoundGroup, OtherSearches, Search, writers_beside
from cleanset.studies.attacks.base import Known
from cleanset.studies.attacks.changes import GUESSED
from cleanset.studies.attacks.judged_anew import settle
from cleanset.studies.attacks.study import AllParams, AttackParams, AttackStudy
from cleanset.studies.attacks.targets import guess_of, open_target, other_models, scores_check

OPENING = (__name__, *SEARCHING)
"""Modules that a worker process of a stage imports."""


def run_attack(study: AttackStudy, model: str, name: str, attack_params: AttackParams | None = None) -> None:
    """Read the images and the model's weights, write data/attacks/<name>/<model>/.

    `model` is a role of the edition or the name of a further or a wrapped model, `name` an attack's.
    `attack_params` default to the params.yaml of the attacks. Finished groups are kept beside the results until the
    end, so that an interrupted run is continued. Raises CleansetError, too, where a clean image does not get the stored
    scores, bit for bit.
    """
    worker_processes(OPENING)
    # a node of a cluster has another working folder
    opening = partial(open_attack, AttackStudy(study.folder.resolve()), attack_params, model, name)
    opened = opening(None)
    attacking = opened.search.attacking
    devices = choose_devices(opened.params.edition.score.device)
    engine = opened.params.attacks.engine or opened.params.edition.engine
    others = OtherSearches(devices=devices, open=partial(_open_at, opening), engine=engine)
    attacking.run(opened.search, opened.images, others)
    # networks of a zoo remember nothing
    if opened.params.source(model) == "module" and (
        sign := settle([attacking], partial(model_anew, study, attack_params, model), is_custom=True)
    ):
        print_notice(f"{name} {model}: {sign.text}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedAttack:
    """An attack on a model of a study, as its files have it."""

    params: AllParams
    search: Search
    images: pd.DataFrame
    """Rows of STUDY_IMAGES: the images that are attacked."""


def open_attack(
    study: AttackStudy, attack_params: AttackParams | None, model: str, name: str, device: Device | None
) -> OpenedAttack:
    """Read everything that an attack needs; `device`: None for the first one of the params."""
    params = AllParams.read(study, attack_params)
    settings = params.attacks
    roles = list(params.edition.models)
    if settings.is_left_out(name, model, roles):
        raise CleansetError(
            f"{name} {model}: {name} reads stored predictions, which only the edition's models have; expected another "
            f"attack, or one of {', '.join(roles)}"
        )
    target = open_target(study, params, model, is_measured=True, device=device)
    others = cache(partial(other_models, study, params, target.name))
    known = Known(settings.seed, target.others, cache(lambda: target.sources(others())))
    attack = settings.attack(name)
    further: JsonObject = {}
    if attack.reads_predictions:
        known = replace(known, guess=guess_of(study.robustness, params.robustness, target))
        predictions = {family: study.robustness.answers.predictions(family, target.name) for family in GUESSED}
        further["predictions_sha256"] = {family: sha256_of(path) for family, path in predictions.items()}
    if attack.reads_other_models:
        further["made_on"] = {role: [each.weights_sha256, each.code] for role, each in others().items()}
    attacking = Attacking(settings, name, target, study.results(name, model), further=further)
    check = scores_check(study, params.edition, target)
    search = Search(attacking=attacking, known=known, check=check, writers=writers_beside(target.how.device))
    return OpenedAttack(params=params, search=search, images=attacking.first_images())


def _open_at(opening: Callable[[Device], OpenedAttack], place: Place) -> Opened[FoundGroup]:
    opened = opening(place.device)
    return Opened(worker=opened.search, made_from=opened.search.attacking.made_from(opened.images))


def model_anew(study: AttackStudy, attack_params: AttackParams | None, model: str) -> LoadedModel:
    """A model of a study, loaded anew."""
    # read anew: a class of the params is made when they are, and cannot be sent to another process
    return open_target(study, AllParams.read(study, attack_params), model).model
