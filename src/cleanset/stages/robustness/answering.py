"""What the stages that run a model share: a model of the edition, and its answers to one family."""

from dataclasses import replace

from cleanset.edition.params import read_params
from cleanset.robustness.clean import StoredScores
from cleanset.robustness.families import Sources, family_of
from cleanset.robustness.images import images_for
from cleanset.robustness.predicting import Target, predict
from cleanset.robustness.settings import read_study_params
from cleanset.robustness.study import Study
from cleanset.scoring.engine import settings_for
from cleanset.scoring.models import load_model


def answer(study: Study, role: str, family: str) -> None:
    """Read images and the weights of a model of the edition, write its answers to one of FAMILIES.

    Raises CleansetError as `predict` and `family_of` do.
    """
    edition = study.edition
    params = read_params(edition.folder)
    wanted = read_study_params(study.params_yaml, list(params.models))
    settings = settings_for(params.score)
    target = Target(
        role,
        load_model(params.model(role), edition.folder),
        settings,
        params.dataset.class_list(),
        study.answers,
        StoredScores(edition, role) if settings.precision == "float64" else None,
    )
    sources = Sources.read(study)
    of_all = family_of(family, sources, wanted)
    of_role = replace(of_all, images=images_for(of_all.images, wanted.images, role))
    predict(target, wanted, of_role, sources.files_in(of_role.images))
