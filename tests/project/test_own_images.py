"""The page on your own images, from the folder to the release: its commands run, and nothing speaks of ImageNet."""

import csv
import io
import json
import os
import random
import re
import signal
import subprocess
import tarfile
from datetime import date
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser

from cleanset.dataset.labels import read_original_labels
from cleanset.edition.paths import Edition
from tests import own_edition
from tests.checkouts import Checkout
from tests.documents import block, blocks, shell
from tests.review.page.reviewing import Reviewing, serve
from tests.ten_images import drawn_image

PAGE = "docs/own_images.md"
pytestmark = pytest.mark.long

KINDS = ("beagle", "cat (tabby)", "dugong", "espresso", "goldfish", "käfer", "lemon", "orca")
EMPTY = "dugong"
"""The class that nobody reviews."""
FULL = [key for key in KINDS if key != EMPTY]
EACH, IN_GROUP = 20, 5
"""Images of a class, and of a group in it."""
OF_IMAGENET = re.compile(rb"imagenet|wnid|ilsvrc|\btench\b", re.IGNORECASE)
NETWORK = """\
import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.last = nn.Linear(192, 8)

    def forward(self, pixels):
        return self.last(nn.functional.adaptive_avg_pool2d(pixels, 8).flatten(1))


def make():
    return Network(), "Res256Crop224"
"""


@pytest.fixture(scope="module")
def photos(real: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real photographs, 20 of each of eight classes, with names that are not ImageNet's."""
    folder = tmp_path_factory.mktemp("own")
    labels, _ = read_original_labels(real / "ILSVRC2012_devkit_t12.tar.gz")
    with tarfile.open(real / "ILSVRC2012_img_val.tar") as tar:
        by_class: dict[int, list[tarfile.TarInfo]] = {}
        for member in tar.getmembers():
            by_class.setdefault(labels[member.name.removesuffix(".JPEG")], []).append(member)
        (folder / "photos").mkdir()
        listed: list[tuple[str, str, str]] = []
        for kind, (_, members) in zip(KINDS, sorted(by_class.items()), strict=False):
            for place, member in enumerate(members[:EACH]):
                name = f"ISIC_{len(listed) + 1:04d}.jpg"
                found = tar.extractfile(member)
                assert found is not None
                (folder / "photos" / name).write_bytes(found.read())
                listed.append((name, kind, f"{kind} {place // IN_GROUP}"))
    with (folder / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("file", "class", "group"), *listed])
    return folder


def labels(folder: Path) -> list[list[str]]:
    """File, class and group of each image."""
    return list(csv.reader((folder / "labels.csv").read_text().splitlines()))[1:]


