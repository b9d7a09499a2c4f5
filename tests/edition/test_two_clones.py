"""Two clones of an edition, merged by git: after dvc repro the set is that of a run of all stages, in real DVC.

One changes the edition in one of six ways, the other rejects an image, and each runs dvc repro; docs/review_team.md is
what they follow.
"""

import csv
import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.checkouts import Checkout
from tests.ten_images import drawn_image

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]

REMEDY = "run dvc repro; after a merge remove dvc.lock first"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A repository with an edition `mine` of two classes of four images, reproduced and committed."""
    folder = tmp_path_factory.mktemp("clones") / "base"
    for number, key in enumerate(("cat", "dog")):
        (folder / "photos" / key).mkdir(parents=True)
        for place in range(4):
            drawn_image(40, 40, seed=10 * number + place).save(folder / "photos" / key / f"{place}.png")
    at = Checkout(folder)
    at.run("git", "init", "--quiet", "--initial-branch", "main")
    at.run("cleanset", "edition", "mine", "--images", "photos")
    change_params(at, "unreviewed: pending", "unreviewed: clean")
    at.run("dvc", "repro", "--quiet", cwd="mine")
    at.commit("base")
    return at


def change_params(at: Checkout, before: str, after: str) -> None:
    path = at.folder / "mine" / "params.yaml"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def take_fewer(at: Checkout) -> None:
    path = at.folder / "mine" / "params.yaml"
    path.write_text(re.sub(r"(?m)^( *images_per_class:) \d+", r"\1 2", path.read_text()))


def decide_by_majority(at: Checkout) -> None:
    change_params(at, "policy: single", "policy: majority")


def replace_an_image(at: Checkout) -> None:
    """The last dog is another one now."""
    drawn_image(40, 40, seed=99).save(at.folder / "photos/dog/3.png")
    at.run("cleanset", "edition", "mine", "--accept")


def add_an_image(at: Checkout) -> None:
    drawn_image(40, 40, seed=98).save(at.folder / "photos/cat/4.png")
    at.run("cleanset", "edition", "mine", "--accept")


def crop_a_dog(at: Checkout) -> None:
    crop = {"reason": "watermark", "crop": [0, 0, 30, 30], "object_fully_visible": True}
    write_verdict(at, "ada", first(at, "dog"), {"verdict": "crop", **crop})


def reject_a_dog(at: Checkout) -> None:
    write_verdict(at, "ada", first(at, "dog"), {"verdict": "reject", "reason": "blur"})


def reject_a_cat(at: Checkout) -> None:
    write_verdict(at, "ben", first(at, "cat"), {"verdict": "reject", "reason": "blur"})


def write_verdict(at: Checkout, reviewer: str, image_id: str, verdict: dict[str, object]) -> None:
    key = image_id.partition("/")[0]
    digest = hashlib.sha256((at.folder / "photos" / image_id).read_bytes()).hexdigest()
    folder = at.folder / "mine" / "reviews" / reviewer
    folder.mkdir(parents=True)
    (folder / f"{key}.yaml").write_text(yaml.safe_dump({key: {image_id: {**verdict, "sha256": digest}}}))


def first(at: Checkout, key: str) -> str:
    """The image of rank 1 of a class, which every set has unless it is rejected."""
    with (at.folder / "mine/data/export/images/manifest.csv").open(newline="") as file:
        return next(row["image_id"] for row in csv.DictReader(file) if (row["class"], row["rank"]) == (key, "1"))


def in_the_set(at: Checkout) -> list[str]:
    with (at.folder / "mine/data/export/images/manifest.csv").open(newline="") as file:
        return sorted(row["image_id"] for row in csv.DictReader(file))


def cloned(base: Checkout, folder: Path) -> Checkout:
    """A clone with the cache of the first one, and the link that git does not keep."""
    at = base.clone(folder)
    cache = base.folder.with_name("base") / "mine/.dvc/cache"
    (folder / "mine/.dvc/config.local").write_text(f"[cache]\n    dir = {cache}\n")
    at.run("cleanset", "doctor", "--quick", cwd="mine")
    return at


def branched(base: Checkout, folder: Path, change: Callable[[Checkout], None]) -> Checkout:
    """A clone in which one change was made, reproduced and committed."""
    at = cloned(base, folder)
    at.run("dvc", "checkout", "--quiet", cwd="mine")
    change(at)
    at.run("dvc", "repro", "--quiet", cwd="mine")
    at.commit(change.__name__)
    return at


def forced(at: Checkout) -> list[str]:
    at.run("dvc", "repro", "--quiet", "--force", cwd="mine")
    return in_the_set(at)


CHANGES = (take_fewer, decide_by_majority, replace_an_image, add_an_image, crop_a_dog, reject_a_dog)


@pytest.fixture(scope="module")
def ben(base: Checkout) -> Checkout:
    """The clone in which a cat was rejected."""
    at = branched(base, base.folder.with_name("ben"), reject_a_cat)
    assert len(in_the_set(base)) == len(in_the_set(at)) == 6
    assert first(base, "cat") not in in_the_set(at)
    return at


@pytest.fixture(scope="module", params=CHANGES, ids=lambda change: str(change.__name__))
def ada(base: Checkout, request: pytest.FixtureRequest) -> Checkout:
    """The clone in which something else was changed."""
    at = branched(base, base.folder.with_name(request.param.__name__), request.param)
    assert first(base, "cat") in in_the_set(at)
    return at


def merged(ada: Checkout, ben: Checkout, folder: Path) -> Checkout:
    """A clone of ben's with the branch of ada's, in which git has left ben's dvc.lock alone."""
    at = cloned(ben, folder)
    at.run("git", "fetch", "--quiet", str(ada.folder), "HEAD:theirs")
    done = at.run("git", "merge", "--quiet", "theirs", check=False)
    assert "CONFLICT (content): Merge conflict in mine/dvc.lock" in done.stdout
    # whole, without the marks of a conflict
    assert (folder / "mine/dvc.lock").read_bytes() == (ben.folder / "mine/dvc.lock").read_bytes()
    return at


