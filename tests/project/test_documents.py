"""The commands of README and docs/ run, and their examples are valid."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml
from dvc.dirs import site_cache_dir

from cleanset.classes import imagenet
from cleanset.edition.params import Model, ReviewPolicy
from cleanset.review.file_format import parse_reviews
from cleanset.review.page.shares import share_in_team
from cleanset.sets.published import source_images as digests
from cleanset.sets.published.image_set import select_images
from cleanset.sets.published.lists import PublishedChoice
from cleanset.tutorial import write_tutorial
from tests.checkouts import Checkout
from tests.documents import all_blocks, block, block_of, blocks, pages, shell
from tests.extras import environment_with
from tests.sets.published.drawn_archive import draw_archive

BUILT = {"keras256": (480, 224, 224, 3), "standard": (34, 160, 160, 3)}
COMPARE = "cleanset compare data/scores/standard.parquet data/scores/norm_robust.parquet --edition . --model standard"
ATTACK = (
    "cleanset attacks evaluate standard --model docs.defences:shattered --attacks docs/defences.yaml "
    "--out build/shattered"
)
COMPARE_RESULTS = "cleanset evaluate standard --model standard --out build/one"
EVALUATE = "cleanset evaluate standard --model standard --model norm_robust --model corruption_robust"
HUB = "cleanset evaluate standard --model corruption_robust --hub build/model_card.md"
INSTALL = 'pip install "cleanset @ git+https://…/cleanset.git"'
LOOK = "cleanset look data/export/standard --out build/look"
PUBLISH = 'ssh-keygen -q -t ed25519 -N "" -f build/key'
RELEASE = "cleanset publish . build/release"
RECOMPUTE = "python src/cleanset/sets/from_verdicts.py build/release/cleanset-1.0.0"
STUDY = "cleanset study analyse imagenet/published/ratings/advpp.csv"
FETCH = "cleanset fetch https://…/cleanset.git standard --out standard"
ARCHIVE = "ILSVRC2012_img_val.tar"
NOT_RUN = {
    "cleanset hints photographs --custom-hint my_hints:Glare": "tests/api/test_pages.py runs the hint",
    "cleanset evaluate standard --model standard --custom-measure my_measures:worst_class": ""
    "tests/api/test_pages.py runs the measure",
    "cleanset attacks evaluate standard --model standard --attacks pgd,my_attack:Steps --eps 2/255 --out out": ""
    "tests/api/test_pages.py runs the attack",
    "cleanset plan": "tests/planning/test_edition.py plans the sample and the ImageNet edition",
    "$ cleanset plan studies/attacks": "shows the ImageNet edition's plan: "
    "tests/studies/attacks/test_planning.py plans a small study",
    "cleanset plan evaluate standard --model timm:resnet18 --measure": "downloads weights: "
    "tests/studies/test_plan_commands.py starts a small model",
    "cleanset plan studies/training --grid ex2 --budget-hours 48 --start": "trains for days: "
    "tests/studies/training/test_project.py plans grids in miniature",
    "cleanset reproduce": "tests/reproduce/test_papers.py runs it in this process",
    "cleanset evaluate val --model timm:resnet50.a1_in1k --factors annotations/imagenet_x_val_top_factor.jsonl": ""
    "reads files of another project: tests/evaluation/test_factors.py writes such",
    "cleanset selection robustbench --images ILSVRC2012_img_val.tar --out robustbench-5000": "reads ImageNet's "
    "archive: tests/sets/published/test_selections.py draws one",
    "cleanset fetch https://…/cleanset-standard-1.0.0.tar --out standard": "nothing is published yet: "
    "tests/sets/fetching/test_releases.py serves a release",
    "make review REVIEWER=ada": "serves a page until it is stopped: tests/review/page starts the server",
    "cleanset review serve --reviewer ana --reviewer ben --reviewer cy --reviewer board --host 0.0.0.0": "serves "
    "a page: tests/review/page/test_team.py starts it, and reviews",
    "cleanset review serve --reviewer ada": "serves a page until it is stopped: tests/project/test_own_images.py "
    "starts it",
    "cleanset review serve --reviewer ada --share 1/3": "serves a page: tests/review/page/test_sharing.py starts it",
    "cleanset review audit 281 --model norm_robust --reviewer cy": "serves a page until it is stopped: "
    "tests/review/page/test_gold_and_audit.py looks at the draws",
    "cleanset review gold data/gold --planted 50 --published 50 --settled 20 --clean 30": "needs an edition with such "
    "reviews: tests/review/page/test_gold_and_audit.py makes gold items of the sample",
    "cleanset robustness evaluate scooter --model timm:resnet50.a1_in1k \\": "downloads weights: "
    "test_a_table_of_robustness runs it for the sample's set and model",
    "cleanset edition mine --images photos": "serves a page at its end: test_a_set_of_ones_own_images runs the rest",
    "cleanset status && dvc repro": "tests/project/test_own_images.py changes images, and tests/edition runs status",
    "cleanset edition mine --images photos --images-per-class all": "needs photos: tests/sets/test_all_images.py makes "
    "such an edition of drawn images, and its release",
    "cleanset edition --accept": "needs an edition whose images have changed: tests/review/test_accepted.py has some",
    "cleanset review labels": "needs scores that contradict labels: tests/review/test_labels.py has some",
    "make test                       # lint, types, and the tests that take up to a second: 6 minutes on two cores": (
        "takes hours in all; tests/project/test_house.py checks the recipes"
    ),
    "cleanset review calibration": "needs answers to gold items: tests/review/page gives some",
    "cleanset models --add mine=timm:resnet50 --weights data/weights/mine.safetensors": "needs weights: "
    "tests/edition/test_adding_a_model.py adds a small model",
    'python -c \'import torch; from safetensors.torch import save_file; save_file(torch.load("mine.pt", "cpu", '
    'weights_only=False)["state_dict"], "mine.safetensors")\'': "tests/scoring/test_checkpoints.py runs it",
    "cleanset evaluate build/published/selection.csv --edition imagenet --role standard "
    "--model timm:resnet50.a1_in1k": "needs ImageNet's images: tests/evaluation/test_image_lists.py reads such a list",
    "cleanset evaluate imagenet-r --restricted --model timm:resnet50.a1_in1k "
    "--model torchvision:resnet50.IMAGENET1K_V2": "needs ImageNet-R: tests/evaluation/test_restricted.py has a folder",
    'pip install "cleanset[tutorial] @ git+https://…/cleanset.git"': "another address: test_tutorial.py hides what the "
    "extra does not bring",
    'pip install "cleanset[evaluate] @ git+https://…/cleanset.git"': "another address; test_extras.py checks the extra",
    'pip install "cleanset[review,text] @ git+https://…/cleanset.git"': "downloads RapidOCR: "
    "requirements.txt has what tests/review/hints runs",
    "export RAY_AUTH_MODE=token": "needs two machines: make test-ray starts both as two network namespaces",
    "export RAY_ADDRESS=192.0.2.1:6379": "needs two machines: make test-ray scores on such a cluster",
    'pip install "cleanset[generate] @ git+https://…/cleanset.git"': "downloads diffusers: make test-generate runs it "
    "with a pipeline of its own",
    'pip install "cleanset[build,review] @ git+https://…/cleanset.git" datasets': "another address; test_extras.py "
    "checks the extras",
    "cleanset study plan --set data/export/standard --attacked attacked --out build/study": "needs attacked images: "
    "tests/study draws some",
    "cleanset study analyse answers-*.csv --plan build/study --out build/analysis": "needs answers: "
    "tests/study gives some, in a browser too",
    "cleanset study serve --plan build/study": "serves a page until it is stopped: tests/study starts it",
    "cleanset study pilot --plan build/study --out build/pilot --people 10 --settings wage=12": "needs a plan, and ten "
    "minutes of a browser: tests/studies/realness/test_pilot.py tries four people",
    "cd imagenet-published": "needs ImageNet's images: tests/stages/test_list_models.py runs these stages on ten",
    "cleanset verify scooter": "docs/published_set.md: README's same line runs on a drawn archive, and "
    "tests/evaluation evaluates models",
    "make published": "docs/published_lists.md: tests/sets/published runs bench/replay.py, which is all that it does",
    "cleanset published --images ILSVRC2012_img_val.tar --out scooter": "docs/published_set.md: README's same line "
    "runs on a drawn archive",
    "git merge theirs": "needs two clones: tests/edition/test_two_clones.py merges some",
    "cleanset hints photographs": "tests/report/test_hints.py looks at drawn images, and runs the command",
    'pip install "cleanset @ git+https://…/cleanset.git"': "another address; test_wheel.py installs a wheel",
    "cleanset edition --remote https://your.server/dvc": "needs a server: tests/edition/test_remote.py has one",
    "pip install torch==2.11.0 torchvision==0.26.0 --index-url https://download.pytorch.org/whl/cpu": "downloads torch",
    "conda create --name cleanset python=3.11 git cxx-compiler": "needs conda, which is not a program of pip",
    'pip wheel --wheel-dir wheels "cleanset[build] @ git+https://…/cleanset.git"': "downloads all requirements",
    "pip uninstall cleanset": "removes what the tests run",
    "cleanset evaluate standard --model norm_robust --labels ~/labels": "needs the studies' files: "
    "tests/evaluation/test_multilabel.py has small ones",
    "cleanset labels": "needs the studies' files: tests/evaluation/test_labels.py has small ones",
    "cleanset labels build/published/selection.csv --role norm_robust --sources ~/labels": "needs the studies' files",
    "cleanset fetch https://…/cats.git --out cats": "an address of nobody: tests/sets/fetching has servers",
    "dvc remote add --global cats s3://cats/store": "changes the user's settings: tests/sets/fetching/test_remotes.py "
    "has others",
    "rm dvc.lock": "needs a merge that has gone wrong: tests/edition/test_two_clones.py has some",
    "cleanset doctor": "needs a change at one instant: tests/edition/test_stage_inputs.py makes it",
}
"""The blocks marked console, and why no test runs them."""
SHA256 = "0123456789abcdef" * 4


@pytest.fixture(scope="module")
def checkout(built: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A clone with DVC's cache filled and this environment as its .venv."""
    return built.clone_with_data(tmp_path_factory.mktemp("readme") / "cleanset").with_environment()


