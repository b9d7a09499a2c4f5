"""Stage select: for one model, the images that may be in a class, with tier and rank, and the margins."""

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.selection.candidates import candidates, check_same_images, margins, of_tiers
from cleanset.tables import CANDIDATES, INDEX, MARGINS, SCORES, SHARED, read_table, write_table


def run(edition: Edition, role: str) -> None:
    """Read index, scores and shared images, write data/candidates/<role>.parquet and data/margins/<role>.parquet."""
    params = read_params(edition.folder)
    params.model(role)
    index, shared = read_table(edition.index, INDEX), read_table(edition.shared, SHARED)
    scores = read_table(edition.scores(role), SCORES)
    check_same_images(index, scores, str(edition.scores(role)))
    every = candidates(index, shared, scores, params.dataset.class_list(), params.rule())
    write_table(edition.candidates(role), of_tiers(every, params.select.tiers), CANDIDATES)
    write_table(edition.margins(role), margins(every), MARGINS)
