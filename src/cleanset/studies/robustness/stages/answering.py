"""What the stages that run a model share: a model, and its answers to families of changed images."""

from collections.abc import Sequence
from dataclasses import replace

from cleanset.edition.params import read_params
from cleanset.scoring.engine import settings_for
from cleanset.scoring.models import load_model
from cleanset.studies.robustness.clean import StoredScores
from cleanset.studies.robustness.families import Sources, family_of
from cleanset.studies.robustness.images import images_for
from cleanset.studies.robustness.predicting import Target, predict
from cleanset.studies.robustness.settings import read_study_params
from cleanset.studies.robustness.study import Study


def answer(study: Study, role: str, families: Sequence[str]) -> None:
    """Read images and a model's weights, write its answers to some of FAMILIES.

    The model is one of the edition, or a further one of the study, whose clean answers are compared with nothing.
    Raises CleansetError for neither, and as `predict` and `family_of` do.
    """
    edition = study.edition
    params = read_params(edition.folder)
    wanted = read_study_params(study.params_yaml, list(params.models))
    is_further = role in wanted.further_models
    settings = settings_for(params.score)
    is_compared = settings.precision == "float64" and not is_further
    target = Target(
        role,
        load_model(wanted.further_models[role] if is_further else params.model(role), edition.folder),
        settings,
        params.dataset.class_list(),
        study.answers,
        StoredScores(edition, role) if is_compared else None,
    )
    sources = Sources.read(study)
    for family in families:
        of_all = family_of(family, sources, wanted)
        of_role = replace(of_all, images=images_for(of_all.images, wanted.images, role))
        predict(target, wanted, of_role, sources.files_in(of_role.images))
