"""The votes that decided a model's set as a table, so that an export depends on them and not on all reviews."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cleanset.review.store import BOARD, Votes
from cleanset.selection.fill import Filled
from cleanset.vocabulary import VERDICTS


def vote_table(votes: Votes, filled: Filled) -> pd.DataFrame:
    """The votes on the images that are kept, and on those that are not for a reason other than not_needed.

    Each in its class; the columns of VOTES, without notes. A vote on an image that the set does not need changes
    nothing in it, and so makes nobody export it again.
    """
    decided = filled.rejected[filled.rejected["reason"] != "not_needed"]
    columns = ["class_index", "image_id"]
    candidates = pd.concat([filled.selection[columns], decided[columns]])
    rows = [
        (image_id, reviewer, vote.review.verdict, vote.review.reason, vote.review.box)
        for class_index, image_id in zip(candidates["class_index"], candidates["image_id"], strict=True)
        for reviewer, vote in votes.get((class_index, image_id), {}).items()
    ]
    return pd.DataFrame(rows, columns=["image_id", "reviewer", "verdict", "reason", "crop"], dtype=object)


def verdicts_by_image(table: pd.DataFrame) -> NDArray[np.int64]:
    """How many reviewers gave each verdict: a row for each image, without the board."""
    votes = table[table["reviewer"] != BOARD]
    given = pd.crosstab(votes["image_id"], votes["verdict"]).reindex(columns=list(VERDICTS), fill_value=0)
    return given.to_numpy(np.int64)


def verdicts_by_reviewer(table: pd.DataFrame) -> dict[str, dict[str, int]]:
    """How often each reviewer, sorted by name, gave each verdict; without the board."""
    votes = table[table["reviewer"] != BOARD]
    return {
        str(reviewer): {verdict: int((given == verdict).sum()) for verdict in VERDICTS}
        for reviewer, given in votes.groupby("reviewer")["verdict"]
    }


def reviewer_counts(table: pd.DataFrame) -> dict[str, int]:
    """By image id, how many reviewers judged it; the board, which judges what others have judged, is none of them."""
    return {
        str(name): int(count)
        for name, count in table.loc[table["reviewer"] != BOARD, "image_id"].value_counts().items()
    }