@pytest.mark.parametrize("side", ["--ours", "--theirs"])
def test_either_side_of_the_lock_gives_the_set_of_a_whole_run(
    side: str, base: Checkout, ada: Checkout, ben: Checkout, tmp_path: Path
) -> None:
    at = merged(ada, ben, tmp_path / "merged")
    at.run("git", "checkout", side, "dvc.lock", cwd="mine")
    at.run("dvc", "checkout", "--quiet", cwd="mine")
    stale = at.run("cleanset", "verify", "data/export/images", cwd="mine", check=False)
    assert stale.returncode == 1
    assert stale.stdout.startswith("outdated     manifest.csv: made before a change of ")
    assert f"; expected today's set: {REMEDY}" in stale.stdout
    at.run("dvc", "repro", "--quiet", cwd="mine")
    found = in_the_set(at)
    assert first(base, "cat") not in found
    assert found != in_the_set(base)
    assert at.run("cleanset", "verify", "data/export/images", cwd="mine").returncode == 0
    assert forced(at) == found


def test_a_mixture_of_two_locks_is_noticed_and_repaired(
    base: Checkout, ada: Checkout, ben: Checkout, tmp_path: Path
) -> None:
    """As a merge by lines makes one: the inputs of both, with the set of one of them."""
    at = merged(ada, ben, tmp_path / "merged")
    at.run("dvc", "checkout", "--quiet", cwd="mine")
    at.run("dvc", "repro", "--quiet", cwd="mine")
    expected = in_the_set(at)
    lock = at.folder / "mine/dvc.lock"
    mixture, of_ben = (yaml.safe_load(path.read_text()) for path in (lock, ben.folder / "mine/dvc.lock"))
    mixture["stages"]["export@images"]["outs"] = of_ben["stages"]["export@images"]["outs"]
    lock.write_text(yaml.safe_dump(mixture))
    at.run("dvc", "checkout", "--quiet", "--force", cwd="mine")
    at.run("dvc", "repro", "--quiet", cwd="mine")
    assert in_the_set(at) == in_the_set(ben)
    for command in (("verify", "data/export/images"), ("publish", "data/export/images", "out", "--with-images")):
        done = at.run("cleanset", *command, cwd="mine", check=False)
        assert done.returncode == 1
        assert "made before a change of " in done.stdout + done.stderr
    assert "made before a change of " in at.run("cleanset", "review", "status", cwd="mine").stdout
    lock.unlink()
    at.run("dvc", "repro", "--quiet", cwd="mine")
    assert in_the_set(at) == expected
    assert forced(at) == expected
