"""The votes that decided a model's set as a table, so that an export depends on them and not on all reviews."""

import pandas as pd

from cleanset.review.store import BOARD, Votes
from cleanset.selection.fill import Filled


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


def reviewer_counts(table: pd.DataFrame) -> dict[str, int]:
    """By image id, how many reviewers judged it; the board, which judges what others have judged, is none of them."""
    return {
        str(name): int(count)
        for name, count in table.loc[table["reviewer"] != BOARD, "image_id"].value_counts().items()
    }
