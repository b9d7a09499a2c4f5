"""dvc.yaml names what the code uses: dependencies, parameters, models."""

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import cleanset
from cleanset.edition.params import read_params
from tests.checkouts import Checkout

STAGES = (
    "preprocess", "score", "intersect", "select", "crops", "score_crops", "review_apply", "export", "count", "report",
)  # fmt: skip
RUN_A_MODEL = {"score", "score_crops"}
EDITIONS = (".", "imagenet")
NEEDS_ARCHIVES_OR_GPU = {"preprocess": "dataset", "score": "scoring", "score_crops": "scoring"}
"""By stage: the folder of the VERSION that it depends on instead of modules."""
UNNAMED = {
    "dataset/archives.py",  # here only to read raw.md5
    "dataset/class_names.py",  # words for people
    "dataset/ilsvrc.py",  # the numbering of the classes
    "dataset/layouts.py",  # finds images; what is read is checked by SHA-256
    "dataset/matlab.py",  # reads the devkit
    "dataset/real_labels.py",
    "edition/images.py", "edition/official.py", "edition/params.py", "edition/paths.py", "edition/roles.py",
    "edition/versions.py",
    "columns.py", "errors.py", "files.py", "machine.py", "metrics.py", "parsing.py", "progress.py", "tables.py",
    "validation.py", "vocabulary.py", "yaml_files.py",
    "images/boxes.py",
    "selection/rule.py",  # only the names of the rules
    "images/preprocessing.py",  # only to name one
    "scoring/comparison.py", "scoring/exactness.py", "scoring/record.py",  # only to read and describe a record
}  # fmt: skip
"""Modules that a stage that reads tables may import without naming them in its deps."""
READS_REVIEWS = {"review/store.py", "review/verdicts.py"}
NOT_ITS_RULES = {
    "crops": set[str](),
    "review_apply": {"review/queue.py", "selection/candidates.py", "selection/decision.py"},
    "export": READS_REVIEWS
    | {
        "exports/manifest_check.py",
        "exports/problems.py",
        "selection/candidates.py",
        "selection/crop_check.py",
        "selection/decision.py",
        "selection/fill.py",
    },
    "count": READS_REVIEWS | {"selection/decision.py"},
    "report": READS_REVIEWS
    | {
        "selection/candidates.py",
        "selection/crop_check.py",
        "selection/decision.py",
        "selection/fill.py",
        "images/codec.py",
        "images/jpeg.py",
    },
}
"""By stage, what it imports beyond: for a type, or for a function that reads a column."""


@pytest.fixture(scope="module")
def stages(repository: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((repository / "dvc.yaml").read_text())
    return content["stages"]  # type: ignore[no-any-return]


def test_both_editions_have_the_same_pipeline(repository: Path) -> None:
    assert (repository / "dvc.yaml").read_bytes() == (repository / "imagenet" / "dvc.yaml").read_bytes()
    assert not (repository / "imagenet" / "dvc.yaml").is_symlink()


def test_stages_stand_in_their_order(stages: dict[str, Any]) -> None:
    assert tuple(stages) == STAGES


@cache
def imported_by(stage: str) -> dict[str, str | None]:
    """The file, if any, of each module that importing a stage loads, in an interpreter of its own."""
    program = (
        f"import json, sys, cleanset.stages.{stage}\n"
        "print(json.dumps({name: getattr(module, '__file__', None) for name, module in sys.modules.items()}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    found: dict[str, str | None] = json.loads(done.stdout)
    return found


def modules_of(stage: str) -> set[str]:
    """The files of the modules that importing a stage loads, below src/cleanset."""
    package = Path(cleanset.__file__).parent
    loaded = [file for name, file in imported_by(stage).items() if name.startswith("cleanset.") and file]
    files = {Path(file).relative_to(package).as_posix() for file in loaded}
    return {file for file in files if not file.endswith("__init__.py")} - {f"stages/{stage}.py"}


def code_of(stage: str, stages: dict[str, Any]) -> set[str]:
    """The dependencies of a stage below src/cleanset."""
    prefix = "${root}/src/cleanset/"
    return {dep.removeprefix(prefix) for dep in stages[stage]["deps"] if dep.startswith(prefix)}


@pytest.mark.slow
@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage not in NEEDS_ARCHIVES_OR_GPU])
def test_a_stage_that_reads_tables_names_the_modules_that_hold_its_rules(stage: str, stages: dict[str, Any]) -> None:
    imported, named = modules_of(stage), code_of(stage, stages)
    assert named - {f"stages/{stage}.py", "report/templates"} <= imported
    assert imported - named - UNNAMED == NOT_ITS_RULES.get(stage, set())


