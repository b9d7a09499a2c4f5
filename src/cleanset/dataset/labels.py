"""The labels of ILSVRC2012's images: the original ones, and the reassessed ("ReaL") ones of Beyer et al. 2020.

The paper: arXiv:2006.07159. The devkit's ground truth has ILSVRC ids; their meaning never changes, and is in
classes.tsv. That a devkit is the right one is known by its MD5 in raw.md5.
"""

import re
import tarfile
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from cleanset.classes import imagenet
from cleanset.dataset.archives import KAGGLE_IMAGES, check_not_sparse, check_size
from cleanset.dataset.ilsvrc import CLASSES, class_of_ilsvrc_id
from cleanset.errors import CleansetError, reason
from cleanset.image_ids import image_id, image_number, parse_image_id
from cleanset.plumbing.csv_files import read_rows
from cleanset.plumbing.files import is_there
from cleanset.plumbing.json_files import parse_json
from cleanset.plumbing.validation import checked, shown

KAGGLE_LABELS = "LOC_val_solution.csv"
KAGGLE_COLUMNS = ("ImageId", "PredictionString")
GROUND_TRUTH_NAME = "ILSVRC2012_validation_ground_truth.txt"
MAX_DEVKIT_BYTES = 2**28
"""Unpacked, up to the file that is read; the real one has under 10 MiB."""

_LISTS = TypeAdapter(
    list[
        Annotated[
            list[Annotated[int, Field(strict=True, ge=0, lt=CLASSES)]],
            checked(lambda labels: len(set(labels)) == len(labels)),
            AfterValidator(sorted),
        ]
    ]
)
# int alone takes digits of any script, and any number of them
_ILSVRC_ID = re.compile(r"[0-9]{1,4}")


def read_original_labels(path: Path) -> tuple[dict[str, int], str]:
    """The class index of each image id of the whole set, and the place of the labels in messages.

    From the devkit (archive or folder) or from Kaggle's `LOC_val_solution.csv`. The files of a devkit that is a folder
    are under no checksum.
    """
    if path.suffix == ".csv":
        return _kaggle_labels(path), str(path)
    where = f"{path}, {GROUND_TRUTH_NAME}"
    labels = read_ground_truth(_devkit_member(path, GROUND_TRUTH_NAME).decode("ascii", "replace"), where)
    return {image_id(number): label for number, label in enumerate(labels, start=1)}, where


def kaggle_labels_beside(images: Path) -> Path | None:
    """Kaggle's label file in the root of Kaggle's tree, if `images` is that root or its image folder."""
    roots = [images]
    if images.parts[-len(KAGGLE_IMAGES.parts) :] == KAGGLE_IMAGES.parts:
        roots.append(images.parents[len(KAGGLE_IMAGES.parts) - 1])
    return next((root / KAGGLE_LABELS for root in roots if is_there(root / KAGGLE_LABELS)), None)


def read_ground_truth(text: str, where: str) -> list[int]:
    """Class index of each image, from the devkit's list of ILSVRC ids; line 1 is image 1."""
    labels: list[int] = []
    class_of = class_of_ilsvrc_id()
    for number, line in enumerate(text.splitlines(), start=1):
        label = class_of.get(int(line)) if _ILSVRC_ID.fullmatch(line.strip()) else None
        if label is None:
            raise CleansetError(
                f"{where}, line {number}: {shown(line.strip())}; expected an ILSVRC id from 1 to {CLASSES}"
            )
        labels.append(label)
    return labels


def _devkit_member(devkit: Path, name: str) -> bytes:
    content = _member_in_folder(devkit, name) if devkit.is_dir() else _member_in_archive(devkit, name)
    if content is None:
        raise CleansetError(
            f"{devkit}: no {name} in it; expected ILSVRC2012_devkit_t12: this is the devkit of another year or task"
        )
    return content


def _member_in_folder(devkit: Path, name: str) -> bytes | None:
    # the first by name, whatever order the file system has
    found = sorted(path for path in devkit.rglob(name) if path.is_file())
    if not found:
        return None
    check_size(str(found[0]), found[0].stat().st_size)
    return found[0].read_bytes()


def _member_in_archive(devkit: Path, name: str) -> bytes | None:
    try:
        with tarfile.open(devkit) as tar:
            for member in tar:
                where = f"{devkit}, member {shown(member.name)}"
                check_not_sparse(where, member)
                check_size(where, member.size)
                # the offset in the unpacked stream: a small archive may unpack to any size
                if member.offset_data + member.size > MAX_DEVKIT_BYTES:
                    raise CleansetError(f"{devkit}: more than {MAX_DEVKIT_BYTES:,} bytes unpacked; fetch it again")
                if PurePosixPath(member.name).name == name and member.isreg():
                    file = tar.extractfile(member)
                    assert file is not None
                    return file.read()
    except FileNotFoundError:
        raise CleansetError(f"{devkit}: missing; expected the devkit, an archive or a folder") from None
    except CleansetError:
        raise
    except Exception as error:  # tarfile and the decompressors raise whatever damaged bytes lead them to
        raise CleansetError(f"{devkit}: not a tar archive ({reason(error)}); fetch it again") from None
    return None


def _kaggle_labels(path: Path) -> dict[str, int]:
    class_of: dict[str, int] = {}
    for where, row in read_rows(path, KAGGLE_COLUMNS, dict[str, str], "take Kaggle's list of labels", key=("ImageId",)):
        name = parse_image_id(row["ImageId"], imagenet())
        # the wnid is followed by the boxes of the localization task
        wnid = row["PredictionString"].split(" ")[0]
        if name is None or wnid not in imagenet().indices:
            raise CleansetError(
                f"{where}: {shown(','.join(row.values()))}; expected ImageId ILSVRC2012_val_00000001 "
                "and a PredictionString that begins with a wnid"
            )
        if name in class_of:
            raise CleansetError(f"{where}: {name} a second time; expected each image once")
        class_of[name] = imagenet().indices[wnid]
    # ids are distinct here, so the highest number is the count if none is missing
    if not class_of or max(map(image_number, class_of)) != len(class_of):
        raise CleansetError(f"{path}: {len(class_of)} images; expected one line for each image, starting with image 1")
    return class_of


def read_reassessed(text: str | bytes, where: str) -> list[list[int]]:
    """The lists of class indices, image 1 first, from a file in the format of `real.json`.

    A list may be empty. Labels come out sorted. Raises CleansetError, naming `where`, for anything
    that is not a list of lists of distinct class indices.
    """
    what = f"a list of lists of distinct class indices 0 to {CLASSES - 1}"
    lists = parse_json(text, where, what)
    try:
        return _LISTS.validate_python(lists)
    except ValidationError as error:
        place = error.errors(include_url=False)[0]["loc"]
        at, found = (f"{where}, image {int(place[0]) + 1}", lists[place[0]]) if place else (where, lists)
        raise CleansetError(f"{at}: {shown(found)}; expected {what}") from None
