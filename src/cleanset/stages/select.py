"""Stage select: for one model, the images that may be in a class, with tier and rank, and the margins."""

from cleanset.edition.labels import read_labelled_index
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.selection.candidates import candidates, check_same_images, margins, of_tiers
from cleanset.tables import CANDIDATES, MARGINS, SCORES, SHARED, read_table, write_table


def run(edition: Edition, role: str) -> None:
    """Read index, scores and shared images, write data/candidates/<role>.parquet and data/margins/<role>.parquet."""
    params = read_params(edition.folder)
    params.model(role)
    classes = edition.read_classes()
    index = read_labelled_index(edition, params.dataset, classes)
    shared = read_table(edition.shared, SHARED, classes)
    scores = read_table(edition.scores(role), SCORES, classes)
    check_same_images(index, scores, str(edition.scores(role)))
    every = candidates(index, shared, scores, classes=params.dataset.class_list(classes), rule=params.rule(role))
    write_table(edition.candidates(role), of_tiers(every, params.select.tiers), CANDIDATES, classes)
    write_table(edition.margins(role), margins(every), MARGINS, classes)