def asked_for(repository: Path) -> set[str]:
    """The second arguments of all calls of `block` in the tests; a name stands for the module's text of that name."""
    found = set()
    for path in repository.glob("tests/**/*.py"):
        tree = ast.parse(path.read_text())
        named = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "block":
                first = node.args[1]
                found.add(str(first.value if isinstance(first, ast.Constant) else named[first.id]))  # type: ignore[attr-defined]
    return found


@pytest.mark.long
def test_a_test_runs_every_block_of_commands(repository: Path) -> None:
    """A block is marked sh, or console if it cannot run unchanged; NOT_RUN then has the reason."""
    commands = [each for each in all_blocks(repository) if each.language == "sh"]
    asked = asked_for(repository)
    run = {(each, first) for each in commands for first in asked if each.text.startswith(f"{first}\n")}
    assert {each.first_line for each in commands} - {each.first_line for each, _ in run} == set()
    assert asked - {first for _, first in run} == set()
    others = {each.first_line for each in all_blocks(repository) if each.language == "console"}
    assert others == set(NOT_RUN)


def test_every_other_block_is_checked(repository: Path) -> None:
    """By language: configurations, examples and trees have tests of their own here and in tests/remotes."""
    found = Counter((each.page, each.language) for each in all_blocks(repository))
    assert {kind: count for kind, count in found.items() if kind[1] not in ("sh", "console")} == {
        ("README.md", "text"): 2,
        ("README.md", "python"): 1,
        ("README.md", "bibtex"): 1,
        ("docs/architecture.md", ""): 1,
        ("docs/contest.md", "yaml"): 1,
        ("docs/contest.md", "python"): 1,
        ("docs/evaluate.md", "csv"): 1,
        # tests/api/test_pages.py
        ("docs/extending.md", "python"): 4,
        ("docs/extending.md", "yaml"): 4,
        ("docs/formats.md", ""): 1,
        ("docs/gradient_masking.md", "text"): 1,
        ("docs/install.md", "dockerfile"): 1,
        ("docs/labels.md", "yaml"): 2,
        ("docs/machines.md", "bash"): 1,
        ("docs/models.md", "yaml"): 2,
        ("docs/own_images.md", "csv"): 3,
        ("docs/own_images.md", "yaml"): 2,
        ("docs/own_images.md", "python"): 1,
        ("docs/own_model.md", "python"): 1,
        ("docs/predictions.md", "python"): 1,
        ("docs/publish.md", "nginx"): 1,
        ("docs/published_set.md", "text"): 1,
        ("docs/python.md", "python"): 7,
        ("docs/reference/python.md", "python"): 14,
        ("docs/reference/attacks.md", "yaml"): 1,
        ("docs/reference/review.md", "yaml"): 1,
        ("docs/reference/study_params.md", "yaml"): 1,
        ("docs/reference/training.md", "yaml"): 2,
        ("docs/review_team.md", "yaml"): 1,
        ("docs/review_team.md", "text"): 2,
        ("docs/robustness.md", "yaml"): 1,
        ("docs/scenarios.md", "yaml"): 1,
        ("docs/study_people.md", "nginx"): 1,
        ("docs/training.md", "yaml"): 3,
        ("docs/training.md", "python"): 1,
        ("docs/training_scenarios.md", "yaml"): 2,
        ("docs/tutorial.md", "bash"): 7,
        ("docs/tutorial.md", "python"): 5,
        ("docs/use.md", "python"): 3,
        ("docs/wrong_labels.md", "yaml"): 1,
        ("docs/wrong_labels.md", "text"): 1,
        ("docs/wrong_labels.md", "python"): 1,
    }


