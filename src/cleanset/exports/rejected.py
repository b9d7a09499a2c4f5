"""The candidates that are not in a set, each with its reason, as a table beside the manifest."""

import csv
import io
from collections.abc import Mapping

import pandas as pd

from cleanset.dataset.class_names import label_names
from cleanset.dataset.ilsvrc import wnids
from cleanset.errors import CleansetError
from cleanset.vocabulary import TIERS

COLUMNS = ("wnid", "class_index", "class_name", "image_id", "tier", "rank", "reason")


def rejected_csv(rejected: pd.DataFrame) -> str:
    """Table REJECTED as CSV with a header; by class, tier and rank."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    rows = rejected[["class_index", "tier", "rank", "image_id", "reason"]].itertuples(index=False, name=None)
    for index, tier, rank, image_id, reason in sorted(rows, key=lambda row: (row[0], TIERS.index(row[1]), *row[2:4])):
        writer.writerow((wnids()[index], index, label_names()[index], image_id, tier, rank, reason))
    return out.getvalue()


def reasons(text: str, where: str) -> Mapping[tuple[str, str], str]:
    """By wnid and image id, why a candidate is not in the set. Raises CleansetError, naming `where`, for other text."""
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        return {(row["wnid"], row["image_id"]): row["reason"] for row in rows}
    except (csv.Error, KeyError) as error:
        raise CleansetError(
            f"{where}: no table of rejected candidates ({error}); expected {','.join(COLUMNS)}"
        ) from None
