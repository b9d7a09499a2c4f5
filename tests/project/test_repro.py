"""The sample edition, reproduced in fresh clones by a real DVC."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.checkouts import INSTALLED, Checkout, files
from tests.small_edition import STAGES, small_checkout, write_small_edition

Killed = Callable[[Checkout, str, str], None]

DRAW = "sample/dvc.yaml:draw"
ROLES = ("standard", "norm_robust", "corruption_robust")


@pytest.mark.long
def test_nothing_to_do_the_second_time(built: Checkout) -> None:
    assert built.stages_run() == []
    status = built.run("dvc", "status")
    assert status.stdout == "Data and pipelines are up to date.\n"
    # of the frozen stage alone
    assert [line.split("'")[1] for line in status.stderr.splitlines()] == ["sample/dvc.yaml:trained_models"]


@pytest.mark.long
def test_another_engine_changes_nothing(built: Checkout, tmp_path: Path) -> None:
    clone = built.clone_with_data(tmp_path / "cleanset")
    params = clone.folder / "params.yaml"
    params.write_text(f"engine: ray\n{params.read_text()}")
    assert clone.stages_run() == []
    assert clone.run("git", "diff", "--stat", "dvc.lock", "metrics").stdout == ""


def test_metrics_are_a_table_of_four_columns(built: Checkout) -> None:
    lines = built.run("dvc", "metrics", "show").stdout.splitlines()
    assert max(map(len, lines)) <= 120
    assert lines[0].split() == ["Path", "SHA-256", *sorted(ROLES)]
    paths = [line.split()[0] for line in lines[1:]]
    classes = [path for path in paths if path.startswith("metrics/classes/")]
    totals = [path for path in paths if path.startswith("metrics/totals/")]
    assert paths == classes + totals
    assert len(classes) == 12
    assert all(len(line.split()) == 5 for line in lines)


def test_metrics_of_one_class(built: Checkout) -> None:
    name = sorted((built.folder / "metrics" / "classes").iterdir())[0].name
    lines = built.run("dvc", "metrics", "show", f"metrics/classes/{name}").stdout.splitlines()
    assert len(lines) == 2


def test_only_reviews_changed_so_nothing_upstream_runs(reviewed: tuple[Checkout, str, list[str]]) -> None:
    _, _, ran = reviewed
    assert {stage.split("@")[0] for stage in ran} == {"crops", "review_apply", "export", "count", "report"}
    assert [stage for stage in ran if stage.startswith("review_apply")] == [f"review_apply@{role}" for role in ROLES]


@pytest.mark.long
def test_metrics_diff_names_just_the_classes_that_changed(reviewed: tuple[Checkout, str, list[str]]) -> None:
    checkout, wnid, _ = reviewed
    changed = json.loads(checkout.run("dvc", "metrics", "diff", "HEAD~1", "--json").stdout)
    classes = {Path(path).stem for path in changed if path.startswith("metrics/classes/")}
    before, after = ({}, {})  # type: dict[str, str], dict[str, str]
    for numbers, revision in ((before, "HEAD~1"), (after, "HEAD")):
        for path in checkout.run("git", "ls-tree", "--name-only", revision, "metrics/classes/").stdout.split():
            numbers[Path(path).stem] = checkout.run("git", "show", f"{revision}:{path}").stdout
    assert classes == {name for name in before if before[name] != after[name]} == {wnid}
    assert "metrics/totals/rejected_drawing.json" in changed


def plotted(checkout: Checkout, *command: str) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The rows of each plot of the report, by its path there, then by revision."""
    charts = json.loads(checkout.run("dvc", "plots", *command, "--json").stdout)["data"]
    rows: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for path, (chart,) in charts.items():
        of_plot = rows.setdefault(path.split("report/plots/")[1], {})
        for row in chart["content"]["data"]["values"]:
            of_plot.setdefault(row["rev"], []).append(row)
    return rows


@pytest.mark.long
def test_plots_give_the_numbers_of_the_metrics_and_the_report(reviewed: tuple[Checkout, str, list[str]]) -> None:
    """Before and after a review: a class loses an image, in the plots as in the metrics."""
    checkout, wnid, _ = reviewed
    plots = plotted(checkout, "diff", "HEAD~1", "HEAD")
    assert len(plots) == 3 * (1 + 1 + 3)
    for revision in ("HEAD~1", "HEAD"):
        of_class, images = (
            json.loads(checkout.run("git", "show", f"{revision}:metrics/{name}.json").stdout)
            for name in (f"classes/{wnid}", "totals/images")
        )
        for role in ROLES:
            classes = {row["wnid"]: row["images"] for row in plots[f"classes/{role}.json"][revision]}
            steps = {row["name"]: row["images"] for row in plots[f"funnel/{role}.json"][revision]}
            assert (len(classes), classes[wnid]) == (12, of_class[role])
            assert sum(classes.values()) == steps["kept"] == images[role]
    assert plots["classes/standard.json"]["HEAD~1"] != plots["classes/standard.json"]["HEAD"]


