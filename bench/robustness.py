"""Making all corruptions of an image against the library alone, and measuring the answers of three models."""

import resource
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter, process_time

import imagecorruptions
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cleanset.classes import imagenet
from cleanset.images.codec import decode
from cleanset.images.preprocessing import base_image
from cleanset.statistics.bootstrap import Bootstrap
from cleanset.studies.robustness.answers import ANSWER_TABLES, ANSWERS
from cleanset.studies.robustness.corruptions.changes import corrupted_images
from cleanset.studies.robustness.corruptions.family import CORRUPTION_FAMILY
from cleanset.studies.robustness.corruptions.measures import CorruptionStudy, by_severity
from cleanset.studies.robustness.corruptions.params import (
    ALL_CORRUPTIONS,
    CORRUPTIONS,
    SEVERITIES,
    CorruptionMeasures,
    Corruptions,
)
from cleanset.studies.robustness.families import StudyParams
from cleanset.studies.robustness.images import AnswerFiles
from cleanset.studies.robustness.measuring import Studied, study_of
from cleanset.studies.robustness.perturbations.family import PERTURBATION_FAMILY
from cleanset.studies.robustness.perturbations.measures import PerturbationStudy, by_frame
from cleanset.studies.robustness.perturbations.params import (
    ALL_PERTURBATIONS,
    PERTURBATIONS,
    PerturbationMeasures,
    Perturbations,
    frame_count,
)
from cleanset.studies.robustness.results import SELECTIONS, StudiedImages
from cleanset.studies.robustness.scenarios.measures import ScenarioStudy, cells_of, regression_of
from cleanset.studies.robustness.scenarios.params import SCENARIOS, ScenarioMeasures, Scenarios
from cleanset.studies.robustness.sections import CLEAN, UNCHANGED
from export import photographs_or_drawings
from measuring import PYTHON, print_machine, print_measures, print_table, run, scratch, share

PHOTOGRAPHS = 8
MAX_SHARE_OF_LIBRARY = 0.55
ROLES, CLASSES, PER_CLASS = ("a", "b", "c"), 1000, 3
FILES = [f"n{number:08d}/{number}.png" for number in range(CLASSES * PER_CLASS)]
MAX_SECONDS, MAX_SECONDS_DRAWN, MAX_MEBIBYTES, MAX_MEBIBYTES_OF_FRAMES = 10, 60, 1024, 2048
FRAMES = sum(map(frame_count, ALL_PERTURBATIONS))


