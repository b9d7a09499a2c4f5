"""The raw archives: their checksums, and what the label files in them say."""

import csv
import hashlib
import io
import re
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from cleanset.edition import Edition
from cleanset.errors import CleansetError
from cleanset.ilsvrc import (
    GROUND_TRUTH_NAME,
    META_NAME,
    class_indices,
    image_id,
    image_number,
    parse_picture_name,
    read_ground_truth,
    read_meta,
)
from cleanset.pictures import KAGGLE_PICTURES, check_size
from cleanset.progress import tracked

KAGGLE_LABELS = "LOC_val_solution.csv"
SOURCES = {
    "ILSVRC2012_img_val.tar": "image-net.org, after signing up: ILSVRC2012, Validation images (all tasks), 6.3 GB",
    "ILSVRC2012_devkit_t12.tar.gz": "image-net.org, after signing up: ILSVRC2012, Development kit (Task 1 & 2), 2.5 MB",
}
_LINE = re.compile(r"([0-9a-f]{32}) [ *](.+)")


def read_md5_list(path: Path) -> dict[str, str]:
    """MD5 sums by file name, from a list in md5sum's format. Raises CleansetError for any other line."""
    sums = {}
    for number, line in enumerate(_text(path, "a line of md5sum for each raw file").splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise CleansetError(f"{path}, line {number}: {line!r}; expected what md5sum prints: sum, two spaces, path")
        sums[match[2]] = match[1]
    return sums


def check_archive(edition: Edition, name: str, sums: dict[str, str]) -> None:
    """Check that the raw file `name` has the MD5 that `sums`, from raw.md5, gives.

    Raises CleansetError if the file is missing, not listed, or has another sum.
    """
    path = edition.path(name)
    if path.is_symlink() and not path.exists():
        raise CleansetError(
            f"{path}: a link to {path.readlink()}, which is not there; expected an absolute path, or one "
            f"relative to {path.parent}"
        )
    if not path.is_file():
        source = SOURCES.get(path.name)
        had = f"it is had at {source}; put it there or link to it" if source else "put it there or correct params.yaml"
        raise CleansetError(f"{path}: missing; {had}")
    if name not in sums:
        raise CleansetError(f"{edition.raw_md5}: no line for {name}; add what md5sum {name} prints")
    found = _md5(path)
    if found != sums[name]:
        raise CleansetError(
            f"{path}: MD5 {found}, expected {sums[name]} as in raw.md5: fetch it again, "
            "or correct raw.md5 if these bytes are meant"
        )


def _md5(path: Path) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    block_size = 2**22
    with path.open("rb") as file:
        blocks = iter(lambda: file.read(block_size), b"")
        for block in tracked(blocks, -(-path.stat().st_size // block_size), f"MD5 of {path.name}"):
            digest.update(block)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class OriginalLabels:
    """The class index of each image id, and how many pictures the whole set has."""

    class_of: dict[str, int]
    count: int
    where: str


def read_original_labels(path: Path) -> OriginalLabels:
    """The original labels from the devkit (archive or folder) or from Kaggle's `LOC_val_solution.csv`."""
    if path.suffix == ".csv":
        class_of = _kaggle_labels(path)
        return OriginalLabels(class_of, len(class_of), str(path))
    truth, meta = (_devkit_member(path, name) for name in (GROUND_TRUTH_NAME, META_NAME))
    where = f"{path}, {GROUND_TRUTH_NAME}"
    labels = read_ground_truth(truth.decode("ascii", "replace"), read_meta(meta, f"{path}, {META_NAME}"), where)
    class_of = {image_id(number): label for number, label in enumerate(labels, start=1)}
    return OriginalLabels(class_of, len(labels), where)


def kaggle_labels_beside(images: Path) -> Path | None:
    """Kaggle's label file in the root of Kaggle's tree, if `images` is that root or its picture folder."""
    roots = [images]
    if images.parts[-len(KAGGLE_PICTURES.parts) :] == KAGGLE_PICTURES.parts:
        roots.append(images.parents[len(KAGGLE_PICTURES.parts) - 1])
    return next((root / KAGGLE_LABELS for root in roots if (root / KAGGLE_LABELS).is_file()), None)


def _devkit_member(devkit: Path, name: str) -> bytes:
    if devkit.is_dir():
        found = sorted(devkit.rglob(name))
        if found:
            return found[0].read_bytes()
    else:
        try:
            with tarfile.open(devkit) as tar:
                for member in tar:
                    if Path(member.name).name == name and member.isreg():
                        check_size(f"{devkit}, member {member.name!r}", member.size)
                        file = tar.extractfile(member)
                        assert file is not None
                        return file.read()
        except FileNotFoundError:
            raise CleansetError(f"{devkit}: missing; expected the devkit, an archive or a folder") from None
        except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
            reason = " ".join(str(error).split())
            raise CleansetError(f"{devkit}: not a tar archive ({reason}); fetch it again") from None
    raise CleansetError(
        f"{devkit}: no {name} in it; expected ILSVRC2012_devkit_t12: this is the devkit of another year or task"
    )


def _kaggle_labels(path: Path) -> dict[str, int]:
    class_of = {}
    rows = csv.DictReader(io.StringIO(_text(path, "Kaggle's list of labels")))
    for number, row in enumerate(rows, start=2):
        name = parse_picture_name(f"{row.get('ImageId')}.JPEG")
        wnid = (row.get("PredictionString") or "").split(" ")[0]
        if name is None or wnid not in class_indices():
            raise CleansetError(
                f"{path}, line {number}: {dict(row)}; expected ImageId ILSVRC2012_val_00000001 and a "
                "PredictionString that begins with a wnid"
            )
        class_of[name[0]] = class_indices()[wnid]
    if not class_of or max(map(image_number, class_of)) != len(class_of):
        raise CleansetError(f"{path}: {len(class_of)} pictures; expected one line for every picture from 1 on")
    return class_of


def _text(path: Path, content: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CleansetError(f"{path}: not a text file ({error}); expected UTF-8") from None
    except FileNotFoundError:
        raise CleansetError(f"{path}: missing; expected {content}") from None
