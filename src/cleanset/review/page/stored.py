"""What others may change on the disk during a review: the review files, and the scores of crops."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from cleanset.classes import ClassTable
from cleanset.edition.paths import Edition
from cleanset.images.boxes import Crop
from cleanset.plumbing.files import FileState, file_state, is_there, read_text
from cleanset.review.gold import GoldKey, without_golds
from cleanset.review.page.library import IndexedImage
from cleanset.review.store import Votes, check_votes, refuse_link, review_file, reviewer_folders, votes_in
from cleanset.review.verdicts import Vote
from cleanset.selection.crop_check import Prediction, predictions_of_crops
from cleanset.tables import CROP_SCORES, read_table


class StoredVotes:
    """The review files of all reviewers in `folder`, as the page reads them.

    Others may change files at any time. The page asks at every step, so a file is parsed only when its text changed.
    Its time and size would not do: another text within a tick of the clock may have the same.
    `official_images`: the images come from the official archive, so that a review may name one by its id alone.
    `golds`: the gold items; answers to them are among the votes, and not checked against the images.
    """

    def __init__(
        self,
        folder: Path,
        images: Mapping[str, IndexedImage],
        classes: ClassTable,
        min_crop_pixels: int,
        *,
        official_images: bool = False,
        golds: GoldKey = MappingProxyType({}),
    ) -> None:
        self.folder = folder
        self._images = images
        self._classes = classes
        self._min_crop_pixels = min_crop_pixels
        self._official_images = official_images
        self._golds = golds
        self._files: dict[Path, tuple[str, list[Vote]]] = {}
        self._checked: dict[int, Votes] = {}

    def of_class(self, class_index: int) -> Votes:
        """The votes on a class; the same object if nothing changed. Raises CleansetError for an invalid one."""
        votes = self.read(class_index)
        if votes != self._checked.get(class_index):
            on_images = without_golds(votes, self._golds)
            check_votes(
                on_images,
                self._images,
                self._classes,
                self._min_crop_pixels,
                official_images=self._official_images,
            )
            self._checked[class_index] = votes
        return self._checked[class_index]

    def changed_at(self, reviewer: str, class_index: int) -> int:
        """Modification time in nanoseconds of a reviewer's file of a class; 0 without one."""
        path = self._path(reviewer, class_index)
        return path.stat().st_mtime_ns if is_there(path) else 0

    def read(self, class_index: int) -> Votes:
        """All votes on a class, not checked against the images."""
        votes: Votes = {}
        for folder in reviewer_folders(self.folder):
            for vote in self._votes_in(self._path(folder.name, class_index)):
                votes.setdefault((class_index, vote.image_id), {})[folder.name] = vote
        return votes

    def _path(self, reviewer: str, class_index: int) -> Path:
        return review_file(self.folder, reviewer, self._classes.keys[class_index], self._classes)

    def _votes_in(self, path: Path) -> list[Vote]:
        refuse_link(path)
        if not path.exists():
            return []
        text = read_text(path, "save it as UTF-8")
        if path not in self._files or self._files[path][0] != text:
            self._files[path] = text, votes_in(text, path, self._classes)
        return self._files[path][1]


class CropScores:
    """The tables `data/crop_scores/<role>.parquet` of an edition, read again when they change; they may be missing."""

    def __init__(self, edition: Edition, roles: Sequence[str], classes: ClassTable) -> None:
        self._classes = classes
        self._paths = {role: edition.crop_scores(role) for role in roles}
        self._stamps: dict[str, FileState | None] = dict.fromkeys(roles)
        self.predictions: dict[str, dict[Crop, Prediction]] = {role: {} for role in roles}
        """By role, a model's predictions on the crops that are scored."""

    def look(self) -> bool:
        """Read changed tables; return whether any changed. Raises CleansetError for a table that cannot be read."""
        changed = False
        for role, path in self._paths.items():
            stamp = file_state(path.stat()) if is_there(path) else None
            if stamp != self._stamps[role]:
                table = read_table(path, CROP_SCORES, self._classes) if stamp else None
                self.predictions[role] = {} if table is None else predictions_of_crops(table)
                self._stamps[role] = stamp
                changed = True
        return changed