@pytest.mark.long
def test_plots_show_what_is_in_the_report(reviewed: tuple[Checkout, str, list[str]]) -> None:
    checkout, _, _ = reviewed
    for path, by_revision in plotted(checkout, "show").items():
        written = json.loads((checkout.folder / "report" / "plots" / path).read_text())
        (rows,) = by_revision.values()
        names = set(written[0])
        drawn = [{name: row[name] for name in names} for row in rows if row.get("field", "kept") == "kept"]
        assert drawn == written


@pytest.mark.long
def test_dvc_get_and_api_work_on_a_git_url(published: Checkout, tmp_path: Path) -> None:
    url = f"file://{published.folder}"
    subprocess.run(
        ["dvc", "get", "--quiet", url, "data/export/standard", "--out", "set"], cwd=tmp_path, check=True,
        env=published.environment() | {"DVC_SITE_CACHE_DIR": str(tmp_path / "site")},
    )  # fmt: skip
    assert files(tmp_path / "set") == files(published.folder / "data" / "export" / "standard")
    program = (
        "import dvc.api, sys\n"
        f"print(dvc.api.read('data/export/standard/manifest.csv', repo={url!r}).count(chr(10)))\n"
        f"print(dvc.api.read('imagenet/raw.md5', repo={url!r}).count(chr(10)))\n"
        f"print(dvc.api.params_show(repo={url!r})['select']['candidates'])\n"
    )
    done = published.run("python", "-c", program)
    lines = (published.folder / "data" / "export" / "standard" / "manifest.csv").read_text().count("\n")
    assert done.stdout.split() == [str(lines), "2", "5"]