def test_the_readme_is_short(repository: Path) -> None:
    assert len((repository / "README.md").read_text().splitlines()) <= 150


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub and MkDocs make it."""
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower())


def test_every_link_leads_somewhere(repository: Path) -> None:
    """To a file in the repository, and to a heading in it; so do images."""
    for page in (*pages(repository), "CONTRIBUTING.md", "CHANGELOG.md"):
        text = re.sub(r"(?ms)^```.*?^```$", "", (repository / page).read_text())
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if link.startswith("https://"):
                continue
            name, _, anchor = link.partition("#")
            target = (repository / page).parent / name if name else repository / page
            assert target.is_file(), f"{page}: {link}"
            if anchor:
                headings = re.findall(r"(?m)^#+ (.+)$", target.read_text())
                assert anchor in map(slug, headings), f"{page}: {link}"


def install(repository: Path) -> str:
    """The README's first line, with another address, and without what pip need not bring here."""
    line = block(repository, INSTALL).splitlines()[0].replace("https://…/", "https://example.org/")
    assert line.startswith("pip install ")
    options = "--quiet --no-deps --no-build-isolation --target packages "
    return line.replace("pip install ", f"pip install {options}", 1) + "\n"


def installed_at(folder: Path) -> dict[str, str]:
    """The environment in which the packages installed in a folder are used."""
    programs = (folder / "packages" / "bin", Path(sys.prefix) / "bin", os.environ["PATH"])
    return {
        "PYTHONPATH": str(folder / "packages"), "PATH": os.pathsep.join(map(str, programs)),
        "CLEANSET_CACHE": str(folder / "cache"), "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }  # fmt: skip


def at_address(folder: Path) -> dict[str, str]:
    """Variables with which git finds a repository of the disk at the address of the documents."""
    return {
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"url.file://{folder}.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://example.org/cleanset.git",
    }  # fmt: skip


@pytest.fixture(scope="module")
def installed(repository: Path, pristine: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which pip has installed what the README's first line says."""
    folder = tmp_path_factory.mktemp("installed")
    done = shell(pristine, install(repository), folder, **installed_at(folder), **at_address(pristine.folder))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.long
def test_the_first_blocks_of_the_readme(repository: Path, installed: Path, pristine: Checkout, tmp_path: Path) -> None:
    """With a drawn archive in place of ImageNet's, whose table of digests declares its MD5; as installed by pip."""
    archive = draw_archive(tmp_path / ARCHIVE, select_images(PublishedChoice()).candidates["image_id"])
    digests.run(archive, tmp_path / "digests.csv")
    pip, command = block(repository, INSTALL).splitlines()
    assert pip == INSTALL
    (load,) = blocks(repository, "python", "README.md")
    shown = "print(repr(images), image.mode, class_index, record['image_id'], cleanset.__file__)\n"
    look = block(repository, "cleanset verify scooter")
    lines = f"{command} --digests digests.csv\n{look}python - <<'END'\n{load}{shown}END\ncleanset cite\n"
    done = shell(pristine, lines, tmp_path, **installed_at(installed))
    assert done.returncode == 0, done.stderr
    printed, _, cited = done.stdout.partition("@misc{cleanset,")
    written, left_out, _, verified, *looked, loaded = printed.splitlines()
    page = (repository / "docs" / "published_set.md").read_text()
    assert f"{written}\n{left_out}\n{verified}\n" in page
    assert looked[0] == "scooter: 2,857 of 2,857 images are good"
    assert looked[-1] == "scooter-look/index.html: 2,857 images; open it in a browser"
    assert loaded.startswith("ImageSet(norm_robust: 2,857 images of 989 classes, 'scooter') Made from an archive with ")
    assert loaded.endswith(f" RGB 0 ILSVRC2012_val_00024327 {installed}/packages/cleanset/__init__.py")
    (bibtex,) = blocks(repository, "bibtex", "README.md")
    assert bibtex in cited


@pytest.mark.long
def test_using_a_published_set(repository: Path, installed: Path, published: Checkout, tmp_path: Path) -> None:
    """The lines of docs/use.md, verbatim but for the address, with the libraries of the core alone, without DVC."""
    lines = block(repository, FETCH).replace("https://…/", "https://example.org/")
    (load,) = blocks(repository, "python", "README.md")
    load = load.replace('"norm_robust", "scooter"', '"standard", "standard"')
    shown = "print(len(images), image.mode, class_index, record['rank'], cleanset.__file__)\n"
    variables = installed_at(installed) | at_address(published.folder)
    libraries = environment_with(repository, tmp_path / "site", network=False)
    variables["PYTHONPATH"] = f"{tmp_path / 'site'}:{variables['PYTHONPATH']}"
    done = shell(published, f"{lines}python - <<'END'\n{load}{shown}END\n", tmp_path, **(libraries | variables))
    assert done.returncode == 0, done.stderr
    fetched, trial, verified, again, loaded = done.stdout.splitlines()
    assert fetched.startswith("standard: 34 images of model standard at commit ")
    assert verified == "standard: 34 of 34 images are good"
    assert trial == again
    assert trial.endswith("which is not ImageNet's official one: a trial, not for a study.")
    assert loaded == f"34 RGB 1 1 {installed}/packages/cleanset/__init__.py"


@pytest.mark.long
def test_a_set_of_ones_own_images(repository: Path, tmp_path: Path, checkout: Checkout) -> None:
    """The README's command on the tutorial's photographs prints what the README shows."""
    write_tutorial(tmp_path / "eight")
    lines = block_of(repository, "console", "cleanset edition mine --images photos", "README.md").splitlines()
    done = shell(checkout, f"{lines[0]} --no-git\n", tmp_path / "eight", COLUMNS="200")
    assert done.returncode == 0, done.stderr
    _, shown = blocks(repository, "text", "README.md")
    assert shown in done.stdout


@pytest.mark.exhaustive
def test_a_table_of_robustness(repository: Path, checkout: Checkout) -> None:
    """The row of the README, by its command with the sample's set and model."""
    line = block_of(repository, "console", "cleanset robustness evaluate scooter", "README.md")
    command = (
        line.replace("scooter", "standard").replace("timm:resnet50.a1_in1k", "norm_robust").replace(" r ", " build/r ")
    )
    done = shell(checkout, command)
    assert done.returncode == 0, done.stderr
    head, _, row = done.stdout.splitlines()[:3]
    found = dict(zip(cells(head), cells(row), strict=True))
    text = (repository / "README.md").read_text()
    titles, values = re.findall(r"(?m)^\| model \|(.*)\|$\n.*\n\| norm_robust \|(.*)\|$", text)[0]
    assert dict(zip(cells(titles), cells(values), strict=True)).items() <= found.items()


def cells(row: str) -> list[str]:
    """The cells of a row of a Markdown table."""
    return [each.strip() for each in row.strip("| ").split("|")]


@pytest.mark.long
def test_make_repro_ends_with_the_metrics(repository: Path, checkout: Checkout, tmp_path: Path) -> None:
    """DVC writes nothing into the home folder; cleanset keeps thumbnails there."""
    clone, enter, repro, test = block(repository, "git clone https://…/cleanset.git").splitlines()
    assert (clone, enter, test) == ("git clone https://…/cleanset.git", "cd cleanset", "make test")  # what runs here
    done = shell(checkout, repro, HOME=str(tmp_path), DVC_SITE_CACHE_DIR="")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^metrics/totals/images.json +- +\d+ +\d+ +\d+ *$", done.stdout, re.MULTILINE)
    written = {path.relative_to(tmp_path).parts[:2] for path in tmp_path.rglob("*") if path.is_file()}
    assert written <= {(".cache", "cleanset")}
    assert (checkout.folder / ".dvc" / "tmp" / "site").is_dir()


def test_where_plain_dvc_keeps_its_site_cache(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DVC_SITE_CACHE_DIR", raising=False)
    text = (repository / "docs" / "curate.md").read_text()
    assert "site cache" in text
    assert f"`{site_cache_dir()}`" in text


def test_what_the_tests_need_is_reported(repository: Path) -> None:
    """The programs that CI installs for them are those that the page on testing says tests are skipped without."""
    (packages,) = re.findall('(?m)^packages="(.*)"$', (repository / ".ci" / "run").read_text())
    assert packages.split() == [
        "bubblewrap", "chromium", "chromium-headless-shell", "iproute2", "locales", "nginx-light", "openssh-client",
        "openssh-server", "runsc",
    ]  # fmt: skip
    page = " ".join((repository / "docs" / "testing.md").read_text().split())
    (sentence,) = re.findall("the tests that it skips because (.+?) is missing", page)
    assert sentence == (
        "Chromium, nginx, sshd, bubblewrap, gVisor, iproute2, a German locale, a GPU or a folder of photographs"
    )


@pytest.mark.long
def test_the_commands_after_activation(repository: Path, checkout: Checkout) -> None:
    done = shell(checkout, "set -o pipefail\n" + block(repository, ". .venv/bin/activate"))
    assert done.returncode == 0, done.stderr
    assert "Run one stage of dvc.yaml" in done.stdout
    assert "metrics/classes/n02782093.json" in done.stdout


@pytest.mark.long
def test_the_way_to_imagenet(repository: Path, checkout: Checkout, tmp_path: Path) -> None:
    """Without the archives it ends with one line that reports it."""
    done = shell(checkout, block(repository, "mkdir -p imagenet/data/raw"), ARCHIVES=str(tmp_path))
    assert done.returncode != 0
    assert f"error: data/raw/ILSVRC2012_img_val.tar: broken symlink to {tmp_path}" in done.stderr


def test_an_edition_of_ones_own(repository: Path, checkout: Checkout) -> None:
    done = shell(checkout, block(repository, "make edition DIR=editions/mine"))
    assert done.returncode == 0, done.stderr
    assert (checkout.folder / "editions" / "mine" / "params.yaml").is_file()


@pytest.mark.long
def test_what_is_left_to_review(repository: Path, checkout: Checkout) -> None:
    done = shell(checkout, block(repository, "python - <<'END'"))
    assert done.returncode == 0, done.stderr
    assert re.search(r"^ *ILSVRC2012_val_00000242 +301 +[0-9a-f]{64}$", done.stdout, re.MULTILINE)
    assert re.search(r"^ *all models +10 +1 +1 +0 +1 +1 *$", done.stdout, re.MULTILINE)


@pytest.mark.long
def test_comparing(repository: Path, checkout: Checkout) -> None:
    scores, exports = block(repository, COMPARE).splitlines()
    of_scores = shell(checkout, scores)
    of_exports = shell(checkout, exports)
    assert (of_scores.returncode, of_scores.stderr) == (of_exports.returncode, of_exports.stderr) == (1, "")
    assert re.search(r"^standard: \d+$", of_scores.stdout, re.MULTILINE)
    assert json.loads(of_exports.stdout)["same"] is False


@pytest.mark.long
def test_using_a_set(repository: Path, checkout: Checkout) -> None:
    done = shell(checkout, block(repository, "cleanset verify data/export/standard"), COLUMNS="80")
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "data/export/standard: 34 of 34 images are good\n"
        "Made from an archive with the MD5 8ec2729c842175415c46dd71ada3505a, which is not ImageNet's official one: a "
        "trial, not for a study.\n"
        "build/rebuilt: 34 images; source, file and pixels of each are those of the manifest\n"
        "build/shards: 34 images in shards: 1\n",
        "",
    )
    done = shell(checkout, block(repository, LOOK), COLUMNS="80")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "build/look/index.html: 34 images; open it in a browser\n"
    done = shell(checkout, block(repository, PUBLISH), COLUMNS="80")
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0] == "build/signed/cleanset-standard-1.0.0: 34 images, published without its images, signed"
    assert lines[2].startswith(
        "build/signed/cleanset-standard-1.0.0.tar: published without its 34 images; signed: standard 1.0.0 "
    )
    assert lines[-1] == "otherwise listed       0"
    done = shell(checkout, block(repository, RELEASE) + block(repository, RECOMPUTE), COLUMNS="80")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[2:] == ["build/release/cleanset-1.0.0: problems: 0"] * 2
    load, others, indices = blocks(repository, "python", "docs/use.md")
    shown = (
        "print(len(images), image.mode, class_index, record['rank'], len(table))\n"
        "print(names[labels[0]], rows.features['label'].names[rows[0]['label']])\n"
        "print([label for _, label in folders] == labels)\n"
        "print(len(folders), len(folders.classes), len(rows), rows[0]['image_id'], len(list(shard)))\n"
    )
    offline = {"HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(checkout.folder / "build" / "hf")}
    done = shell(checkout, f"python - <<'END'\n{load}{others}{indices}{shown}END\n", **offline)
    assert done.stdout == "34 RGB 1 1 34\ngoldfish goldfish\nTrue\n34 12 34 ILSVRC2012_val_00000065 34\n", done.stderr
    shutil.rmtree(checkout.folder / "build")


@pytest.mark.long
def test_measuring_models(repository: Path, checkout: Checkout) -> None:
    done = shell(checkout, block(repository, EVALUATE), COLUMNS="80")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[0] == "standard: 34 images, 12 classes"
    assert lines[1] == "SHA-256 of every image as in the manifest"
    own, tiers = [line for line in lines if line.startswith("1 standard ")]
    assert tiers == "1 standard 100.0 100.0 100.0"
    assert own.startswith("1 standard 100.00 % (89.85–100.00) 100.00 ")
    written = sorted(path.name for path in (checkout.folder / "build" / "evaluated").iterdir())
    name = "sample_weights_standard.safetensors"
    assert written == ["results.json", f"{name}.json", f"{name}.parquet"]
    shutil.rmtree(checkout.folder / "build")


DEFENCES = ("rounded", "shattered", "noisy", "hashed_noise", "turned_around", "scaled")
HONEST = ("standard", "norm_robust", "corruption_robust")


@pytest.mark.exhaustive
def test_a_defence_in_small(repository: Path, checkout: Checkout) -> None:
    """With 3 images in place of 12; the block's model gives the first sign of its row in the table."""
    params = checkout.folder / "docs" / "defences.yaml"
    text = params.read_text()
    params.write_text(text.replace("12", "3"))
    done = shell(checkout, block(repository, ATTACK))
    params.write_text(text)
    assert done.returncode == 0, done.stderr
    (model,) = json.loads((checkout.folder / "build" / "shattered" / "attack_results.json").read_text())["models"]
    (threat,) = model["threat_models"]
    # transfer breaks all three, so that none is left whose gradient would have to be trusted
    assert threat["robust_accuracy"] == {"images": 3, "value": 0.0, "interval": [0.0, 0.561497032]}
    assert {name: each["success"]["value"] for name, each in model["attacks"].items()} == {
        "pgd": 0.0, "square": 0.0, "transfer": 1.0,
    }  # fmt: skip
    (row,) = re.findall(r"(?m)^\| `shattered` .*$", (repository / "docs" / "gradient_masking.md").read_text())
    assert [each["sign"] for each in model["warnings"]["warnings"]] == re.findall(r"`(\w+)`", row)[1:2]
    shutil.rmtree(checkout.folder / "build" / "shattered")


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [*DEFENCES, *HONEST])
def test_defences_and_honest_models(name: str, repository: Path, checkout: Checkout) -> None:
    """The row of the table is what the block gives, for each model in place of the one that it names."""
    command = block(repository, ATTACK).replace("build/shattered", f"build/{name}")
    # an honest model by its role: `transfer` knows then that these weights are its own
    model = name if name in HONEST else f"docs.defences:{name}"
    shell(checkout, command.replace("docs.defences:shattered", model))
    (model,) = json.loads((checkout.folder / "build" / name / "attack_results.json").read_text())["models"]
    success = [f"{each['success']['value']:.2f}" for each in model["attacks"].values()]
    signs = ", ".join(f"`{each['sign']}`" for each in model["warnings"]["warnings"]) or "none"
    (threat,) = model["threat_models"]
    ends = [f"{threat[end]['value']:.2f}" for end in ("robust_low", "robust_high")]
    robust = ends[0] if threat["robust_accuracy"]["value"] is not None else " to ".join(ends)
    row = f"| `{name}` | {' | '.join(success)} | {robust} | {signs} |"
    assert row in (repository / "docs" / "gradient_masking.md").read_text().splitlines()


@pytest.mark.exhaustive
def test_a_defence_that_gives_probabilities_is_refused(repository: Path, checkout: Checkout) -> None:
    done = shell(checkout, block(repository, ATTACK).replace("shattered", "one_hot"))
    assert done.returncode == 1
    assert "docs.defences:one_hot: the network gives probabilities" in done.stderr


@pytest.mark.long
def test_a_model_of_ones_own(repository: Path, checkout: Checkout) -> None:
    """The module and the command of docs/own_model.md; the network is that of the role."""
    (module,) = blocks(repository, "python", "docs/own_model.md")
    (checkout.folder / "my_model.py").write_text(module)
    done = shell(checkout, block(repository, "cleanset evaluate standard --model my_model:make_model"), COLUMNS="120")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert [line for line in lines if line.startswith("1 my_model:make_model 100.00 % (89.85–100.00) ")]
    (checkout.folder / "my_model.py").unlink()


@pytest.mark.long
def test_comparing_results(repository: Path, checkout: Checkout) -> None:
    done = shell(checkout, block(repository, COMPARE_RESULTS), COLUMNS="80")
    assert done.returncode == 0, done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    table = lines[lines.index("# model accuracy top-5 ECE") :]
    assert [line[:22] for line in table[1:4:2]] == ["1 standard 100.00 % 10", "2 norm_robust 100.00 %"]
    assert any(line.startswith("precisions differ: float64 for standard (build/one); float32 for") for line in table)
    card = shell(checkout, block(repository, HUB))
    assert (card.returncode, card.stderr) == (0, "")
    assert (checkout.folder / "build" / "model_card.md").read_text().startswith("---\nmodel-index:\n")
    shutil.rmtree(checkout.folder / "build")


PREDICTIONS = "cleanset evaluate standard --predictions mine=predictions.csv --model norm_robust --report build/page"


@pytest.mark.long
def test_predictions_made_elsewhere(repository: Path, checkout: Checkout) -> None:
    """The network in float32 predicts what the model does in float64."""
    (program,) = blocks(repository, "python", "docs/predictions.md")
    done = checkout.run("python", "-c", program)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert [line for line in lines if line.startswith("1 mine 100.00 % (89.85–100.00) 100.00 ")]
    done = shell(checkout, block(repository, PREDICTIONS), COLUMNS="80")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert [line for line in lines if line.startswith("2 mine 100.00 % (89.85–100.00) – ")]
    # the network has the confidences of the model that chose the images
    assert (
        lines[lines.index("mine chose these images by its own correct predictions: nothing is tested") + 1]
        == "against it"
    )
    assert not [line for line in lines if line.startswith("pair ")]
    assert [path.name for path in (checkout.folder / "build" / "page").iterdir()] == ["index.html"]
    (checkout.folder / "predictions.csv").unlink()
    shutil.rmtree(checkout.folder / "build")


@pytest.mark.long
def test_arrays(repository: Path, checkout: Checkout) -> None:
    done = shell(checkout, block(repository, "cleanset arrays --preprocessing keras256 build/keras256"))
    assert done.returncode == 0, done.stderr
    shapes = {name: np.load(checkout.folder / "build" / name / "images.npy", mmap_mode="r").shape for name in BUILT}
    assert shapes == BUILT
    shutil.rmtree(checkout.folder / "build")


@pytest.mark.exhaustive
def test_a_published_study_of_ratings(repository: Path, checkout: Checkout) -> None:
    """The figures in docs/study.md."""
    done = shell(checkout, block(repository, STUDY), COLUMNS="80")
    assert (done.returncode, done.stderr) == (0, "")
    assert "50 people, 1,979 images, 5,000 ratings" in done.stdout
    assert "modified - real: -1.115 (95 % -1.300 to -0.930), se 0.093, df 76.7" in done.stdout
    assert "174 of 2,062 real images with 5 ratings or more have a negative majority" in done.stdout
    assert (checkout.folder / "build" / "published_ratings" / "look_again.csv").is_file()
    shutil.rmtree(checkout.folder / "build")


@pytest.mark.parametrize(
    ("page", "metrics", "count"),
    [
        ("robustness.md", "metrics/{}.json", 5),
        ("attacks.md", "attack_metrics/{}/success.json", 5),
        ("training.md", "metrics/{}.json", 4),
    ],
)
def test_the_figures_of_the_sample(page: str, metrics: str, count: int, repository: Path) -> None:
    """The first table of models on a study's page has the committed metrics, a column for each model."""
    lines = re.findall(r"(?m)^\|.*\|$", (repository / "docs" / page).read_text())
    start = next(place for place, line in enumerate(lines) if re.match(r"\| (metric|attack) \| `", line))
    head, _, *rows = lines[start : start + count + 2]
    roles = re.findall(r"`(\w+)`", head)
    for name, *cells in ([cell.strip() for cell in row.strip("|").split("|")] for row in rows):
        (path,) = repository.glob(f"studies/*/{metrics.format(name.strip('`'))}")
        digits = len(cells[0].partition(".")[2])
        assert cells == [f"{json.loads(path.read_text())[role]:.{digits}f}" for role in roles], name


HINT_RATES = "tests/project/test_hint_rates.py::test_the_table_of_rates"
OF_MODELS = "tests/project/test_documents.py::test_the_figures_of_the_sample"
REPLAYED = "tests/sets/published/test_replay.py::test_the_page_has_the_numbers"
DEFENDED = "tests/project/test_documents.py::test_defences_and_honest_models"
NOT_COMPARED = {
    "docs/beside_authors.md": "the authors' programs are not part of the project: `docs/data/authors.csv`",
    "docs/formats.md | file | number in |": "numbers of formats, not measured ones",
    "docs/labels.md | `label`": "needs the studies' files, which are not part of the project",
    "docs/other_tools.md": "needs other tools and photographs",
}
TABLES = {
    "README.md | model | error, clean |": (
        "cleanset robustness evaluate standard --model",
        "tests/project/test_documents.py::test_a_table_of_robustness",
    ),
    "README.md | each side cropped by |": (
        "make bench NAME=hints",
        "tests/project/test_hint_rates.py::test_the_table_next_to_other_tools",
    ),
    "docs/attacks.md | attack |": ("make robustness", OF_MODELS),
    "docs/gradient_masking.md | model | `pgd` |": (
        "cleanset attacks evaluate standard --model docs.defences:",
        DEFENDED,
    ),
    "docs/labels.md | study |": (
        "cleanset labels build/published/selection.csv",
        "tests/evaluation/test_labels.py::test_the_published_images_in_the_docs",
    ),
    "docs/other_tools.md | cropped by |": (
        "make bench NAME=hints",
        "tests/project/test_hint_rates.py::test_the_table_next_to_other_tools",
    ),
    "docs/study_analysis.md | real images |": (
        "make bench NAME=estimators",
        "tests/project/test_documents.py::test_the_coverage_of_studies_is_the_benchs",
    ),
    "docs/published_lists.md | set of `norm_robust` |": ("make published", REPLAYED),
    "docs/published_lists.md | model | at least |": ("make published", REPLAYED),
    "docs/published_lists.md | model | `--unreviewed` |": (
        "cleanset published --images",
        "tests/sets/published/test_image_set.py::test_the_other_models",
    ),
    "docs/review_figures.md | flaw |": ("make bench NAME=hints", HINT_RATES),
    "docs/robustness.md | metric |": ("make robustness", OF_MODELS),
    "docs/training.md | metric |": ("make training", OF_MODELS),
}
"""By the beginning of its header: the command near each table of measured numbers, and the test that compares them."""


def numbers_in(table: str) -> float:
    """The share of the cells of a table, but for its first column, that are numbers."""
    found = [cell for row in table.splitlines()[2:] for cell in cells(row)[1:]]
    return sum(bool(re.fullmatch(r"[-–.,%\d() ]*\d[-–.,%\d() ]*", cell)) for cell in found) / max(len(found), 1)


def test_every_table_of_numbers_has_its_command(repository: Path) -> None:
    """In the same section, verbatim; a test compares the table with the command, or a reason says why not."""
    met = set()
    for page in pages(repository):
        if page.startswith("docs/reference/"):
            continue  # made from the code
        for section in re.split(r"(?m)^(?=#+ )", (repository / page).read_text()):
            for table in re.findall(r"(?m)(?:^\|.*\n)+", section):
                name = " ".join(f"{page} {table.splitlines()[0]}".split())
                if numbers_in(table) < 0.3:
                    continue
                entry = next((each for each in (*TABLES, *NOT_COMPARED) if name.startswith(each)), name)
                met.add(entry)
                if entry in TABLES:
                    assert TABLES[entry][0] in " ".join(section.split()), name
    assert met == {*TABLES, *NOT_COMPARED}
    for _, test in TABLES.values():
        path, function = test.split("::")
        assert f"def {function}" in (repository / path).read_text(), test


def test_the_coverage_of_studies_is_the_benchs(repository: Path) -> None:
    """The table's percentages are the shares in bench/RESULTS.md."""
    page = (repository / "docs" / "study_analysis.md").read_text()
    results = (repository / "bench" / "RESULTS.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (\d+) \| ([\d.]+) % \| ([\d.]+) % \| ([\d.]+) \|$", page, re.MULTILINE)
    assert len(rows) == 5
    for real, modified, covers, wrong, half in rows:
        line = f"{float(covers) / 100:.3f} \\|      {float(wrong) / 100:.3f} \\|       {float(half):.2f}"
        assert re.search(rf"^\| {real} \+ {modified} +\| +{line} \|$", results, re.MULTILINE), (real, modified)


def test_make_alone_lists_the_targets(checkout: Checkout) -> None:
    listed = shell(checkout, "make").stdout
    for target in ("repro", "test", "real", "edition", "bench"):
        assert re.search(rf"^make {target} ", listed, re.MULTILINE)


def test_the_example_review_is_valid(repository: Path) -> None:
    page = "docs/reference/review.md"
    text = blocks(repository, "yaml", page)[0].replace("3f6c0a…", SHA256)
    (vote,) = parse_reviews(text, "n02782093", page, imagenet())
    assert vote.review.box == (0, 0, 480, 330)
    (shares,) = blocks(repository, "yaml", "docs/review_team.md")
    policy = ReviewPolicy.model_validate(yaml.safe_load(shares)["review"])
    share = share_in_team(range(1000), "ben", (), policy)
    assert (len(share.common), min(share.classes - share.common)) == (50, 500)


def test_the_example_model_is_valid(repository: Path) -> None:
    network, of_a_list = blocks(repository, "yaml", "docs/models.md")
    content = yaml.safe_load(network.replace("5c106c…", SHA256))
    assert Model.model_validate(content["models"]["mine"]).name == "resnet50"
    content = yaml.safe_load(re.sub(r"[0-9a-f]{6}…", SHA256, of_a_list))
    assert Model.model_validate(content["models"]["norm_robust"]).is_pinned


def test_the_script_for_slurm_can_be_parsed(repository: Path) -> None:
    (script,) = blocks(repository, "bash", "docs/machines.md")
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False, capture_output=True).stderr == ""


def test_every_path_of_the_tree_is_there(repository: Path) -> None:
    (tree,) = blocks(repository, "", "docs/formats.md")
    names = [name for line in tree.splitlines() for name in re.findall(r"^(\S+)|(?<=/  )(\S+/)", line)]
    for name in (first or second for first, second in names):
        assert name in ("data/", "report/") or (repository / name).exists(), name


@pytest.mark.long
def test_the_progress_of_a_team(checkout: Checkout, repository: Path) -> None:
    """For the sample's reviewers, as if they were a team: only what is not settled is to review."""
    done = shell(checkout, block(repository, "cleanset review status --reviewer ada --reviewer ben --reviewer board"))
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[1:] for row in rows if row[:1] in (["ada"], ["ben"], ["board"]) and len(row) == 4] == [
        ["6", "0", "139"], ["6", "1", "5"], ["12", "0", "1"],
    ]  # fmt: skip
    assert "ben has to review n02165456." in done.stdout
