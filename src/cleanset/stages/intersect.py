"""Stage intersect: the pictures with one label that all models get right."""

from cleanset.edition import Edition
from cleanset.params import read_params
from cleanset.pipeline_file import check_roles
from cleanset.ranking import shared
from cleanset.tables import INDEX, SCORES, SHARED, read_table, write_table


def run(edition: Edition) -> None:
    """Read the index and every model's scores, write data/shared.parquet."""
    params = read_params(edition.folder)
    check_roles(edition.folder, "intersect", params.models)
    index = read_table(edition.index, INDEX)
    ensemble = [read_table(edition.scores(role), SCORES) for role in params.models]
    write_table(edition.shared, shared(index, ensemble), SHARED)