def main() -> None:
    if sys.argv[1:]:
        in_own_process(sys.argv[1], Path(sys.argv[2]))
        return
    read_frames, measured_frames, peak_of_frames = frames()  # first: this process's memory would count
    source, photographs = photographs_or_drawings()
    images = [base_image(decode(data)) for data in photographs[:PHOTOGRAPHS]]
    for change in (by_library, corrupted_images):  # compiled, and its masks read
        changed(images[:1], change)
    library, own = (changed(images, change) for change in (by_library, corrupted_images))
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
    images_of_sets = f"Measures of {len(ROLES)} models, {CLASSES * PER_CLASS:,} images in"
    print_measures(
        f"{images_of_sets} 75 corruptions, 320 frames, 12 scenarios",
        [
            ("reading answers to 96 variants, s", read, ".1f", None),
            ("reading, and one draw, s", read + once, ".1f", MAX_SECONDS),
            ("reading, and 1,000 draws, s", read + drawn, ".1f", MAX_SECONDS_DRAWN),
            ("peak memory, MiB", peak, ".0f", MAX_MEBIBYTES),
        ],
    )
    print_measures(
        f"{images_of_sets} {FRAMES} frames, in a process of its own",
        [
            ("reading answers, s", read_frames, ".1f", None),
            ("1,000 draws, s", measured_frames, ".1f", None),
            ("peak memory, MiB", peak_of_frames, ".0f", MAX_MEBIBYTES_OF_FRAMES),
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
    changes = [(CLEAN, 0), (UNCHANGED, 0), *((name, each) for name in ALL_CORRUPTIONS for each in SEVERITIES)]
    with scratch() as folder:
        write_answers(folder, "corruptions", changes)
        studied = studied_in(folder, {"corruptions": {"names": list(ALL_CORRUPTIONS)}})
        before = perf_counter()
        study_of(CORRUPTION_FAMILY, studied)
        return perf_counter() - before


def write_answers(folder: Path, family: str, changes: Sequence[tuple[str, int]]) -> None:
    """Write made-up answers of all models to these changes of all images."""
    count, ordered = CLASSES * PER_CLASS, sorted(changes)
    rows = count * len(ordered)
    classes = np.random.default_rng(0).random((rows, 7)).argsort(axis=1)[:, :5].astype(np.int16)
    probabilities = np.tile(np.array([0.3, 0.2, 0.1, 0.1, 0.1], np.float32), rows)
    columns: dict[str, object] = {name: np.zeros(rows, np.float32) for name in ANSWERS}
    columns["file"] = pa.array(FILES).take(np.repeat(np.arange(count), len(ordered)))
    columns["change"] = pa.array([name for name, _ in ordered]).take(np.tile(np.arange(len(ordered)), count))
    columns["severity"] = columns["frame"] = np.tile(np.array([step for _, step in ordered], np.int8), count)
    columns["top5_class"] = pa.FixedSizeListArray.from_arrays(classes.ravel(), 5)
    columns["top5_probability"] = pa.FixedSizeListArray.from_arrays(probabilities, 5)
    columns["class_of_edition"] = np.zeros(rows, np.int16)
    schema = ANSWER_TABLES[family].schema
    content = pa.table([columns[name] for name in schema.names], schema=schema)
    for role in ROLES:
        path = AnswerFiles(folder).predictions(family, role)
        path.parent.mkdir(exist_ok=True)
        pq.write_table(content, path, compression="zstd")


def studied_in(folder: Path, wanted: dict[str, object]) -> Studied:
    """The study whose answers `write_answers` has written into a folder."""
    images = pd.DataFrame({"file": FILES, "class_index": np.repeat(np.arange(CLASSES), PER_CLASS)})
    images["sets"] = [list(ROLES)] * len(images)
    params = StudyParams.model_validate(wanted)
    models = {role: role for role in ROLES}
    return Studied(
        images=images,
        masks=pd.DataFrame(),
        params=params,
        models=models,
        owners=ROLES,
        selections=SELECTIONS,
        files=AnswerFiles(folder),
        classes=imagenet(),
    )


def frames() -> tuple[float, float, float]:
    """The seconds of reading and of measuring the answers to frames, and MiB, in a process of its own."""
    with scratch() as folder:
        run(PYTHON, __file__, "write", folder, cwd=folder)
        done = run(PYTHON, __file__, "frames", folder, cwd=folder)
    read, measured = map(float, done.output.split())
    return read, measured, done.peak_mib


def in_own_process(what: str, folder: Path) -> None:
    """Write answers to frames into the folder, or read and measure those there and print the seconds of each."""
    if what == "write":
        changes = [(name, frame) for name in ALL_PERTURBATIONS for frame in range(frame_count(name))]
        write_answers(folder, "perturbations", [(CLEAN, 0), (UNCHANGED, 0), *changes])
        return
    wanted: dict[str, object] = {
        "perturbations": {"names": list(ALL_PERTURBATIONS)},
        "measures": {"perturbations": {"reference": ROLES[0]}},
    }
    studied, begin = studied_in(folder, wanted), perf_counter()
    study = study_of(PERTURBATION_FAMILY, studied)
    assert isinstance(study, PerturbationStudy)
    read = perf_counter() - begin
    list(study.lines()), list(study.differences()), by_frame(study)
    print(read, perf_counter() - begin - read)


def results(draws: int) -> float:
    """The seconds of all measures, from answers that are drawn; two thirds of the images are in each set."""
    generator = np.random.default_rng(0)
    count = CLASSES * PER_CLASS
    classes = np.repeat(np.arange(CLASSES), PER_CLASS)
    sets = [[role for role in ROLES if generator.random() < 0.67] for _ in range(count)]
    images = StudiedImages(
        class_indices=classes, sets=sets, roles=ROLES, bootstrap=Bootstrap(resamples=draws), classes=imagenet()
    )
    studies = (
        corruption_study(images, generator),
        perturbation_study(images, generator),
        scenario_study(images, generator),
    )
    before = perf_counter()
    for study in studies:
        list(study.lines()), list(study.differences())
    by_severity(studies[0]), by_frame(studies[1])
    regression_of(studies[2], cells_of(studies[2], "class_index", images.class_indices))
    return perf_counter() - before


def corruption_study(images: StudiedImages, generator: np.random.Generator) -> CorruptionStudy:
    """Misclassified in 40 % of all cells."""
    answers = {}
    for role in ROLES:
        answers[role] = {
            name: generator.random((len(images.class_indices), len(SEVERITIES), 3)) for name in CORRUPTIONS
        }
        answers[role] |= {name: generator.random((len(images.class_indices), 1, 3)) for name in (CLEAN, UNCHANGED)}
        for name, values in answers[role].items():
            values[..., 0] = values[..., 0] < (0.4 if name in CORRUPTIONS else 0.1)
    return CorruptionStudy(images, answers, Corruptions.model_validate({}), CorruptionMeasures.model_validate({}))


def perturbation_study(images: StudiedImages, generator: np.random.Generator) -> PerturbationStudy:
    """Five of seven classes in every frame, in an order of its own."""
    answers = {}
    for role in ROLES:
        answers[role] = {
            name: generator.random((len(images.class_indices), frame_count(name), 7)).argsort(axis=-1)[..., :5]
            for name in PERTURBATIONS
        }
    measures = PerturbationMeasures(reference="a")
    return PerturbationStudy(images, answers, Perturbations(names=[*PERTURBATIONS]), measures)


def scenario_study(images: StudiedImages, generator: np.random.Generator) -> ScenarioStudy:
    """Correct in half of all cells."""
    count = len(images.class_indices)
    shares = {CLEAN: 1.0, UNCHANGED: 0.9, **dict.fromkeys(SCENARIOS, 0.5)}
    answers = {role: {name: generator.random((count, 1)) < share for name, share in shares.items()} for role in ROLES}
    return ScenarioStudy(images, answers, Scenarios.model_validate({"names": [*SCENARIOS]}), ScenarioMeasures())


if __name__ == "__main__":
    main()
