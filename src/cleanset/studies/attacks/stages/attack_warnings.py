"""Stages attack_warnings, further_warnings and wrapped_warnings: signs that a model only looks strong.

They are probed on some of the images.
"""

from collections.abc import Mapping

from cleanset.scoring.differentiable import PixelNetwork, searching
from cleanset.scoring.engine import settings_for
from cleanset.studies.attacks.base import globally_seeded, searched_seed
from cleanset.studies.attacks.params import AttackParams
from cleanset.studies.attacks.pgd import Pgd
from cleanset.studies.attacks.sources import Searching
from cleanset.studies.attacks.spsa import Spsa
from cleanset.studies.attacks.study import AttackStudy
from cleanset.studies.attacks.targets import AllParams, AttackedModel, check_scores, open_target, other_models
from cleanset.studies.attacks.warnings import WarningRecord, of_command, probe, write_warnings
from cleanset.studies.robustness.images import first_images


def run(study: AttackStudy, model: str, attack_params: AttackParams | None = None) -> None:
    """Read the images and the model's weights, write data/attack_warnings/<model>.json.

    `model` is a role of the edition or the name of a further or a wrapped model.
    """
    params = AllParams.read(study, attack_params)
    scoring = settings_for(params.edition.score)
    _, target = open_target(study, params, model, scoring)
    check_scores(study, params.edition, target, first_images(target.images, params.attacks.probe.images))
    how = Searching(scoring.devices[0], params.attacks.search_precision, scoring.batch_size)
    others = target.sources(other_models(study, params, model), how)
    write_warnings(study.warnings(model), probed(target, params.attacks, others, how))


def probed(
    target: AttackedModel,
    settings: AttackParams,
    others: Mapping[str, PixelNetwork],
    how: Searching,
    *,
    is_command: bool = False,
) -> WarningRecord:
    """The signs on the first images of each class, with PGD and SPSA in one ball, and images made on other models.

    A command, which has neither logits nor gradients, is only asked the same again.
    """
    asked = settings.probe
    images = first_images(target.images, asked.images)
    subjects = [target.subject(file) for file in images["file"]]
    network = target.network(how)
    pgd = Pgd("Linf", asked.eps, asked.steps, asked.eps / 4, True, settings.seed, asked.group)
    spsa = Spsa(asked.eps, asked.spsa_steps, asked.spsa_samples, asked.eps / 4, 0.01, 1, settings.seed)
    seed = searched_seed(settings.seed, target.name, "warnings", subjects)
    network.reseed(seed)
    with searching(how.precision), globally_seeded(seed, how.device):
        found = of_command(network, subjects) if is_command else probe(network, subjects, pgd, [spsa], others)
    return WarningRecord.of(target.name, len(subjects), asked.model_dump(), found)
