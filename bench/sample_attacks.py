"""All attacks on 20 images and the three models of the sample, with small parameters: seconds in all."""

import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

from cleanset.edition.params import read_params
from cleanset.studies.attacks.attacking import run_attack
from cleanset.studies.attacks.study import AttackParams, AttackStudy
from cleanset.studies.robustness.images import Study
from measuring import PROJECT, print_machine, print_table, share

IMAGES, MAX_SECONDS = 20, 240
SMALL = {
    "none": {},
    "random_spatial": {},
    "spatial_grid": {"translations": [-18, 0, 18], "angles": [-30, -15, 0, 15, 30]},
    "spsa": {"steps": 6, "samples": 8, "after": None},
    "boundary": {"queries": 25, "eps": 5, "after": None},
    "common_corruptions": {},
    "pgd": {"eps": "4/255", "steps": 10},
    "autoattack": {"eps": "4/255", "attacks": ["apgd-ce", "square"], "steps": 5, "square_queries": 20},
}
"""The sample's own, and the other attacks with few steps."""


def main() -> None:
    settings = AttackParams.model_validate({"search_precision": "float64", "images": IMAGES, "attacks": SMALL})
    rows, begin, used = [], perf_counter(), process_time()
    with tempfile.TemporaryDirectory() as scratch:
        study = linked(Path(scratch))
        roles = list(read_params(study.edition.folder).models)
        for name in settings.names:
            before, processor = perf_counter(), process_time()
            for role in roles:
                run_attack(study, role, name, settings)
            rows.append((name, f"{perf_counter() - before:.0f}", f"{process_time() - processor:.0f}", ""))
    seconds = perf_counter() - begin
    rows.append(("all", f"{seconds:.0f}", f"{process_time() - used:.0f}", share(seconds, MAX_SECONDS)))
    print_machine("torch", "foolbox", "pyautoattack")
    print_table(
        f"{IMAGES} images, {len(roles)} models, float64", ("attack", "seconds", "processor seconds", "of 240 s"), rows
    )


def linked(folder: Path) -> AttackStudy:
    """A study that reads the sample's edition and study, which must be built, and writes in a folder of its own."""
    for name in ("params.yaml", "sample", "data"):
        (folder / name).symlink_to(PROJECT / name)
    attacked = AttackStudy(folder / "studies" / "attacks")
    attacked.folder.mkdir(parents=True)
    source, study = Study(PROJECT / "studies" / "robustness"), Study(folder / "studies" / "robustness")
    (study.folder / "data").mkdir(parents=True)
    for name in ("params.yaml", "masks", "backgrounds", "generated"):
        (study.folder / name).symlink_to(source.folder / name)
    for name in ("images.parquet", "masks.parquet", "corruptions", "scenarios"):
        if not (source.folder / "data" / name).exists():
            sys.exit(f"{source.folder / 'data' / name}: missing; run make robustness")
        (study.folder / "data" / name).symlink_to(source.folder / "data" / name)
    return attacked


if __name__ == "__main__":
    main()
