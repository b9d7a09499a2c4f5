"""Making all corruptions of an image against the library alone, and measuring the answers of three models."""

import resource
import sys
from collections.abc import Callable
from time import perf_counter, process_time

import imagecorruptions
import numpy as np
import pandas as pd

from cleanset.images.base import base_image
from cleanset.images.codec import decode
from cleanset.robustness.answers import PREDICTIONS
from cleanset.robustness.corruption_results import Answers, CorruptionStudy, by_severity, read_answers
from cleanset.robustness.corruptions import corrupted
from cleanset.robustness.measures.bootstrap import Bootstrap
from cleanset.robustness.names import (
    ALL_CORRUPTIONS,
    CLEAN,
    CORRUPTIONS,
    PERTURBATIONS,
    SCENARIOS,
    SEVERITIES,
    UNCHANGED,
    frame_count,
)
from cleanset.robustness.perturbation_results import PerturbationStudy, by_frame
from cleanset.robustness.results import StudiedImages
from cleanset.robustness.scenario_results import Answers as ScenarioAnswers
from cleanset.robustness.scenario_results import ScenarioStudy, cells_of, regression_of
from cleanset.tables import read_table, write_table
from export import photographs_or_drawings
from measuring import print_machine, print_table, scratch, share

PHOTOGRAPHS = 8
MAX_SHARE_OF_LIBRARY = 0.55
ROLES, CLASSES, PER_CLASS = ("a", "b", "c"), 1000, 3
MAX_SECONDS, MAX_SECONDS_DRAWN, MAX_MEBIBYTES = 10, 60, 1024


def main() -> None:
    source, photographs = photographs_or_drawings()
    images = [base_image(decode(data)) for data in photographs[:PHOTOGRAPHS]]
    for change in (by_library, corrupted):  # compiled, and its masks read
        changed(images[:1], change)
    library, own = (changed(images, change) for change in (by_library, corrupted))
    read = reading()
    once, drawn = (results(draws) for draws in (1, 1000))
    print_machine("imagecorruptions-imaug", "numba", "scipy", "opencv-python-headless")
    milliseconds = [f"{1000 * seconds / PHOTOGRAPHS:.0f}" for seconds in (library, own)]
    rows = [("imagecorruptions", milliseconds[0], ""), ("cleanset", milliseconds[1], share(own, library))]
    print_table(
        f"15 corruptions x 5 severities of {PHOTOGRAPHS} images ({source})",
        ("what", "processor ms an image", "share"),
        [*rows, ("limit", "", f"{MAX_SHARE_OF_LIBRARY:.2f}")],
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print_table(
        f"Measures of {len(ROLES)} models, {CLASSES * PER_CLASS:,} images in 75 corruptions, 320 frames, 12 scenarios",
        ("what", "found", "limit", "of the limit"),
        [
            ("reading answers to 96 variants, s", f"{read:.1f}", "", ""),
            ("one draw, s", f"{once:.1f}", str(MAX_SECONDS), share(once, MAX_SECONDS)),
            (
                "1,000 draws, s",
                f"{drawn:.1f}",
                str(MAX_SECONDS_DRAWN),
                share(drawn, MAX_SECONDS_DRAWN),
            ),
            ("peak memory, MiB", f"{peak:.0f}", str(MAX_MEBIBYTES), share(peak, MAX_MEBIBYTES)),
        ],
    )
    sys.exit(own > MAX_SHARE_OF_LIBRARY * library)


def by_library(image: np.ndarray, name: str) -> list[np.ndarray]:
    """A corruption as its library makes it."""
    return [imagecorruptions.corrupt(image, severity, name) for severity in SEVERITIES]


def changed(images: list[np.ndarray], change: Callable[..., object]) -> float:
    """The processor seconds of all corruptions of the images."""
    before = process_time()
    for image in images:
        for name in CORRUPTIONS:
            change(image, name)
    return process_time() - before


def reading() -> float:
    """The seconds of reading the stored answers of all models to 19 corruptions and the unchanged images."""
    generator = np.random.default_rng(0)
    files = [f"n{number:08d}/{number}.png" for number in range(CLASSES * PER_CLASS)]
    images = pd.DataFrame({"file": files, "class_index": np.repeat(np.arange(CLASSES), PER_CLASS)})
    changes = [(CLEAN, 0), (UNCHANGED, 0), *((name, each) for name in ALL_CORRUPTIONS for each in SEVERITIES)]
    keys = sorted((file, *change) for file in files for change in changes)
    rows = pd.DataFrame(keys, columns=["file", "change", "severity"])
    rows["top5_class"] = list(generator.random((len(rows), 7)).argsort(axis=1)[:, :5])
    rows["top5_probability"] = list(np.tile(np.array([0.3, 0.2, 0.1, 0.1, 0.1], np.float32), (len(rows), 1)))
    for name in ("log_odds", "largest_logit", "second_logit", "log_sum_exp"):
        rows[name] = np.float32(0)
    rows["class_of_edition"] = 0
    with scratch() as folder:
        path, table = folder / "answers.parquet", PREDICTIONS["corruptions"]
        write_table(path, rows, table)
        del rows, keys
        before = perf_counter()
        for _ in ROLES:
            read_answers(images, read_table(path, table), ALL_CORRUPTIONS, SEVERITIES)
        return perf_counter() - before


def results(draws: int) -> float:
    """The seconds of all measures, from answers that are drawn; two thirds of the images are in each set."""
    generator = np.random.default_rng(0)
    count = CLASSES * PER_CLASS
    classes = np.repeat(np.arange(CLASSES), PER_CLASS)
    sets = [[role for role in ROLES if generator.random() < 0.67] for _ in range(count)]
    images = StudiedImages(classes, sets, ROLES, Bootstrap(resamples=draws))
    studies = (
        corruption_study(images, generator),
        perturbation_study(images, generator),
        scenario_study(images, generator),
    )
    before = perf_counter()
    for study in studies:
        list(study.lines()), list(study.differences())
    by_severity(studies[0]), by_frame(studies[1])
    regression_of(studies[2], cells_of(studies[2]), (None, None, None))
    return perf_counter() - before


def corruption_study(images: StudiedImages, generator: np.random.Generator) -> CorruptionStudy:
    """Misclassified in 40 % of all cells."""
    shape = (len(images.classes), len(CORRUPTIONS), len(SEVERITIES))
    answers = {
        role: Answers(
            generator.random(shape) < 0.4, {name: generator.random(shape[0]) < 0.1 for name in (CLEAN, UNCHANGED)}
        )
        for role in ROLES
    }
    return CorruptionStudy(images, CORRUPTIONS, SEVERITIES, answers, "alexnet", {})


def perturbation_study(images: StudiedImages, generator: np.random.Generator) -> PerturbationStudy:
    """Five of seven classes in every frame, in an order of its own."""
    answers = {}
    for role in ROLES:
        answers[role] = {
            name: generator.random((len(images.classes), frame_count(name), 7)).argsort(axis=-1)[..., :5]
            for name in PERTURBATIONS
        }
    return PerturbationStudy(images, PERTURBATIONS, answers, 1, "a")


def scenario_study(images: StudiedImages, generator: np.random.Generator) -> ScenarioStudy:
    """Correct in half of all cells."""
    count = len(images.classes)
    answers = {
        role: ScenarioAnswers(
            generator.random((count, len(SCENARIOS))) < 0.5, np.ones(count, np.bool_), generator.random(count) < 0.9
        )
        for role in ROLES
    }
    return ScenarioStudy(images, SCENARIOS, answers)


if __name__ == "__main__":
    main()
