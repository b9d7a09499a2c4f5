"""The table of the votes that decide a model's set, and the verdicts counted in it.

An export depends on this table, not on all reviews.
"""

import numpy as np
import pandas as pd

from cleanset.images.boxes import known_box
from cleanset.review.store import BOARD, Votes
from cleanset.selection.fill import Filled
from cleanset.statistics.basics import Ints
from cleanset.vocabulary import VERDICTS


def vote_table(votes: Votes, filled: Filled) -> pd.DataFrame:
    """The votes on the images of a set, and on the candidates excluded for a reason other than not_needed.

    The columns of VOTES, without notes. Votes on images that the set does not need are left out: they change nothing in
    it, and must not make anybody export it again.
    """
    decided = filled.rejected[filled.rejected["reason"] != "not_needed"]
    columns = ["class_index", "image_id"]
    candidates = pd.concat([filled.selection[columns], decided[columns]])
    rows = [
        (image_id, reviewer, vote.review.verdict.kind, vote.review.reason, known_box(vote.review.box))
        for class_index, image_id in zip(candidates["class_index"], candidates["image_id"], strict=True)
        for reviewer, vote in votes.get((class_index, image_id), {}).items()
    ]
    return pd.DataFrame(rows, columns=["image_id", "reviewer", "verdict", "reason", "crop"], dtype=object)


def verdicts_by_image(table: pd.DataFrame) -> Ints:
    """Counts of verdicts, without the board's: a row for each image, a column for each verdict."""
    votes = table[table["reviewer"] != BOARD]
    images, names = pd.factorize(votes["image_id"], sort=True)
    counts = np.zeros((len(names), len(VERDICTS)), np.int64)
    np.add.at(counts, (images, votes["verdict"].map(VERDICTS.index).to_numpy(np.int64)), 1)
    return counts


def verdicts_by_reviewer(table: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Counts of verdicts by reviewer, sorted by name, without the board's."""
    votes = table[table["reviewer"] != BOARD]
    return {
        str(reviewer): {verdict: int((given == verdict).sum()) for verdict in VERDICTS}
        for reviewer, given in votes.groupby("reviewer")["verdict"]
    }


def reviewer_counts(table: pd.DataFrame) -> dict[str, int]:
    """Number of reviewers by image id, without the board, which decides on others' reviews."""
    return {
        str(name): int(count)
        for name, count in table.loc[table["reviewer"] != BOARD, "image_id"].value_counts().items()
    }
