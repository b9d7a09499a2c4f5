"""The code deps of dvc.yaml: what the command writes, what it leaves alone, and that they are up to date."""

import re
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest

from cleanset.cli import app
from cleanset.edition.dependencies import PLUMBING, projects_of, update_dependencies, with_code
from cleanset.edition.dvc_files import stages_in
from cleanset.edition.modules import SourceCode
from cleanset.errors import CleansetError
from cleanset.stages.commands import STAGES
from tests.checkouts import Checkout

PIPELINE = """\
# read aloud
stages:
  intersect:
    desc: the images  # why
    cmd: cleanset intersect
    deps:
      - data/index.parquet
      # a comment stays
      - ${root}/src/cleanset/gone.py
    params:
      - models
    outs:
      - data/shared.parquet

  score:
    cmd: cleanset score --model ${item.model}
    deps:
      - data/index.parquet
      - ${root}/src/cleanset/scoring/VERSION
    outs:
      - data/scores

  report:
    cmd: cleanset report
    deps:
      - metrics
      - ${root}/src/cleanset/report/VERSION
      - ${root}/src/cleanset/gone/templates
    outs:
      - report
"""
WRITTEN = """\
      # a comment stays
      - ${root}/src/cleanset/selection/candidates.py
      - ${root}/src/cleanset/selection/rule.py
      - ${root}/src/cleanset/stages/intersect.py
    params:
"""


def test_the_code_of_a_stage_is_written() -> None:
    """All else stays byte for byte; a stage with a VERSION keeps its deps, but one of pages gets its templates."""
    before, _, after = PIPELINE.partition(
        "      # a comment stays\n      - ${root}/src/cleanset/gone.py\n    params:\n"
    )
    folders = "report/templates\n      - ${root}/src/cleanset/sets/templates"
    after = after.replace("gone/templates", folders)
    assert with_code(PIPELINE, app, "dvc.yaml", SourceCode()) == f"{before}{WRITTEN}{after}"


def test_a_second_time_changes_nothing() -> None:
    once = with_code(PIPELINE, app, "dvc.yaml", SourceCode())
    assert with_code(once, app, "dvc.yaml", SourceCode()) == once


def test_deps_at_the_end_of_a_file() -> None:
    text = "stages:\n  intersect:\n    cmd: cleanset intersect\n    deps:\n      - data/index.parquet\n"
    assert with_code(text, app, "dvc.yaml", SourceCode()).endswith("cleanset/stages/intersect.py\n")


def test_a_stage_by_either_name(repository: Path) -> None:
    """`cleanset stage intersect` runs what `cleanset intersect` runs; every stage of the editions is one."""
    by_hand = PIPELINE.replace("cleanset intersect", "cleanset stage intersect")
    assert with_code(by_hand, app, "dvc.yaml", SourceCode()) == with_code(
        PIPELINE, app, "dvc.yaml", SourceCode()
    ).replace("cleanset intersect", "cleanset stage intersect")
    assert list(stages_in((repository / "dvc.yaml").read_text())) == list(STAGES)
    for stage, of_one_model in STAGES.items():
        run = import_module(f"cleanset.stages.{stage}").run
        assert len(signature(run).parameters) == 1 + of_one_model


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["score"], "stage score: no --model; name the role of one in params.yaml"),
        (["stage", "count", "--model", "a"], "stage count: --model a, but the stage is of all models: leave the"),
        (["stage", "counts"], "unknown stage 'counts'; expected one of preprocess, score, "),
        (["crops", "--edition", "none"], "none/params.yaml: missing; expected the folder of an edition"),
    ],
)
def test_a_stage_that_cannot_run(arguments: list[str], message: str) -> None:
    with pytest.raises(CleansetError, match=re.escape(message)):
        app(arguments, standalone_mode=False)


