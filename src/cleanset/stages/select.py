"""Stage select: for one model, every picture that may stand in a class, with tier and rank."""

from cleanset.edition import Edition
from cleanset.params import read_params
from cleanset.ranking import candidates
from cleanset.tables import CANDIDATES, INDEX, SCORES, SHARED, read_table, write_table


def run(edition: Edition, role: str) -> None:
    """Read index, scores and shared pictures, write data/candidates/<role>.parquet."""
    params = read_params(edition.folder)
    params.model(role)
    table = candidates(
        read_table(edition.index, INDEX),
        read_table(edition.shared, SHARED),
        read_table(edition.scores(role), SCORES),
        params.select.candidates,
        params.dataset.class_list(),
    )
    write_table(edition.candidates(role), table, CANDIDATES)
