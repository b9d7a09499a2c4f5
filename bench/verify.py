"""cleanset verify of 9,000 full-size images against reading and hashing them with one process per core."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from cleanset.classes import imagenet
from cleanset.dataset.ilsvrc import image_id
from cleanset.files import sha256
from cleanset.sets.description import Release
from cleanset.sets.folder import CARD, write_descriptions
from cleanset.sets.manifest import Entry, file_name
from export import photographs_or_drawings
from measuring import PYTHON, Run, cleanset, figures, print_machine, print_table, run, scratch, share

ROUNDS = 7
LIMIT = 1.3
IMAGES = 9_000
PER_CLASS = 9


def main() -> None:
    with scratch() as made:
        source, megabytes = build(made)
        found: dict[tuple[str, bool], list[Run]] = {}
        for number in range(ROUNDS):
            for warm in (False, True):
                names = ("hash", "verify") if number % 2 == 0 else ("verify", "hash")
                for name in names:
                    found.setdefault((name, warm), []).append(timed(name, made, warm))
        decoded = timed("decode", made, True)
    print_machine()
    report(f"{IMAGES:,} images ({source}), {megabytes:,.0f} MB, median of {ROUNDS} rounds", found, decoded)


def build(folder: Path) -> tuple[str, float]:
    """An export of 9,000 different files; the digests of their pixels are made up: by default none is decoded."""
    source, photographs = photographs_or_drawings()
    classes = imagenet()
    entries = []
    size = 0
    for number in range(1, IMAGES + 1):
        class_index, rank = divmod(number - 1, PER_CLASS)
        wnid = classes.keys[class_index]
        data = photographs[number % len(photographs)] + number.to_bytes(4, "big")  # beyond the JPEG's end
        file, digest = file_name(wnid, image_id(number), None, classes), sha256(data)
        (folder / wnid).mkdir(exist_ok=True)
        (folder / file).write_bytes(data)
        size += len(data)
        entries.append(
            Entry.checked(
                {
                    "model": "standard",
                    "wnid": wnid,
                    "class_index": class_index,
                    "class_name": classes.labels[class_index],
                    "rank": rank + 1,
                    "image_id": image_id(number),
                    "tier": "top5",
                    "confidence": 0.5,
                    "source_confidence": 0.5,
                    "ilsvrc_class": class_index,
                    "real_classes": (class_index,),
                    "reviewers": 1,
                    "crop": None,
                    "file": file,
                    "source_sha256": digest,
                    "source_check": "none",
                    "file_sha256": digest,
                    "pixels_sha256": sha256(str(number).encode()),
                },
                classes,
            )
        )
    write_descriptions(folder, entries, Release(classes=classes), {CARD: "# A made-up set\n"})
    return source, size / 1e6


def timed(name: str, folder: Path, warm: bool) -> Run:
    """One process from its start to its end, the files in the page cache or not."""
    os.sync()
    if not warm and hasattr(os, "posix_fadvise"):
        for path in images(folder):
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if name == "hash":
        return run(PYTHON, Path(__file__).with_name("hashing.py"), folder, cwd=folder)
    if name == "verify":
        return cleanset("verify", ".", edition=folder)
    # which reports the made-up digests of pixels
    command = f"'{Path(sys.executable).parent / 'cleanset'}' verify --decode . > {os.devnull} || true"
    return run("sh", "-c", command, cwd=folder)


def images(folder: Path) -> Iterable[Path]:
    return folder.glob("n*/*")


def report(title: str, found: dict[tuple[str, bool], list[Run]], decoded: Run) -> None:
    rows = []
    for warm, where in ((True, "in the page cache"), (False, "not in it")):
        medians = []
        for name, text in (("hash", "reading and hashing, a process per core"), ("verify", "cleanset verify")):
            runs = found[name, warm]
            seconds, processor, _ = figures(runs)
            best = min(each.seconds for each in runs)
            medians.append((seconds, best, processor))
            rows.append((f"{text}, {where}", *(f"{value:.2f}" for value in medians[-1])))
        ratios = [b / a for a, b in zip(*medians, strict=True)]
        rows.append(("verify by hashing", *(f"{ratio:.2f}" for ratio in ratios)))
        rows.append(("of the limit", *(share(ratio, LIMIT) for ratio in ratios)))
    rows.append(("cleanset verify --decode, once", f"{decoded.seconds:.2f}", "", f"{decoded.processor_seconds:.2f}"))
    print_table(f"{title}; limit {LIMIT:g}", ("what", "seconds", "best", "processor seconds"), rows)


if __name__ == "__main__":
    main()
