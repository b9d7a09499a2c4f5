"""Stage measure: all measures of every model, with intervals. No model runs, no image is read."""

from cleanset.edition.params import read_params
from cleanset.studies.robustness.families import families_in, notice
from cleanset.studies.robustness.images import MASKS, STUDY_IMAGES
from cleanset.studies.robustness.measuring import Studied, measure
from cleanset.studies.robustness.results import SELECTIONS
from cleanset.studies.robustness.settings import read_study_params
from cleanset.studies.robustness.study import Study
from cleanset.tables import read_table


def run(study: Study) -> None:
    """Read the images and the answers of all models, write data/measures/ and metrics/."""
    models = read_params(study.edition.folder).models
    roles = list(models)
    params = read_study_params(study.params_yaml, roles)
    known = {**models, **params.further_models}
    images = read_table(study.images, STUDY_IMAGES)
    studied = Studied(
        images=images,
        masks=read_table(study.masks_table, MASKS),
        params=params,
        models={name: name for name in params.models(roles)},
        owners=roles,
        selections=SELECTIONS if params.images == "union" else ("own",),
        files=study.answers,
        weights={name: model.sha256 for name, model in known.items() if model.sha256 is not None},
    )
    notices = {family.name: notice(family, params, images) for family in families_in(params)}
    measure(studied, notices, study.measures, study.metrics)
