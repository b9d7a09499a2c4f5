"""Stage intersect: the images with one label that all models classify correctly."""

from cleanset.edition.labels import read_labelled_index
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.edition.pipeline import check_roles
from cleanset.selection.candidates import check_same_images, shared
from cleanset.tables import SCORES, SHARED, read_table, write_table


def run(edition: Edition) -> None:
    """Read the index and every model's scores, write data/shared.parquet."""
    params = read_params(edition.folder)
    check_roles(edition, params.models)
    classes = edition.read_classes()
    index = read_labelled_index(edition, params.dataset, classes)
    ensemble = [read_table(edition.scores(role), SCORES, classes) for role in params.models]
    for role, scores in zip(params.models, ensemble, strict=True):
        check_same_images(index, scores, str(edition.scores(role)))
    write_table(edition.shared, shared(index, ensemble, params.dataset.label), SHARED, classes)
