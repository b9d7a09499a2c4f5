"""The files of ILSVRC2012 as published: archive, development kit, label list, sums."""

import hashlib
import io
import json
import struct
import tarfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path

KIT = "ILSVRC2012_devkit_t12/data"
STORED_BLOCK = 0xFFFF


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under a temporary name first: it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)


def imagenet_wnids() -> list[str]:
    """The 1,000 wnids of ImageNet, sorted: a class index is a position in this list."""
    path = Path(str(distribution("timm").locate_file("timm/data/_info"))) / "imagenet_synsets.txt"
    return path.read_text(encoding="utf-8").split()


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
    """The kit's ground truth as a tar.gz; `truth` holds the images' wnids, by their numbers, `ids` their ILSVRC ids."""
    lines = "".join(f"{ids[wnid]}\n" for wnid in truth)
    return stored_gzip(tar([(f"{KIT}/ILSVRC2012_validation_ground_truth.txt", lines.encode())]))


def stored_gzip(content: bytes) -> bytes:
    """The content in gzip's frame but not compressed: compressors differ between machines."""
    chunks = [content[start : start + STORED_BLOCK] for start in range(0, len(content), STORED_BLOCK)]
    blocks = [
        struct.pack("<BHH", chunk is chunks[-1], len(chunk), STORED_BLOCK - len(chunk)) + chunk for chunk in chunks
    ]
    header = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    return header + b"".join(blocks) + struct.pack("<II", zlib.crc32(content), len(content))


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
