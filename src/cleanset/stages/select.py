"""Stage select: for one model, every picture that may stand in a class, with tier and rank; and how close it was."""

from cleanset.edition import Edition
from cleanset.params import read_params
from cleanset.ranking import candidates, margins
from cleanset.tables import CANDIDATES, INDEX, MARGINS, SCORES, SHARED, read_table, write_table


def run(edition: Edition, role: str) -> None:
    """Read index, scores and shared pictures, write data/candidates/<role>.parquet and data/margins/<role>.parquet."""
    params = read_params(edition.folder)
    params.model(role)
    shared = read_table(edition.shared, SHARED)
    table = candidates(
        read_table(edition.index, INDEX),
        shared,
        read_table(edition.scores(role), SCORES),
        params.select.candidates,
        params.dataset.class_list(),
    )
    write_table(edition.candidates(role), table, CANDIDATES)
    write_table(edition.margins(role), margins(table, shared), MARGINS)
