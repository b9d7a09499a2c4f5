"""The files of ILSVRC2012 as they are published: archive, development kit, label list, sums."""

import hashlib
import io
import json
import struct
import tarfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path
from random import Random

import numpy as np
from scipy.io import savemat

KIT = "ILSVRC2012_devkit_t12/data"
STORED_BLOCK = 0xFFFF
MATLAB_HEADER = b"MATLAB 5.0 MAT-file, drawn sample".ljust(116)
SYNSET_FIELDS = [
    "ILSVRC2012_ID",
    "WNID",
    "words",
    "gloss",
    "num_children",
    "children",
    "wordnet_height",
    "num_train_images",
]
INNER_NODES: dict[str, list[str]] = {
    "n00015388": ["n01443537", "n02165456", "n02317335"],
    "n07705931": ["n07745940", "n07753592"],
    "n03122748": ["n04507155"],
    "n00021939": ["n03122748", "n02708093", "n02814860", "n06874185"],
}
"""Synsets above the leaves, with those of their children that the sample needs."""


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under a temporary name first: it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)


def imagenet_wnids() -> list[str]:
    """The 1,000 wnids of ImageNet, sorted: a class index is a position in this list."""
    return _timm_table("imagenet_synsets.txt").split()


def imagenet_words(table: str) -> dict[str, str]:
    """The text for each synset in timm's `imagenet_synset_to_<table>.txt`."""
    lines = _timm_table(f"imagenet_synset_to_{table}.txt").splitlines()
    return {line.split("\t")[0]: line.split("\t")[1] for line in lines}


def _timm_table(name: str) -> str:
    path = Path(str(distribution("timm").locate_file("timm/data/_info"))) / name
    return path.read_text(encoding="utf-8")


def ilsvrc_ids(seed: int) -> dict[str, int]:
    """Each wnid's number in ILSVRC2012, 1..1000: an order of its own, as in the real kit."""
    wnids = imagenet_wnids()
    Random(f"{seed} ilsvrc ids").shuffle(wnids)
    return {wnid: number for number, wnid in enumerate(wnids, start=1)}


def tar(members: Iterable[tuple[str, bytes]]) -> bytes:
    """A plain ustar archive of the members in the given order; no owner, no time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def devkit(truth: Sequence[str], ids: Mapping[str, int]) -> bytes:
    """The kit's two tables as a tar.gz; `truth` holds the images' wnids, by their numbers."""
    lines = "".join(f"{ids[wnid]}\n" for wnid in truth)
    archive = tar(
        [
            (f"{KIT}/ILSVRC2012_validation_ground_truth.txt", lines.encode()),
            (f"{KIT}/meta.mat", _meta(ids)),
        ]
    )
    return stored_gzip(archive)


def stored_gzip(content: bytes) -> bytes:
    """The content in gzip's frame but not compressed: compressors differ between machines."""
    chunks = [content[start : start + STORED_BLOCK] for start in range(0, len(content), STORED_BLOCK)]
    blocks = [
        struct.pack("<BHH", chunk is chunks[-1], len(chunk), STORED_BLOCK - len(chunk)) + chunk for chunk in chunks
    ]
    header = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    return header + b"".join(blocks) + struct.pack("<II", zlib.crc32(content), len(content))


def _meta(ids: Mapping[str, int]) -> bytes:
    """`meta.mat`: one row for each synset, those with children last."""
    words, glosses = imagenet_words("lemma"), imagenet_words("definition")
    numbers = dict(ids) | {wnid: len(ids) + 1 + row for row, wnid in enumerate(INNER_NODES)}
    rows = []
    for wnid in sorted(numbers, key=lambda wnid: numbers[wnid]):
        children = [numbers[child] for child in INNER_NODES.get(wnid, [])]
        rows.append(
            (
                np.uint16(numbers[wnid]),
                wnid,
                words[wnid],
                glosses[wnid],
                np.uint8(len(children)),
                np.array(children, dtype=np.uint16).reshape(1, -1),
                np.uint8(2 if children else 0),
                np.uint16(0 if children else 1300),
            )
        )
    table = np.array(rows, dtype=[(field, object) for field in SYNSET_FIELDS]).reshape(-1, 1)
    buffer = io.BytesIO()
    savemat(buffer, {"synsets": table})  # type: ignore[arg-type]
    return MATLAB_HEADER + buffer.getvalue()[len(MATLAB_HEADER) :]


def reassessed(labels: Iterable[Sequence[int]]) -> bytes:
    """The reassessed labels as published: for each image a list of class indices."""
    return (json.dumps([list(row) for row in labels]) + "\n").encode()


def md5_lines(paths: Iterable[Path], root: Path) -> bytes:
    """Sums in md5sum's own format, the paths relative to `root` and sorted."""
    sums = {
        path.relative_to(root).as_posix(): hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
        for path in paths
    }
    return "".join(f"{sums[name]}  {name}\n" for name in sorted(sums)).encode()
