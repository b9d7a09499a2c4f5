"""The raw archives: their checksums, and the original labels in them."""

import re
import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cleanset.dataset.ilsvrc import (
    GROUND_TRUTH_NAME,
    META_NAME,
    class_indices,
    image_id,
    image_number,
    parse_image_name,
    read_ground_truth,
    read_meta,
)
from cleanset.dataset.layouts import KAGGLE_IMAGES, check_plain, check_size
from cleanset.errors import CleansetError, reason
from cleanset.files import BLOCK_BYTES, blocks_of, md5, read_text
from cleanset.parsing import parse_csv
from cleanset.progress import tracked
from cleanset.validation import shown

KAGGLE_LABELS = "LOC_val_solution.csv"
KAGGLE_COLUMNS = ("ImageId", "PredictionString")
SOURCES = {
    "ILSVRC2012_img_val.tar": "image-net.org, after signing up: ILSVRC2012, Validation images (all tasks), 6.3 GB",
    "ILSVRC2012_devkit_t12.tar.gz": "image-net.org, after signing up: ILSVRC2012, Development kit (Task 1 & 2), 2.5 MB",
}
MAX_DEVKIT_BYTES = 2**28
"""Unpacked, up to the files that are read; the real one has under 10 MiB."""

_LINE = re.compile(r"([0-9a-f]{32}) [ *](.+)")


def read_md5_list(path: Path) -> dict[str, str]:
    """MD5 digest by file name, from a list in md5sum's format.

    Raises CleansetError for any other line, and for a name that occurs twice.
    """
    digests: dict[str, str] = {}
    text = read_text(path, "expected a line of md5sum for each raw file")
    for number, line in enumerate(text.splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise CleansetError(
                f"{path}, line {number}: {shown(line)}; expected what md5sum prints: digest, two spaces, path"
            )
        if match[2] in digests:
            raise CleansetError(
                f"{path}, line {number}: {shown(match[2])} a second time; expected one line: remove one"
            )
        digests[match[2]] = match[1]
    return digests


def check_archive(path: Path, name: str, digests: dict[str, str], listed_in: Path) -> None:
    """Check that the raw file at `path` has the MD5 that `digests`, read from `listed_in`, gives for `name`.

    Raises CleansetError if the file is missing, not listed, or has another digest.
    """
    if path.is_symlink() and not path.exists():
        raise CleansetError(
            f"{path}: a link to {path.readlink()}, which does not exist; expected an absolute path, or one "
            f"relative to {path.parent}"
        )
    if not path.is_file():
        source = SOURCES.get(path.name)
        remedy = f"download it from {source}; put it there or link to it" if source else _CORRECT
        raise CleansetError(f"{path}: missing; {remedy}")
    if name not in digests:
        raise CleansetError(f"{listed_in}: no line for {name}; add what md5sum {name} prints")
    found = _md5(path)
    if found != digests[name]:
        raise CleansetError(
            f"{path}: MD5 {found}, expected {digests[name]} as in raw.md5: fetch it again, "
            "or correct raw.md5 if these bytes are meant"
        )


_CORRECT = "put it there or correct params.yaml"


def _md5(path: Path) -> str:
    count = -(-path.stat().st_size // BLOCK_BYTES)
    return md5(tracked(blocks_of(path), count, f"MD5 of {path.name}"))


@dataclass(frozen=True, slots=True)
class OriginalLabels:
    """The class index of each image id, and how many images the whole set has."""

    class_of: dict[str, int]
    count: int
    where: str


def read_original_labels(path: Path) -> OriginalLabels:
    """The original labels from the devkit (archive or folder) or from Kaggle's `LOC_val_solution.csv`.

    The files of a devkit that is a folder are under no checksum.
    """
    if path.suffix == ".csv":
        class_of = _kaggle_labels(path)
        return OriginalLabels(class_of, len(class_of), str(path))
    truth, meta = (_devkit_member(path, name) for name in (GROUND_TRUTH_NAME, META_NAME))
    where = f"{path}, {GROUND_TRUTH_NAME}"
    labels = read_ground_truth(truth.decode("ascii", "replace"), read_meta(meta, f"{path}, {META_NAME}"), where)
    class_of = {image_id(number): label for number, label in enumerate(labels, start=1)}
    return OriginalLabels(class_of, len(labels), where)


def kaggle_labels_beside(images: Path) -> Path | None:
    """Kaggle's label file in the root of Kaggle's tree, if `images` is that root or its image folder."""
    roots = [images]
    if images.parts[-len(KAGGLE_IMAGES.parts) :] == KAGGLE_IMAGES.parts:
        roots.append(images.parents[len(KAGGLE_IMAGES.parts) - 1])
    return next((root / KAGGLE_LABELS for root in roots if (root / KAGGLE_LABELS).is_file()), None)


def _devkit_member(devkit: Path, name: str) -> bytes:
    content = _member_in_folder(devkit, name) if devkit.is_dir() else _member_in_archive(devkit, name)
    if content is None:
        raise CleansetError(
            f"{devkit}: no {name} in it; expected ILSVRC2012_devkit_t12: this is the devkit of another year or task"
        )
    return content


def _member_in_folder(devkit: Path, name: str) -> bytes | None:
    found = sorted(path for path in devkit.rglob(name) if path.is_file())
    if not found:
        return None
    check_size(str(found[0]), found[0].stat().st_size)
    return found[0].read_bytes()


def _member_in_archive(devkit: Path, name: str) -> bytes | None:
    try:
        with tarfile.open(devkit) as tar:
            for member in tar:
                check_plain(f"{devkit}, member {shown(member.name)}", member)
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
    text = read_text(path, "expected Kaggle's list of labels")
    for number, row in parse_csv(text, KAGGLE_COLUMNS, str(path)):
        name = parse_image_name(f"{row['ImageId']}.JPEG")
        wnid = row["PredictionString"].split(" ")[0]
        if name is None or wnid not in class_indices():
            raise CleansetError(
                f"{path}, line {number}: {shown(','.join(row.values()))}; expected ImageId ILSVRC2012_val_00000001 "
                "and a PredictionString that begins with a wnid"
            )
        if name[0] in class_of:
            raise CleansetError(f"{path}, line {number}: {name[0]} a second time; expected one line for every image")
        class_of[name[0]] = class_indices()[wnid]
    if not class_of or max(map(image_number, class_of)) != len(class_of):
        raise CleansetError(f"{path}: {len(class_of)} images; expected one line for every image from 1 on")
    return class_of