@pytest.fixture(scope="module")
def both_published(published: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A clone in which the ImageNet edition has run too, on ten images, and was committed and pushed."""
    checkout = published.clone(tmp_path_factory.mktemp("both") / "cleanset")
    write_small_edition(checkout, "imagenet")
    checkout.run("dvc", "remote", "modify", "origin", "url", str(checkout.folder.parent / "remote"), cwd="imagenet")
    checkout.run("dvc", "repro", cwd="imagenet")
    checkout.run("dvc", "push", "--quiet", cwd="imagenet")
    checkout.commit("Run the ImageNet edition")
    (checkout.folder / "imagenet" / "reviews" / "ada" / "n04507155.yaml").unlink()
    checkout.run("dvc", "repro", cwd="imagenet")
    checkout.commit("Drop the reviews of a class")
    return checkout


def test_the_same_inputs_give_the_same_set_in_another_edition(both_published: Checkout, small: Checkout) -> None:
    both_published.run("git", "checkout", "--quiet", "HEAD~1")
    both_published.run("dvc", "checkout", "--quiet", cwd="imagenet")
    found = files(both_published.folder / "imagenet" / "data" / "export")
    assert found == files(small.folder / "data" / "export") != {}
    both_published.run("git", "checkout", "--quiet", "main")


def test_git_urls_work_for_the_imagenet_edition(both_published: Checkout, small: Checkout, tmp_path: Path) -> None:
    """dvc get, dvc.api and dvc metrics diff, with the edition's own data and another revision than the newest."""
    url = f"file://{both_published.folder}"
    subprocess.run(
        ["dvc", "get", "--quiet", "--rev", "main~1", url, "imagenet/data/export/standard", "--out", "set"],
        cwd=tmp_path, check=True, env=both_published.environment() | {"DVC_SITE_CACHE_DIR": str(tmp_path / "site")},
    )  # fmt: skip
    assert files(tmp_path / "set") == files(small.folder / "data" / "export" / "standard")
    program = f"import dvc.api; print(dvc.api.read('imagenet/data/short_classes.csv', repo={url!r}, rev='main~1'))"
    assert "n02782093" in both_published.run("python", "-c", program).stdout
    done = both_published.run("dvc", "metrics", "diff", "main~1", "--json", cwd="imagenet")
    changed = json.loads(done.stdout)
    assert [path for path in changed if "classes/" in path] == ["metrics/classes/n04507155.json"]


KILLER = """
import os, pathlib, sys

rename = pathlib.Path.replace
if sys.argv[0].endswith(("cleanset", "draw.py")):

    def replace(path, target):
        if "{moment}" == "before":
            os.kill(os.getpid(), 9)
        done = rename(path, target)
        os.kill(os.getpid(), 9)
        return done

    pathlib.Path.replace = replace
"""
"""As sitecustomize.py: kills a stage at its first rename, when all is written, or right after it."""


@pytest.fixture
def killed(tmp_path: Path) -> Killed:
    """Run one stage of a checkout until it kills itself at a moment: before or after its first rename."""
    killer = tmp_path / "killer"
    for moment in ("before", "after"):
        (killer / moment).mkdir(parents=True)
        (killer / moment / "sitecustomize.py").write_text(KILLER.format(moment=moment))

    def kill(checkout: Checkout, stage: str, moment: str) -> None:
        environment = checkout.environment()
        path = f"{killer / moment}{os.pathsep}{environment['PYTHONPATH']}"
        done = subprocess.run(
            ["dvc", "repro", "--single-item", stage], cwd=checkout.folder, check=False, capture_output=True, text=True,
            env=environment | {"PYTHONPATH": path},
        )  # fmt: skip
        # 137 is what a shell makes of it, where one is between
        assert re.search(r"exited with (-9|137)\b", done.stderr), (stage, moment, done.stderr)

    return kill


@pytest.mark.exhaustive
def test_kill_9_in_every_stage_changes_nothing(
    small: Checkout, pristine: Checkout, killed: Killed, tmp_path: Path
) -> None:
    """Each stage is killed before and after its first output is in place; `dvc repro` gives the same hashes as ever."""
    checkout = small_checkout(pristine, tmp_path / "cleanset")
    for stage in STAGES:
        for moment in ("before", "after"):
            killed(checkout, stage, moment)
        checkout.run("dvc", "repro", "--quiet", "--single-item", stage)
    assert_same(checkout, small)


def assert_same(checkout: Checkout, other: Checkout) -> None:
    """Assert that two checkouts hold the same lock and outputs, and that no temporary file is left in the first."""
    checkout.run("dvc", "repro")
    assert (checkout.folder / "dvc.lock").read_bytes() == (other.folder / "dvc.lock").read_bytes()
    for made in ("data", "metrics", "report"):
        assert files(checkout.folder / made) == files(other.folder / made)
    assert [path for path in checkout.folder.rglob("*.partial") if ".dvc" not in path.parts] == []


@pytest.mark.exhaustive
def test_kill_9_while_the_sample_is_drawn(pristine: Checkout, killed: Killed, tmp_path: Path) -> None:
    """With 24 images in place of 480; killed, then drawn again, they are those of a draw without a kill."""
    drawn = []
    for name in ("killed", "not"):
        checkout = pristine.clone(tmp_path / name / "cleanset")
        plan = checkout.folder / "sample" / "plan.py"
        text = plan.read_text()
        plan.write_text(f"{text}\n\n_all = plans\n\n\ndef plans() -> list[Plan]:\n    return _all()[::20]\n")
        if name == "killed":
            for moment in ("before", "after"):
                killed(checkout, DRAW, moment)
        checkout.run("dvc", "repro", "--single-item", DRAW)
        drawn.append(files(checkout.folder / "data") | {"raw.md5": (checkout.folder / "raw.md5").read_text()})
        assert [path for path in checkout.folder.rglob("*.partial") if ".dvc" not in path.parts] == []
    assert drawn[0] == drawn[1]
    assert len((checkout.folder / "sample" / "truth.json").read_text().splitlines()) == 24 + 2


@pytest.mark.exhaustive
def test_kill_9_of_a_whole_repro_changes_nothing(small: Checkout, pristine: Checkout, tmp_path: Path) -> None:
    """DVC and the stage are killed together, in the middle of scoring: when the first finished part is there."""
    checkout = small_checkout(pristine, tmp_path / "cleanset", **INSTALLED)
    repro = subprocess.Popen(
        ["dvc", "repro"], cwd=checkout.folder, env=checkout.environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    while not list((checkout.folder / "data").glob("scores/*.partial-shards/*")):
        assert repro.poll() is None
        time.sleep(0.002)
    os.killpg(repro.pid, signal.SIGKILL)
    repro.wait()
    assert not (checkout.folder / "data" / "scores" / "standard.json").exists()
    assert_same(Checkout(checkout.folder), small)


@pytest.mark.long
def test_make_edition_makes_a_third_one(pristine: Checkout, tmp_path: Path) -> None:
    """Inside the checkout it is a DVC subproject; both its parts and the root's commands work."""
    checkout = pristine.clone(tmp_path / "cleanset")
    checkout.run("cleanset", "edition", "editions/mine")
    assert "root: ../..\n" in (checkout.folder / "editions" / "mine" / "params.yaml").read_text()
    done = checkout.run("dvc", "repro", check=False, cwd="editions/mine")
    assert "data/raw/ILSVRC2012_img_val.tar: missing" in done.stderr
    assert checkout.run("dvc", "stage", "list").stdout.count("preprocess") == 1
    again = checkout.run("cleanset", "edition", "editions/mine", check=False)
    assert again.returncode == 1
    assert again.stderr == "error: editions/mine: exists already; expected a new or empty folder\n"
    shutil.rmtree(checkout.folder / "editions")
