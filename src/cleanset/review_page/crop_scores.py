"""The predictions of the models on the crops that were drawn, once `dvc repro` has scored them."""

from collections.abc import Mapping, Sequence

from cleanset.edition.paths import Edition
from cleanset.images.boxes import Crop
from cleanset.selection.crop_check import Prediction, predictions_of_crops
from cleanset.tables import CROP_SCORES, read_table


class CropScores:
    """The tables `data/crop_scores/<role>.parquet` of an edition, read again when they changed; they may be missing."""

    def __init__(self, edition: Edition, roles: Sequence[str]) -> None:
        self._paths = {role: edition.crop_scores(role) for role in roles}
        self._stamps: dict[str, tuple[int, int] | None] = dict.fromkeys(roles)
        self._predictions: dict[str, dict[Crop, Prediction]] = {role: {} for role in roles}

    def look(self) -> bool:
        """Read what changed; whether anything did. Raises CleansetError for a table that cannot be read."""
        changed = False
        for role, path in self._paths.items():
            stamp = (path.stat().st_mtime_ns, path.stat().st_size) if path.is_file() else None
            if stamp != self._stamps[role]:
                self._predictions[role] = predictions_of_crops(read_table(path, CROP_SCORES)) if stamp else {}
                self._stamps[role], changed = stamp, True
        return changed

    def predictions(self, role: str) -> Mapping[Crop, Prediction]:
        """A model's predictions on the crops that are scored."""
        return self._predictions[role]
