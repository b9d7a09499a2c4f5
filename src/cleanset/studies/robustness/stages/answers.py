"""The stage of each family, and stage further: one model's answers to changed images."""

from dataclasses import replace

from cleanset.edition.params import read_params
from cleanset.scoring.engine import settings_for
from cleanset.scoring.models import load_model
from cleanset.studies.robustness.clean import StoredScores
from cleanset.studies.robustness.families import FAMILIES, Sources, change_plan, family_named
from cleanset.studies.robustness.images import images_for
from cleanset.studies.robustness.predicting import Target, predict
from cleanset.studies.robustness.settings import read_study_params
from cleanset.studies.robustness.study import Study


def run(study: Study, role: str, family: str | None = None) -> None:
    """Read images and the model's weights, write data/<family>/<role>.parquet and .json; None: of every family.

    The model is one of the edition, or a further one of the study, whose clean answers are compared with nothing.
    Raises CleansetError for neither, and as `predict` and `change_plan` do.
    """
    edition = study.edition
    params = read_params(edition.folder)
    wanted = read_study_params(study.params_yaml, list(params.models))
    is_further = role in wanted.further_models
    settings = settings_for(params.score)
    is_compared = settings.precision == "float64" and not is_further
    target = Target(
        role,
        load_model(wanted.further_models[role] if is_further else params.network(role), edition.folder),
        settings,
        params.dataset.class_list(),
        study.answers,
        StoredScores(edition, role) if is_compared else None,
    )
    sources = Sources.read(study)
    for each in FAMILIES if family is None else [family_named(family)]:
        of_all = change_plan(each, sources, wanted)
        of_role = replace(of_all, images=images_for(of_all.images, wanted.images, role))
        predict(target, wanted, of_role, sources.files_in(of_role.images))
