"""What the models say of the crops that were drawn, once `dvc repro` has scored them."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cleanset.boxes import Box
from cleanset.consensus import Decision
from cleanset.errors import CleansetError
from cleanset.review_queue import Decide

WRONG_AFTER_CROP = "wrong_after_crop"


class CropScores:
    """The tables `data/crop_scores/<role>.parquet` in `folder`, read again when they changed; they may be missing."""

    def __init__(self, folder: Path, roles: Sequence[str]) -> None:
        self._paths = {role: folder / f"{role}.parquet" for role in roles}
        self._stamps: dict[str, tuple[int, int] | None] = dict.fromkeys(roles)
        self._said: dict[str, dict[tuple[str, Box], int]] = {role: {} for role in roles}

    def look(self) -> bool:
        """Read what changed; whether anything did."""
        changed = False
        for role, path in self._paths.items():
            stamp = (path.stat().st_mtime_ns, path.stat().st_size) if path.is_file() else None
            if stamp != self._stamps[role]:
                self._stamps[role], changed = stamp, True
                self._said[role] = _read(path) if stamp else {}
        return changed

    def is_wrong(self, role: str, class_index: int, image_id: str, box: Box) -> bool:
        """Whether a model takes a crop for another class; one that is not scored yet counts as right."""
        return self._said[role].get((image_id, box), class_index) != class_index

    def counting(self, role: str, class_index: int, decide: Decide) -> Decide:
        """The decisions as they count for one model: a crop that it no longer gets right is out."""

        def counted(image_id: str) -> Decision:
            decision = decide(image_id)
            if decision.crop is not None and self.is_wrong(role, class_index, image_id, decision.crop):
                return Decision("reject", WRONG_AFTER_CROP)
            return decision

        return counted


def _read(path: Path) -> dict[tuple[str, Box], int]:
    try:
        rows = pq.read_table(path, columns=["image_id", "left", "top", "right", "bottom", "top5_class"]).to_pylist()
    except (pa.ArrowInvalid, OSError) as error:
        raise CleansetError(f"{path}: cannot be read ({error}); run dvc repro") from None
    return {
        (row["image_id"], (row["left"], row["top"], row["right"], row["bottom"])): row["top5_class"][0] for row in rows
    }
