"""How processor time grows with the number of images, models or people: the exponent of each command.

Images are of 8 x 8 pixels, in folders of class indices; answers are drawn. The exponent is that of what a command takes
beyond its start, which is what the least input takes: 1 is linear.
"""

import hashlib
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from measuring import print_machine, print_table, run, scratch

SIZES = (1_000, 4_000, 16_000)
"""Numbers of images; others may be given."""
LEAST = 40
MODELS = (16, 64, 256)
PEOPLE = (80, 160, 320, 640)
IMAGES_OF_MODELS = 400
RATED = 200
"""Images of the study; everybody rates RATINGS of them."""
RATINGS = 50
CLASSES = 20
CLEANSET = (sys.executable, "-P", "-m", "cleanset")


def draw_images(folder: Path, count: int) -> list[str]:
    """Write images into folders of class indices; their files."""
    rng = np.random.default_rng(0)
    files = [f"{number % CLASSES}/{number:05d}.png" for number in range(count)]
    for each in range(min(CLASSES, count)):
        (folder / str(each)).mkdir(parents=True)
    for file in files:
        Image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(folder / file)
    return files


def draw_answers(folder: Path, files: Sequence[str], models: int) -> list[str]:
    """Write the predictions of models, which are right for half of the images; the options that name them."""
    rng = np.random.default_rng(1)
    labels = np.array([int(file.partition("/")[0]) for file in files])
    options = []
    for number in range(models):
        guesses = rng.integers(0, CLASSES, len(files))
        found = np.where(rng.random(len(files)) < 0.5, labels, guesses).tolist()
        rows = [f"{file},{each}" for file, each in zip(files, found, strict=True)]
        (folder / f"m{number}.csv").write_text("\n".join(["image,class_index", *rows, ""]))
        options += ["--predictions", f"m{number}.csv"]
    return options


def of_images(count: int) -> dict[str, float]:
    """Processor seconds of commands on a number of images."""
    with scratch() as folder:
        files = draw_images(folder / "images", count)
        options = draw_answers(folder, files, 2)
        return {
            "evaluate, 2 models": seconds(folder, "evaluate", "images", *options, "--out", "results"),
            "compare, 2 models": seconds(folder, "compare", "results"),
            "hints": seconds(folder, "hints", "images", "--no-text"),
            **of_edition(folder, files[0]),
        }


def of_edition(folder: Path, file: str) -> dict[str, float]:
    """Processor seconds of commands on an edition of the images, which all count as clean but one, `file`."""
    seconds(folder, "edition", "edition", "--images", "images", "--images-per-class", "all", "--no-git")
    edition = folder / "edition"
    params = edition / "params.yaml"
    params.write_text(params.read_text().replace("unreviewed: pending", "unreviewed: clean"))
    repro = (sys.executable, "-P", "-m", "dvc", "repro")
    found = {"dvc repro": run(*repro, cwd=edition).processor_seconds}
    found["look"] = seconds(edition, "look", "data/export/images", "--out", "look")
    found["status"] = seconds(edition, "status")
    image = folder / "images" / file
    digest = hashlib.sha256(image.read_bytes()).hexdigest()
    key = file.partition("/")[0]
    reviews = edition / "reviews" / "ann"
    reviews.mkdir()
    verdict = f"    verdict: reject\n    reason: text\n    sha256: {digest}\n"
    (reviews / f"{key}.yaml").write_text(f'"{key}":\n  {file}:\n{verdict}')
    found["dvc repro, one verdict"] = run(*repro, cwd=edition).processor_seconds
    image.unlink()
    (reviews / f"{key}.yaml").unlink()
    found["edition --accept, an image less"] = seconds(edition, "edition", "--accept")
    return found


def of_models(count: int) -> dict[str, float]:
    """Processor seconds of commands on the answers of a number of models."""
    with scratch() as folder:
        options = draw_answers(folder, draw_images(folder / "images", IMAGES_OF_MODELS), count)
        return {
            "evaluate": seconds(folder, "evaluate", "images", *options, "--out", "results"),
            "compare": seconds(folder, "compare", "results"),
        }


def of_people(count: int) -> dict[str, float]:
    """Processor seconds of analysing the ratings of a number of people."""
    rng = np.random.default_rng(count)
    image = np.concatenate([rng.choice(RATED, RATINGS, replace=False) for _ in range(count)])
    person = np.repeat(np.arange(count), RATINGS)
    modified = image >= RATED // 2
    effects = rng.normal(size=(count, 2))[person, modified.astype(int)] + rng.normal(size=RATED)[image]
    ratings = np.clip(np.rint(effects - modified + rng.normal(size=len(image))), -2, 2).astype(int)
    kinds = np.where(modified, "modified", "real")
    rows = [",".join(map(str, row)) for row in zip(ratings, person, kinds, image, strict=True)]
    with scratch() as folder:
        (folder / "ratings.csv").write_text("\n".join(["rating,pid,image_type,image_id", *rows, ""]))
        return {"study analyse": seconds(folder, "study", "analyse", "ratings.csv")}


def seconds(folder: Path, *arguments: str) -> float:
    """Processor seconds of a command."""
    return run(*CLEANSET, *arguments, cwd=folder).processor_seconds


def exponent(sizes: Sequence[int], times: Sequence[float]) -> str:
    """The power with which time grows from the smallest size to the largest; empty if it is lost in the start."""
    if times[0] <= 0 or times[-1] <= 0:
        return ""
    return f"{math.log(times[-1] / times[0]) / math.log(sizes[-1] / sizes[0]):.2f}"


def table(unit: str, sizes: Sequence[int], measured: Callable[[int], dict[str, float]], least: int) -> None:
    """Print the processor seconds at each size, and the exponents of what is beyond the time of the `least` size."""
    found = [measured(size) for size in sizes]
    # last, when nothing has to be compiled any more
    start = measured(least) if least else {}
    rows = []
    for name in found[0]:
        times = [each[name] for each in found]
        beyond = exponent(sizes, [each - start.get(name, 0.0) for each in times])
        rows.append((name, *(f"{each:.2f}" for each in times), beyond))
    print_table(f"Processor seconds by {unit}", ["what", *(f"{size:,}" for size in sizes), "exponent"], rows)


if __name__ == "__main__":
    print_machine()
    table("images", tuple(map(int, sys.argv[1:])) or SIZES, of_images, least=LEAST)
    table(f"models, of {IMAGES_OF_MODELS:,} images", MODELS, of_models, least=2)
    table(f"people, each rating {RATINGS} of {RATED} images", PEOPLE, of_people, least=4)