@pytest.fixture(scope="module")
def mine(photos: Path, pristine: Checkout, repository: Path, chromium: Browser) -> Checkout:
    """The folder in which the page's commands have made, and a browser has reviewed, an edition and its release.

    What they printed is in `said`.
    """
    at = Checkout(photos, pristine.environment())
    draw = random.Random(0)
    rows = []
    for name, kind, _ in labels(photos):
        odds = [draw.random() ** 4 + 1e-3 + (3 * draw.random() if key == kind else 0) for key in KINDS]
        rows.append([name, "resnet", *(each / sum(odds) for each in odds)])
    with (photos / "scores.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["file", "model", *KINDS], *rows])
    (photos / "card.yaml").write_text(next(each for each in blocks(repository, "yaml", PAGE)))
    (photos / "nets.py").write_text(NETWORK)
    commands = block(repository, "cleanset edition mine --images photos --scores scores.csv --card card.yaml")
    run(at, commands.replace("--scores", "--labels labels.csv --scores"))
    (photos / "pages").write_text(review(photos / "mine", chromium))
    params = photos / "mine" / "params.yaml"
    params.write_text(params.read_text().replace('date: ""', 'date: "2026-11-25"'))
    run(at, block(repository, "dvc repro\ndvc metrics show"), "mine")
    return at


def review(edition: Path, browser: Browser) -> str:
    """Review all classes on the real page, of the five easiest images crop two and reject three; its HTML."""
    server = serve(edition, "ada")
    seen = []
    try:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        at = Reviewing(page, server.address)
        for _ in KINDS:
            key = at.wnid
            if key == EMPTY:
                at.press("n")
                continue
            for _ in range(2):
                at.press("x")
                page.wait_for_selector("[data-look=crop][data-ready]", state="attached")
                page.keyboard.press("Control+ArrowRight")
                at.press("b", "v", "Enter")
            at.press("r", "w", "r", "w", "r", "w")
            seen.append(page.content())
            while at.wnid == key and at.mode == "class":
                at.press("c")
        page.close()
    finally:
        server.kill()
    return "".join(seen)


def run(at: Checkout, commands: str, cwd: str = ".") -> str:
    done = shell(at, commands, cwd)
    assert done.returncode == 0, done.stderr
    with (at.folder / "said").open("a") as said:
        said.write(done.stdout + done.stderr)
    return done.stdout


def test_the_commands_in_the_readme_of_an_edition(repository: Path, pristine: Checkout, tmp_path: Path) -> None:
    """As they are written, in their order, with the `export.about` that it asks for."""
    at = Checkout(tmp_path, pristine.environment())
    for seed in range(4):
        (tmp_path / "photos" / KINDS[seed % 2]).mkdir(parents=True, exist_ok=True)
        drawn_image(40, 40, seed=seed).save(tmp_path / "photos" / KINDS[seed % 2] / f"{seed}.png")
    run(at, "cleanset edition mine --no-git --images photos")
    edition = Edition(tmp_path / "mine")
    text = (edition.folder / "README.md").read_text()
    before, after = re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    server = subprocess.Popen(
        ["bash", "-ec", before],
        cwd=edition.folder,
        env=at.environment(),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert server.stdout is not None
    assert any("http://" in line for line in server.stdout)
    os.killpg(server.pid, signal.SIGINT)
    server.communicate()
    own_edition.review(edition, "ada")
    assert "state in `export.about` of `params.yaml`" in text
    about = yaml.safe_load(next(each for each in blocks(repository, "yaml", PAGE)))
    params = edition.params_yaml.read_text()
    edition.params_yaml.write_text(params.replace("  about: null\n", f"  about: {json.dumps(about)}\n"))
    run(at, after, "mine")
    published = list(tmp_path.glob("release/*.tar"))
    assert [path.name for path in published] == ["cleanset-images-1.0.0.tar"]
    card_text = (published[0].with_suffix("") / "README.md").read_text()
    assert f"{date.today()}" in card_text


def entries(at: Checkout) -> list[dict[str, str]]:
    text = (at.folder / "release" / "cleanset-resnet-1.0.0" / "manifest.csv").read_text()
    return list(csv.DictReader(io.StringIO(text)))


def test_three_images_of_each_class(mine: Checkout) -> None:
    found = entries(mine)
    assert [(each["class"], each["rank"]) for each in found] == [(key, str(n)) for key in FULL for n in (1, 2, 3)]
    assert sum(each["file"].endswith(".crop.png") for each in found) == 2 * len(FULL)
    assert {(each["image_id"], each["class"], each["group"]) for each in found} <= set(map(tuple, labels(mine.folder)))
    verdicts = [yaml.safe_load(path.read_text()) for path in (mine.folder / "mine" / "reviews" / "ada").glob("*.yaml")]
    rejected = {name for each in verdicts for of in each.values() for name in of if of[name]["verdict"] == "reject"}
    assert len(rejected) == 3 * len(FULL)
    assert rejected.isdisjoint(each["image_id"] for each in found)


def test_the_sets_own_texts(mine: Checkout) -> None:
    folder = mine.folder / "release" / "cleanset-resnet-1.0.0"
    about = yaml.safe_load((mine.folder / "card.yaml").read_text())
    deposit = json.loads((folder / ".zenodo.json").read_text())
    croissant = json.loads((folder / "croissant.json").read_text())
    citation = yaml.safe_load((folder / "CITATION.cff").read_text())
    assert deposit["title"] == croissant["alternateName"] == citation["title"] == about["title"]
    assert [each["name"] for each in deposit["creators"]] == [each["name"] for each in about["authors"]]
    assert [each["name"] for each in croissant["creator"]] == ["Marie Curie", "Institute of Dermatology"]
    assert croissant["license"] == about["images"]["licence"]
    card = (folder / "README.md").read_text()
    for text in (about["images"]["people"], about["funding"][0], about["images"]["source"], about["licence"]):
        assert text in card


@pytest.mark.exhaustive
def test_other_libraries_load_it(mine: Checkout, repository: Path) -> None:
    """With the right labels, though a class has no images; by the lines of the page and of the card."""
    (lines,) = blocks(repository, "python", PAGE)
    folder = mine.folder / "release" / "cleanset-resnet-1.0.0"
    assert lines.splitlines()[-1] in (folder / "README.md").read_text()
    program = f"""
import json, os, sys
import datasets
os.chdir(sys.argv[1])
{lines}
table = datasets.load_dataset(os.getcwd(), cache_dir=sys.argv[2])["validation"]
names = table.features["label"].names
assert [names[each["label"]] for each in table] == [each["class"] for each in table]
found = [[path, label] for (path, _), (_, label) in zip(folders.samples, folders)]
print(json.dumps([names, found, len(table)]))
"""
    done = mine.run("python", "-c", program, str(folder), str(mine.folder / "cache"))
    names, found, rows = json.loads(done.stdout.splitlines()[-1])
    assert (names, len(found), rows) == (list(KINDS), 21, 21)
    assert {Path(path).parent.name: label for path, label in found} == {
        key: index for index, key in enumerate(KINDS) if key != EMPTY
    }


def test_an_own_network_is_measured(mine: Checkout, repository: Path) -> None:
    said = run(mine, block(repository, "cleanset evaluate mine/data/export/resnet --model nets:make --out results"))
    assert "21 images, 7 classes" in said
    found = json.loads((mine.folder / "results" / "results.json").read_text())
    assert found["models"][0]["images"] == 21
    assert list(found["models"][0]["classes"]) == FULL


def test_the_set_is_made_again(mine: Checkout) -> None:
    release = "release/cleanset-resnet-1.0.0"
    mine.run("cleanset", "rebuild", "--manifest", release, "--images", "photos", "--out", "again")
    assert mine.run("cleanset", "verify", "again").stdout.startswith("again: 21 of 21 images are good")
    for entry in entries(mine):
        assert (mine.folder / "again" / entry["file"]).read_bytes() == (
            mine.folder / release / entry["file"]
        ).read_bytes()


def test_nothing_says_a_word_of_imagenet(mine: Checkout) -> None:
    """Neither files of the edition and its release, nor what commands printed, nor the pages of the review."""
    places = ("mine/data", "mine/report", "mine/metrics", "mine/reviews", "release", "said", "pages", "results")
    files = [path for place in places for path in ((mine.folder / place), *(mine.folder / place).rglob("*"))]
    files += [mine.folder / "mine" / name for name in ("params.yaml", "dvc.yaml", "dvc.lock", "dvc.yaml", ".gitignore")]
    found = {
        path.relative_to(mine.folder).as_posix(): match[0].decode()
        for path in files
        if path.is_file() and (match := OF_IMAGENET.search(path.read_bytes()))
    }
    assert found == {}
    assert len(files) > 100
