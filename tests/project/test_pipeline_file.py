"""dvc.yaml names what the code uses: dependencies, parameters, models."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import cleanset
from cleanset.classes import imagenet
from cleanset.edition.params import read_params
from tests.checkouts import Checkout

STAGES = (
    "preprocess", "score", "intersect", "select", "crops", "score_crops", "review_apply", "export", "count", "report",
)  # fmt: skip
RUN_A_MODEL = {"score", "score_crops"}
EDITIONS = (".", "imagenet", "imagenet-published")
NEEDS_ARCHIVES_OR_GPU = {
    "preprocess": "dataset", "score": "scoring", "score_crops": "scoring", "export": "sets", "report": "report",
}  # fmt: skip
"""By stage: the folder of the VERSION that it depends on instead of modules."""


@pytest.fixture(scope="module")
def stages(repository: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((repository / "dvc.yaml").read_text())
    return content["stages"]  # type: ignore[no-any-return]


def test_the_pipeline_of_an_edition_is_no_link(repository: Path) -> None:
    """DVC does not follow one in git's history; that the files are equal is tested in tests/edition."""
    files = [repository / edition / "dvc.yaml" for edition in EDITIONS]
    assert [(path.is_file(), path.is_symlink()) for path in files] == [(True, False)] * 3


@pytest.mark.long
def test_no_stage_depends_on_the_engine(repository: Path) -> None:
    """Neither on the key, nor on a whole file that has it."""
    named = set[tuple[str, str]]()
    for lock in (repository / "dvc.lock", *repository.glob("studies/*/dvc.lock")):
        for name, stage in yaml.safe_load(lock.read_text())["stages"].items():
            keys = {key for of_file in stage.get("params", {}).values() for key in of_file}
            named |= {(name, key) for key in keys}
            assert not [each["path"] for each in stage.get("deps", ()) if each["path"].endswith("params.yaml")]
    assert ("corruptions@standard", "jpeg") in named
    assert [each for each in named if each[1].partition(".")[0] == "engine"] == []


def test_stages_stand_in_their_order(stages: dict[str, Any]) -> None:
    assert tuple(stages) == STAGES


def test_stages_keep_folders_of_many_files(stages: dict[str, Any]) -> None:
    """DVC would remove all other outs before the stage runs."""
    outs = [
        (name, out) for name, stage in stages.items() for kind in ("outs", "metrics") for out in stage.get(kind, [])
    ]
    kept = [(name, path) for name, out in outs if isinstance(out, dict) for path in out if out[path].get("persist")]
    assert kept == [("export", "data/export/${item.model}"), ("count", "metrics"), ("report", "report")]


def code_of(stage: str, stages: dict[str, Any]) -> set[str]:
    """The dependencies of a stage below src/cleanset."""
    prefix = "${root}/src/cleanset/"
    return {dep.removeprefix(prefix) for dep in stages[stage]["deps"] if dep.startswith(prefix)}


@pytest.mark.parametrize(("stage", "folder"), NEEDS_ARCHIVES_OR_GPU.items())
def test_a_stage_that_needs_archives_or_a_gpu_depends_on_a_version(
    stage: str, folder: str, stages: dict[str, Any]
) -> None:
    templates = {"report/templates", "sets/templates"} if stage == "report" else set[str]()
    assert code_of(stage, stages) == {f"{folder}/VERSION"} | templates
    version = Path(cleanset.__file__).parent / folder / "VERSION"
    assert re.fullmatch(r"[1-9][0-9]*\n", version.read_text())


@pytest.mark.long
@pytest.mark.slow
def test_torch_is_imported_only_where_a_model_runs() -> None:
    """One interpreter imports all other stages; where one of them brings torch, it says which."""
    others = [stage for stage in STAGES if stage not in RUN_A_MODEL]
    program = (
        "import importlib, sys\n"
        "for stage in sys.argv[1:]:\n"
        "    importlib.import_module(f'cleanset.stages.{stage}')\n"
        "    assert 'torch' not in sys.modules, stage\n"
        "print(*(name for name in sys.modules if name.startswith('cleanset.stages.')))"
    )
    command = [sys.executable, "-c", program, *others]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) >= {f"cleanset.stages.{stage}" for stage in others}


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


def test_the_editions_have_the_same_keys(repository: Path) -> None:
    def keys(edition: str) -> dict[str, list[str]]:
        content = yaml.safe_load((repository / edition / "params.yaml").read_text())
        return {name: list(value) if isinstance(value, dict) else [] for name, value in content.items()}

    assert keys(".") == keys("imagenet")
    # its select, review and count say only what is special there
    assert list(keys("imagenet-published")) == list(keys("imagenet"))


def test_the_imagenet_edition_is_that_of_scooter(repository: Path) -> None:
    params = read_params(repository / "imagenet")
    named = {role: (model.source, model.name, model.threat_model) for role, model in params.models.items()}
    assert named == {
        "standard": ("timm", "resnet50.a1_in1k", None),
        "norm_robust": ("robustbench", "Salman2020Do_R50", "Linf"),
        "corruption_robust": ("robustbench", "Erichson2022NoisyMix_new", "corruptions"),
    }
    assert params.dataset.class_list(imagenet()) == list(range(1000))
    assert (params.dataset.expect_images, params.select.candidates, params.export.images_per_class) == (50000, 5, 3)


@pytest.mark.parametrize(("edition", "raw"), [("imagenet", "data/raw"), ("imagenet-published", "../imagenet/data/raw")])
def test_the_official_sums(edition: str, raw: str, repository: Path) -> None:
    assert (repository / edition / "raw.md5").read_text() == (
        f"29b22e2961454d5413ddabcf34fc5622  {raw}/ILSVRC2012_img_val.tar\n"
        f"fa75699e90414af021442c21a62c3abf  {raw}/ILSVRC2012_devkit_t12.tar.gz\n"
    )


@pytest.mark.slow
def test_the_models_are_in_the_zoos(repository: Path) -> None:
    """The names of the ImageNet edition are known to timm and RobustBench."""
    import timm

    from cleanset.scoring.models import preprocessing_of

    params = read_params(repository / "imagenet")
    assert timm.is_model(params.model("standard").name)
    for role in ("norm_robust", "corruption_robust"):
        assert preprocessing_of(params.model(role)).name == "Res256Crop224"


@pytest.mark.parametrize(
    "project", [".", "sample", "studies/robustness", "studies/attacks", "studies/contest", "studies/training"]
)
def test_the_lock_has_the_stages_of_the_pipeline(project: str, pristine: Checkout) -> None:
    """DVC keeps those that are no longer in dvc.yaml."""
    stages = pristine.run("dvc", "stage", "list", cwd=project).stdout.splitlines()
    lock = yaml.safe_load((pristine.folder / project / "dvc.lock").read_text())
    assert sorted(lock["stages"]) == sorted(stage.split()[0] for stage in stages)