def test_an_unknown_command() -> None:
    text = PIPELINE.replace("cleanset intersect", "cleanset intersekt")
    with pytest.raises(CleansetError, match="stage intersect runs 'cleanset intersekt'; expected a command"):
        with_code(text, app, "dvc.yaml", SourceCode())


def test_every_pipeline_is_up_to_date(repository: Path) -> None:
    """The fix is to run `cleanset pipelines`, and after a refactoring `cleanset pipelines --relock`."""
    projects = projects_of([repository, repository / "imagenet", repository / "imagenet-published"])
    assert len(projects) >= 6
    assert update_dependencies(projects, app, write=False) == []


def test_what_is_plumbing_exists() -> None:
    assert [module for module in PLUMBING if not SourceCode().path_of(module).is_file()] == []


def test_the_editions_have_the_same_pipelines(repository: Path) -> None:
    """The published edition has no studies."""
    pipelines = [(repository / name / "dvc.yaml").read_bytes() for name in ("", "imagenet", "imagenet-published")]
    assert pipelines[0] == pipelines[1] == pipelines[2]
    for project in projects_of([repository]):
        path = project.relative_to(repository) / "dvc.yaml"
        assert (repository / path).read_bytes() == (repository / "imagenet" / path).read_bytes()


@pytest.mark.parametrize(
    ("project", "limit"),
    [(".", 265), ("studies/robustness", 260), ("studies/attacks", 210), ("studies/contest", 90)],
)
def test_a_pipeline_can_be_read_aloud(project: str, limit: int, repository: Path) -> None:
    assert len((repository / project / "dvc.yaml").read_text().splitlines()) < limit


@pytest.mark.long
def test_the_command_checks_and_writes(clone: Checkout) -> None:
    path = clone.folder / "dvc.yaml"
    committed = path.read_text()
    path.write_text(committed.replace("      - ${root}/src/cleanset/stages/intersect.py\n", ""))
    assert path.read_text() != committed
    checked = clone.run("cleanset", "pipelines", "--check", check=False)
    assert (checked.returncode, checked.stdout) == (1, "dvc.yaml: out of date; run cleanset pipelines\n")
    assert clone.run("cleanset", "pipelines").stdout == "dvc.yaml: written\n"
    assert path.read_text() == committed
    assert clone.run("cleanset", "pipelines", "--check").stdout == ""


@pytest.mark.long
def test_an_edition_elsewhere_made_before_a_module_moved(clone: Checkout, tmp_path: Path) -> None:
    names = "dvc.yaml", "studies/contest/dvc.yaml"
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((clone.folder / name).read_text().replace("contest/rules.py", "contest/before.py"))
    assert (tmp_path / names[1]).read_bytes() != (clone.folder / names[1]).read_bytes()
    written = clone.run("cleanset", "pipelines", "--repository", str(tmp_path)).stdout
    assert written == f"{tmp_path / names[1]}: written\n"
    assert [(tmp_path / name).read_bytes() for name in names] == [(clone.folder / name).read_bytes() for name in names]


@pytest.mark.long
@pytest.mark.parametrize(
    ("file", "old", "new", "project", "stage"),
    [
        ("statistics/coverage.py", "Fraction(4, 5)", "Fraction(3, 5)", "studies/contest", "standing"),
        ("selection/candidates.py", '"""', '"""Other. ', ".", "intersect"),
        ("report/templates/parts.html", "kept, place", "in place", ".", "report"),
    ],
)
def test_a_changed_rule_or_page_makes_its_stage_stale(
    file: str, old: str, new: str, project: str, stage: str, clone: Checkout
) -> None:
    """DVC itself reports it. The share that makes a defence eligible changed no standing before."""
    named = file.removesuffix("/parts.html")
    assert named not in clone.run("dvc", "status", stage, check=False, cwd=project).stdout
    path = clone.folder / "src" / "cleanset" / file
    path.write_text(path.read_text().replace(old, new, 1))
    assert f"src/cleanset/{named}" in clone.run("dvc", "status", stage, check=False, cwd=project).stdout
