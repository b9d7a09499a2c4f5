"""Stages attack_warnings and wrapped_warnings: signs that a model only looks strong, probed on some of the images."""

from cleanset.scoring.differentiable import pixel_network, searching
from cleanset.scoring.engine import settings_for
from cleanset.studies.attacks.base import searched_seed
from cleanset.studies.attacks.params import AttackParams
from cleanset.studies.attacks.pgd import Pgd
from cleanset.studies.attacks.spsa import Spsa
from cleanset.studies.attacks.stages.attack_targets import AllParams, check_scores, opened
from cleanset.studies.attacks.study import AttackStudy
from cleanset.studies.attacks.warning_record import Seen, WarningRecord, write_warnings
from cleanset.studies.attacks.warnings import probed


def run(study: AttackStudy, model: str, attack_params: AttackParams | None = None) -> None:
    """Read the images and the model's weights, write data/attack_warnings/<model>.json.

    `model` is a role of the edition or the name of a wrapped model.
    """
    params = AllParams.read(study, attack_params)
    settings, probe, scoring = params.attacks, params.attacks.probe, settings_for(params.edition.score)
    _, target = opened(study, params, model, scoring.devices[0])
    images = target.images.head(probe.images)
    check_scores(study, params.edition, target, images)
    subjects = [target.subject(file) for file in images["file"]]
    network = pixel_network(target.model, scoring.devices[0], settings.search_precision, scoring.batch_size)
    pgd = Pgd("Linf", probe.eps, probe.steps, probe.eps / 4, True, settings.seed, probe.group)
    spsa = Spsa(probe.eps, probe.spsa_steps, probe.spsa_samples, probe.eps / 4, 0.01, 1, settings.seed)
    network.reseed(searched_seed(settings.seed, model, "warnings", subjects))
    with searching(settings.search_precision):
        found = probed(network, subjects, pgd, [spsa])
    seen = tuple(Seen(sign=warned.sign, text=warned.text) for warned in found)
    record = WarningRecord(role=model, images=len(subjects), parameters=probe.model_dump(), warnings=seen)
    write_warnings(study.warnings(model), record)
