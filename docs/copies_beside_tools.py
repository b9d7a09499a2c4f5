"""Cropped copies that fastdup and imagededup find, beside `cleanset hints` (bench/hint_rates.yaml).

Run `python docs/copies_beside_tools.py FOLDER …` where both are installed; cleanset need not be. FOLDERs hold
photographs. The copies are those of `bench/hints.py --rates`: without a share of each side, JPEGs of quality 90 like
the photographs.
"""

import importlib
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from PIL import Image

SHARES = (0.05, 0.12, 0.2)
"""Share of each side that a copy lacks."""
MIN_SIMILARITY = 0.9
"""That from which on fastdup lists pairs by default."""


def fastdup_pairs(folder: Path, work: Path) -> set[frozenset[str]]:
    """The pairs that fastdup finds, by the names of files."""
    found = importlib.import_module("fastdup").create(work_dir=str(work), input_dir=str(folder))
    found.run(overwrite=True)
    pairs = found.similarity()
    pairs = pairs[pairs["distance"] >= MIN_SIMILARITY]
    return names_of(zip(pairs["filename_from"], pairs["filename_to"], strict=True))


def imagededup_pairs(folder: Path) -> set[frozenset[str]]:
    """The pairs that imagededup finds by its perceptual hash."""
    found = importlib.import_module("imagededup.methods").PHash().find_duplicates(image_dir=str(folder))
    return names_of((name, other) for name, others in found.items() for other in others)


def names_of(pairs: Iterable[tuple[str, str]]) -> set[frozenset[str]]:
    """The pairs by the names of their files."""
    return {frozenset((Path(one).name, Path(other).name)) for one, other in pairs}


def main() -> None:
    """Print what both find of the copies, and how many pairs of different photographs."""
    paths = sorted(path for folder in sys.argv[1:] for path in Path(folder).iterdir())
    for share in SHARES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "images"
            folder.mkdir()
            for place, path in enumerate(paths):
                image = Image.open(path).convert("RGB")
                across = round(image.width * share)
                down = round(image.height * share)
                image.save(folder / f"{place:04d}-whole.jpg", quality=90)
                part = image.crop((across, down, image.width - across, image.height - down))
                part.save(folder / f"{place:04d}-part.jpg", quality=90)
            found = {"imagededup": imagededup_pairs(folder), "fastdup": fastdup_pairs(folder, Path(name) / "work")}
        for tool, pairs in found.items():
            right = sum(
                frozenset((f"{each:04d}-whole.jpg", f"{each:04d}-part.jpg")) in pairs for each in range(len(paths))
            )
            wrong = sum(len({file[:4] for file in pair}) > 1 for pair in pairs)
            print(f"{tool}, without {share:.0%} of each side: {right} of {len(paths)}, wrong pairs {wrong}")


if __name__ == "__main__":
    main()