@pytest.mark.parametrize(("stage", "folder"), NEEDS_ARCHIVES_OR_GPU.items())
def test_a_stage_that_needs_archives_or_a_gpu_depends_on_a_version(
    stage: str, folder: str, stages: dict[str, Any]
) -> None:
    assert code_of(stage, stages) == {f"{folder}/VERSION"}
    version = Path(cleanset.__file__).parent / folder / "VERSION"
    assert re.fullmatch(r"[1-9][0-9]*\n", version.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage not in RUN_A_MODEL])
def test_torch_is_imported_only_where_a_model_runs(stage: str) -> None:
    assert "torch" not in imported_by(stage)


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_model_is_named_in_the_dependencies(edition: str, repository: Path, stages: dict[str, Any]) -> None:
    """DVC has no list inside deps, so intersect, count and report name the models' files one by one."""
    roles = list(read_params(repository / edition).models)

    def files(stage: str, kind: str) -> list[str]:
        return [dep for dep in stages[stage]["deps"] if dep.startswith(f"data/{kind}/")]

    assert files("intersect", "scores") == [f"data/scores/{role}.parquet" for role in roles]
    for kind in ("scores", "margins", "crop_scores", "selection", "rejected"):
        assert files("count", kind) == [f"data/{kind}/{role}.parquet" for role in roles]
    for kind in ("crop_scores", "selection", "rejected"):
        assert files("report", kind) == [f"data/{kind}/{role}.parquet" for role in roles]


def test_both_editions_have_the_same_keys(repository: Path) -> None:
    def keys(edition: str) -> dict[str, list[str]]:
        content = yaml.safe_load((repository / edition / "params.yaml").read_text())
        return {name: list(value) if isinstance(value, dict) else [] for name, value in content.items()}

    assert keys(".") == keys("imagenet")


def test_the_imagenet_edition_is_that_of_source_000(repository: Path) -> None:
    params = read_params(repository / "imagenet")
    named = {role: (model.source, model.name, model.threat_model) for role, model in params.models.items()}
    assert named == {
        "standard": ("timm", "resnet50.a1_in1k", None),
        "norm_robust": ("robustbench", "Salman2020Do_R50", "Linf"),
        "corruption_robust": ("robustbench", "Erichson2022NoisyMix_new", "corruptions"),
    }
    assert params.dataset.class_list() == list(range(1000))
    assert (params.dataset.expect_images, params.select.candidates, params.export.images_per_class) == (50000, 5, 3)


def test_the_official_sums(repository: Path) -> None:
    assert (repository / "imagenet" / "raw.md5").read_text() == (
        "29b22e2961454d5413ddabcf34fc5622  data/raw/ILSVRC2012_img_val.tar\n"
        "fa75699e90414af021442c21a62c3abf  data/raw/ILSVRC2012_devkit_t12.tar.gz\n"
    )


@pytest.mark.slow
def test_the_models_are_in_the_zoos(repository: Path) -> None:
    """The names of the ImageNet edition are known to timm and RobustBench."""
    import timm

    from cleanset.scoring.models import _robustbench_entry

    params = read_params(repository / "imagenet")
    assert timm.is_model(params.model("standard").name)
    for role in ("norm_robust", "corruption_robust"):
        assert _robustbench_entry(params.model(role))["preprocessing"] == "Res256Crop224"


@pytest.mark.parametrize("project", [".", "sample", "studies/robustness", "studies/attacks", "studies/contest"])
def test_the_lock_has_the_stages_of_the_pipeline(project: str, pristine: Checkout) -> None:
    """DVC keeps those that are no longer in dvc.yaml."""
    stages = pristine.run("dvc", "stage", "list", cwd=project).stdout.splitlines()
    lock = yaml.safe_load((pristine.folder / project / "dvc.lock").read_text())
    assert sorted(lock["stages"]) == sorted(stage.split()[0] for stage in stages)
