"""Stages attack_warnings and wrapped_warnings: signs that a model only looks strong, probed on some of the images."""

from cleanset.edition.params import read_params
from cleanset.scoring.differentiable import pixel_network, searching
from cleanset.scoring.engine import settings_for
from cleanset.studies.attacks.base import searched_seed
from cleanset.studies.attacks.pgd import Pgd
from cleanset.studies.attacks.results import attack_warnings
from cleanset.studies.attacks.settings import AttackSettings, read_attack_settings
from cleanset.studies.attacks.spsa import Spsa
from cleanset.studies.attacks.stages.attack_targets import check_scores, opened
from cleanset.studies.attacks.warning_record import Seen, WarningRecord, write_warnings
from cleanset.studies.attacks.warnings import probed
from cleanset.studies.robustness.settings import read_study_params
from cleanset.studies.robustness.study import Study


def run(study: Study, model: str, settings: AttackSettings | None = None) -> None:
    """Read the images and the model's weights, write data/attack_warnings/<model>.json.

    `model` is a role of the edition or the name of a wrapped model.
    """
    params = read_params(study.edition.folder)
    wanted = read_study_params(study.params_yaml, list(params.models))
    settings = read_attack_settings(study.params_yaml) if settings is None else settings
    probe, scoring = settings.probe, settings_for(params.score)
    _, target = opened(study, params, wanted, settings, model, scoring.devices[0])
    images = target.images.head(probe.images)
    check_scores(study, params, target, images)
    subjects = [target.subject(file) for file in images["file"]]
    network = pixel_network(target.model, scoring.devices[0], settings.search_precision, scoring.batch_size)
    pgd = Pgd("Linf", probe.eps, probe.steps, probe.eps / 4, True, wanted.seed, probe.group)
    spsa = Spsa(probe.eps, probe.spsa_steps, probe.spsa_samples, probe.eps / 4, 0.01, 1, wanted.seed)
    network.reseed(searched_seed(wanted.seed, model, "warnings", subjects))
    with searching(settings.search_precision):
        found = probed(network, subjects, pgd, [spsa])
    seen = tuple(Seen(sign=warned.sign, text=warned.text) for warned in found)
    record = WarningRecord(role=model, images=len(subjects), parameters=probe.model_dump(), warnings=seen)
    write_warnings(attack_warnings(study.folder, model), record)
