"""`cleanset fetch`, `cleanset.load` and `cleanset.table` from a real git repository and a real web server."""

import datetime
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

import cleanset
from cleanset.classes import imagenet
from cleanset.cli import app
from cleanset.edition.paths import Edition
from cleanset.errors import system_error
from cleanset.plumbing.files import file_state
from cleanset.sets.description import Release
from cleanset.sets.fetching import repository
from cleanset.sets.fetching.fetch import _revision_file
from cleanset.sets.fetching.kept_set import STALE_SECONDS
from cleanset.sets.folder import write_descriptions
from tests.checkouts import files
from tests.own_edition import KEYS
from tests.sets.conftest import FILES, trial
from tests.sets.fetching.publisher import Publisher, Web

pytestmark = pytest.mark.server

FILES_OF_SET = 12
"""Six images and six files that describe them."""


def fetch(*arguments: str) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(app, ["fetch", *arguments])


def today() -> str:
    """As notices have it."""
    day = datetime.date.today()
    return f"{day.day} {day:%B %Y}"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from cleanset.cli import main; main()", "fetch", *arguments]


def test_an_address_and_a_revision_that_run_together_are_kept_apart() -> None:
    first = repository.PublishedSet(url="/srv/set", rev="1", folder=".", model="standard")
    second = repository.PublishedSet(url="/srv/set1", rev=None, folder=".", model="standard")
    assert _revision_file(first) != _revision_file(second)
    assert _revision_file(first) == _revision_file(replace(first, model="other", folder="imagenet"))


def refused(*arguments: str) -> str:
    """The one line with which the command ends."""
    done = fetch(*arguments)
    error = done.exception
    assert isinstance(error, cleanset.CleansetError | OSError), done.output
    assert done.stdout == ""
    return system_error(error) if isinstance(error, OSError) else str(error)


def cache(tmp_path: Path) -> Path:
    """The folder of the only set in the cache."""
    (folder,) = (tmp_path / "cache").glob("*-*/standard-*")
    return folder


@pytest.fixture
def commit(publisher: Publisher, server: Web, export: Path) -> str:
    return publisher.push(export, server.url)


def test_a_set_is_fetched_checked_and_copied(
    publisher: Publisher, server: Web, commit: str, export: Path, tmp_path: Path
) -> None:
    at_out = command(publisher.url, "standard", "--out", str(tmp_path / "out"))
    done = subprocess.run(at_out, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (
        f"{tmp_path}/out: 6 images of model standard at commit {commit[:12]}, checked\n{trial(tmp_path / 'out')}\n",
        f"{publisher.url}: as of {today()}, asked now\n",
    )
    again = f"{publisher.url}: as of {today()}, not asked again: cleanset fetch --update does\n"
    assert fetch(publisher.url, "standard").stderr == again
    assert files(tmp_path / "out") == files(cache(tmp_path)) == files(export)
    assert len(server.asked) == FILES_OF_SET + 1  # and the list of them
    images = cleanset.load("standard", publisher.url)
    assert ([record["file"] for _, _, record in images], images.folder) == (FILES, cache(tmp_path))
    assert refused(publisher.url, "standard", "--out", str(tmp_path / "out")) == (
        f"{tmp_path}/out: exists already; expected a new or empty folder"
    )
    path = fetch(str(publisher.repository), "standard")  # a folder on this machine will do, too
    assert re.search(rf"standard-\w{{16}}: 6 images of model standard at commit {commit[:12]}, checked\n", path.stdout)


def test_a_folder_in_the_way_is_seen_before_anything_is_fetched(
    publisher: Publisher, server: Web, commit: str, tmp_path: Path
) -> None:
    (tmp_path / "out").touch()
    assert refused(publisher.url, "standard", "--out", str(tmp_path / "out")) == (
        f"{tmp_path}/out: exists already; expected a new or empty folder"
    )
    assert server.asked == []


@pytest.mark.parametrize("rev", [None, "main", "v1", "short", "commit", "main~0"])
def test_no_network_the_second_time(
    rev: str | None, publisher: Publisher, server: Web, commit: str, export: Path, tmp_path: Path
) -> None:
    publisher.git("tag", "--annotate", "--message", "One", "v1")
    rev = {"short": commit[:7], "commit": commit}.get(rev or "", rev)
    table = cleanset.table("standard", publisher.url, rev=rev)
    assert (table["file"].tolist(), table.attrs["notices"]) == (FILES, [trial(export)])
    assert len(cleanset.table("standard", publisher.url, rev=rev)) == 6
    assert len(server.asked) == 3  # the list, the manifest and the Croissant description, no image
    assert len(cleanset.load("standard", publisher.url, rev=rev)) == 6
    asked = len(server.asked)
    publisher.repository.rename(tmp_path / "away")
    shutil.move(publisher.remote, tmp_path / "remote_away")
    assert len(cleanset.load("standard", publisher.url, rev=rev)) == 6
    assert len(cleanset.table("standard", publisher.url, rev=rev)) == 6
    assert len(server.asked) == asked


def test_the_table_of_own_images_brings_their_classes(own: Edition, publisher: Publisher) -> None:
    publisher.push(own.export("images"), str(publisher.remote), model="images")
    for _ in range(2):  # the second time from the cache
        table = cleanset.table("images", publisher.url)
        assert (table["class"].iloc[0], table["image_id"].iloc[0][:4], table["classes"].iloc[0]) == ("001", "001/", "0")
    assert tuple(cleanset.load("images", publisher.url).classes) == KEYS


def test_a_branch_is_asked_for_again_on_request(publisher: Publisher, server: Web, commit: str, export: Path) -> None:
    first = cleanset.load("standard", publisher.url, rev="main").folder
    publisher.lead(f"{server.url}/")
    second = publisher.commit("Same set")
    assert fetch(publisher.url, "standard", "--rev", "main").stdout.count(commit[:12]) == 1
    assert fetch(publisher.url, "standard", "--rev", "main", "--update").stdout.count(second[:12]) == 1
    assert fetch(publisher.url, "standard", "--rev", "main").stdout.count(second[:12]) == 1
    assert len(server.asked) == FILES_OF_SET + 1  # the same files are not fetched again
    assert cleanset.load("standard", publisher.url, rev="main", update=True).folder == first
    publisher.repository.rename(publisher.repository.with_name("away"))
    assert "repository unreachable" in refused(publisher.url, "standard", "--rev", "main", "--update")


def finished(cache: Path) -> list[Path]:
    """The files of a set that are there in full, though not all of them are."""
    return [path for path in cache.glob("*-*/part/**/*") if path.is_file() and path.suffix != ".part"]


@pytest.mark.long
def test_after_a_kill_only_the_rest_is_fetched(
    publisher: Publisher, server: Web, commit: str, export: Path, tmp_path: Path
) -> None:
    server.stall_after = 6  # the list and five files
    process = subprocess.Popen(command(publisher.url, "standard"))
    assert server.stalled.wait(30)
    end = time.monotonic() + 10
    while len(finished(tmp_path / "cache")) < 5 and time.monotonic() < end:
        time.sleep(0.02)
    process.kill()
    process.wait()
    server.stall_after = None
    server.go_on.set()
    time.sleep(0.2)
    (part,) = (tmp_path / "cache").glob("*-*/part")
    assert not list((tmp_path / "cache").glob("*-*/standard-*"))
    (part / "n01440764").mkdir(exist_ok=True)
    (part / "n01440764" / ".ILSVRC2012_val_00000001.JPEG.part").write_bytes(b"half")  # as a kill leaves it
    (part / "n00000000").mkdir()
    server.asked.clear()
    assert fetch(publisher.url, "standard").exit_code == 0
    assert len(server.asked) == FILES_OF_SET - 5
    assert files(cache(tmp_path)) == files(export)
    assert not part.exists()
    assert not (cache(tmp_path) / "n00000000").exists()


@pytest.mark.long
def test_two_at_once_fetch_once(publisher: Publisher, server: Web, commit: str, export: Path, tmp_path: Path) -> None:
    processes = [subprocess.Popen(command(publisher.url, "standard"), stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert len(server.asked) == FILES_OF_SET + 1
    assert files(cache(tmp_path)) == files(export)


@pytest.mark.parametrize("damage", ["emptied", "removed", "truncated", "same size", "a folder", "a file", "lists"])
def test_a_damaged_cache_is_repaired(
    damage: str, publisher: Publisher, server: Web, commit: str, export: Path, tmp_path: Path
) -> None:
    cleanset.load("standard", publisher.url)
    kept, fetched = cache(tmp_path), 1
    image = kept / FILES[0]
    if damage == "emptied":
        shutil.rmtree(kept)
        kept.mkdir()
        fetched = FILES_OF_SET
    elif damage == "removed":
        shutil.rmtree(kept)
        fetched = FILES_OF_SET
    elif damage == "truncated":
        image.write_bytes(image.read_bytes()[:-1])
    elif damage == "same size":
        image.write_bytes(image.read_bytes()[:-1] + b"?")
    elif damage == "a folder":
        image.unlink()
        (image / "inside").mkdir(parents=True)
    elif damage == "a file":
        shutil.rmtree(image.parent)
        image.parent.write_text("in the way")
        fetched = 2
    else:
        for name in ("list.json", "checked.json"):
            (kept.parent / name).write_text("[")
    server.asked.clear()
    images = cleanset.load("standard", publisher.url)
    assert len(list(images)) == 6
    assert len(server.asked) == fetched
    assert files(kept) == files(export)


def test_what_only_looks_unchanged_is_repaired_by_force(
    publisher: Publisher, commit: str, export: Path, tmp_path: Path
) -> None:
    """As after a fault of the disk: other bytes in the same state, which no program can leave."""
    images = cleanset.load("standard", publisher.url)
    image = cache(tmp_path) / FILES[0]
    image.write_bytes(image.read_bytes()[:-1] + b"?")
    checked = cache(tmp_path).parent / "checked.json"
    states = json.loads(checked.read_text())
    checked.write_text(json.dumps(states | {FILES[0]: file_state(image.stat())}))
    with pytest.raises(cleanset.CleansetError, match="SHA-256"):
        images[0]
    assert refused(publisher.url, "standard", "--out", str(tmp_path / "out")).endswith(
        "the set that was fetched: add --force"
    )
    assert not (tmp_path / "out").exists()
    assert len(list(cleanset.load("standard", publisher.url, force=True))) == 6
    assert files(cache(tmp_path)) == files(export)


def test_surplus_files_are_removed(
    publisher: Publisher, server: Web, commit: str, export: Path, tmp_path: Path
) -> None:
    """In the cache, hidden ones too; nothing is fetched again."""
    cleanset.load("standard", publisher.url)
    server.asked.clear()
    (cache(tmp_path) / "n01440764" / ".more.npy").touch()
    (cache(tmp_path) / ".hidden").mkdir()
    (cache(tmp_path) / ".hidden" / "1.JPEG").touch()
    (cache(tmp_path) / "link").symlink_to("/etc")
    cleanset.load("standard", publisher.url)
    assert files(cache(tmp_path)) == files(export)
    assert not (cache(tmp_path) / "link").is_symlink()
    assert server.asked == []


def test_a_hidden_file_in_a_published_set(publisher: Publisher, server: Web, export: Path, tmp_path: Path) -> None:
    changed = Path(shutil.copytree(export, tmp_path / "changed"))
    (changed / ".payload").write_text("mine")
    publisher.push(changed, server.url)
    assert refused(publisher.url, "standard") == (
        f"{publisher.url}: the set was published with problems: 1, the first: surplus      .payload: a file; expected "
        "nothing; tell its publisher"
    )


def test_a_published_set_without_images(publisher: Publisher, server: Web, tmp_path: Path) -> None:
    """Stage export of an edition that nobody has reviewed gives one."""
    (tmp_path / "empty").mkdir()
    write_descriptions(tmp_path / "empty", [], Release(classes=imagenet()))
    publisher.push(tmp_path / "empty", server.url)
    for _ in range(2):
        assert refused(publisher.url, "standard") == (
            f"{cache(tmp_path)}: a set without images; expected at least one: tell its publisher"
        )


def test_stale_parts_are_removed(publisher: Publisher, server: Web, commit: str, tmp_path: Path) -> None:
    """Those of the same set at another revision, and those of any set that are a week old; no others."""
    cleanset.table("standard", publisher.url)
    (home,) = (tmp_path / "cache").glob("*-*")
    prefix = home.name.split("-")[0]
    old, other, recent = (tmp_path / "cache" / name for name in ("0123-45", f"{prefix}-0123", "4567-89"))
    for folder in (old, other, recent):
        (folder / "part").mkdir(parents=True)
    long_ago = time.time() - STALE_SECONDS - 60
    os.utime(old / "part", (long_ago, long_ago))
    cleanset.load("standard", publisher.url)
    assert [(folder / "part").exists() for folder in (old, other, recent)] == [False, False, True]


@pytest.mark.long
def test_what_passes_is_tried_again(publisher: Publisher, server: Web, commit: str) -> None:
    server.broken = 2
    assert len(list(cleanset.load("standard", publisher.url))) == 6


@pytest.mark.long
def test_each_failure_of_the_remote_has_its_line(
    publisher: Publisher, server: Web, commit: str, export: Path, tmp_path: Path
) -> None:
    at = publisher.url
    image, other = (publisher.object(hashlib.md5((export / name).read_bytes()).hexdigest()) for name in FILES[:2])
    (listing,) = publisher.remote.rglob("*.dir")
    hidden = tmp_path / "hidden"

    listing.rename(hidden)
    name = f"files/md5/{listing.parent.name}/{listing.name}"
    assert refused(at, "standard") == (
        f"{server.url}: the list of the set's files is missing there ({name}); expected the set that {at} names: "
        "ask its publisher to run dvc push"
    )
    listing.write_bytes(hidden.read_bytes() + b" ")
    assert refused(at, "standard").startswith(f"{server.url}: the list of the set's files is damaged (MD5 ")
    hidden.rename(listing)

    image.rename(hidden)
    name = f"files/md5/{image.parent.name}/{image.name}"
    assert refused(at, "standard") == (
        f"{server.url}: {FILES[0]} is missing there ({name}); ask the publisher of {at} to run dvc push; "
        "all else that was fetched is kept"
    )
    data = other.read_bytes()
    other.write_bytes(data[:-1])
    shutil.rmtree(tmp_path / "cache")
    assert refused(at, "standard").endswith("; problems: 2 of 12 files, this is the first")
    hidden.rename(image)
    server.asked.clear()
    assert refused(at, "standard") == (
        f"{server.url}: {FILES[1]} is damaged there (MD5 {hashlib.md5(data[:-1]).hexdigest()}, expected "
        f"{hashlib.md5(data).hexdigest()}); ask the publisher of {at} to repair it; all else that was fetched is kept"
    )
    assert len(server.asked) == 3  # the one that was missing, and the damaged one twice
    server.status = 403
    assert refused(at, "standard") == (
        f"{server.url}: refused (HTTP 403 Forbidden); expected a DVC remote that you may read"
    )
    server.status = 503
    assert refused(at, "standard") == (
        f"{server.url}: remote unreachable (HTTP 503 Service Unavailable); 11 of 12 files are kept; expected the files "
        f"of {at}: check the network and run this again"
    )
    server.status = None
    other.write_bytes(data)
    assert fetch(at, "standard").exit_code == 0


@pytest.mark.long
def test_a_remote_that_is_not_there(publisher: Publisher, export: Path, tmp_path: Path) -> None:
    publisher.push(export, "http://127.0.0.1:9")
    assert refused(publisher.url, "standard").startswith(
        "http://127.0.0.1:9: remote unreachable (Connection refused); expected the files of "
    )
    publisher.lead(str(tmp_path / "nowhere"))
    publisher.commit("A folder")
    assert refused(publisher.url, "standard", "--update").startswith(
        f"{tmp_path}/nowhere: remote unreachable (no such folder on this machine); expected the files of "
    )
    publisher.lead("../../remote")  # as dvc remote add writes it, beginning at .dvc
    publisher.commit("A relative one")
    assert fetch(publisher.url, "standard", "--update").exit_code == 0


@pytest.mark.long
def test_the_only_set_needs_no_role(publisher: Publisher, export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one, the repository is read once, and the sets are listed, once there is a second."""
    taken: list[str] = []
    snapshot = repository.snapshot

    def counted(published: repository.PublishedSet, rev: str, folder: Path) -> repository.Snapshot:
        taken.append(rev)
        return snapshot(published, rev, folder)

    monkeypatch.setattr(repository, "snapshot", counted)
    commit = publisher.push(export, str(publisher.remote))
    done = fetch(publisher.url)
    assert done.exit_code == 0
    assert f"of model standard at commit {commit[:12]}" in done.stdout
    assert taken == ["HEAD"]
    # as with a role, which has nothing to ask any more: at the commit that is known
    assert fetch(publisher.url, "standard").stdout == done.stdout
    assert fetch(publisher.url, "--rev", commit).stdout == done.stdout
    assert taken == ["HEAD", commit]
    lock = publisher.repository / "dvc.lock"
    content = yaml.safe_load(lock.read_text())
    stage = next(each for each in content["stages"].values() if each["outs"][0]["path"] == "data/export/standard")
    content["stages"]["export@vit"] = {**stage, "outs": [{**stage["outs"][0], "path": "data/export/vit"}]}
    lock.write_text(yaml.safe_dump(content))
    publisher.commit("A second model")
    assert fetch(publisher.url).stdout == done.stdout
    assert taken == ["HEAD", commit, commit]
    assert refused(publisher.url, "--update") == (
        f"{publisher.url}: 2 finished sets; expected the name of one: standard, vit"
    )
    lock.write_text(yaml.safe_dump(content | {"stages": {}}))
    publisher.commit("None")
    assert refused(publisher.url, "--update") == (
        f"{publisher.url}: 0 finished sets; expected an edition with finished sets"
    )


@pytest.mark.long
def test_each_failure_of_the_repository_has_its_line(publisher: Publisher, export: Path, tmp_path: Path) -> None:
    publisher.push(export, str(publisher.remote), folder="imagenet")
    publisher.git("tag", "v1")
    at = publisher.url
    assert refused(at, "standard") == (
        f"{at}: no dvc.lock; expected the folder of an edition (--folder); editions are in: imagenet"
    )
    assert refused(at, "vit", "--folder", "imagenet") == (
        f"{at}, folder imagenet: no finished set of model vit; expected one of standard"
    )
    assert refused(at, "standard", "--folder", "../imagenet").startswith("folder ../imagenet: outside the repository; ")
    assert refused(at, "standard", "--rev", "v9") == (
        f"{at}: no revision v9; expected a branch, a tag or a commit of it; its latest tags: v1"
    )
    for rev in ("0123456", "0123456789" * 4, "-v", "a b"):
        assert refused(at, "standard", f"--rev={rev}").startswith(f"{at}: no revision {rev}; expected ")
    assert refused(f"{at}-not", "standard") == (
        f"{at}-not: repository unreachable ('{publisher.repository}-not' does not appear to be a git repository Could "
        "not read from remote repository.); expected the address of a git repository that you may read: check it and "
        "the network"
    )
    unreachable = refused("https://name:secret@127.0.0.1:9/sets.git", "standard")
    assert unreachable.startswith("https://127.0.0.1:9/sets.git: repository unreachable (unable to access ")
    assert "secret" not in unreachable
    assert refused("nowhere", "standard").startswith(
        "nowhere: not a folder; expected the address of a git repository, "
    )
    assert fetch(at, "standard", "--folder", "imagenet").exit_code == 0
    (publisher.repository / ".dvc" / "config").write_text("[core]\n    analytics = false\n")
    publisher.commit("No remote")
    assert refused(at, "standard", "--folder", "imagenet", "--update") == (
        f"{at}, folder imagenet, .dvc/config: no default remote; expected core.remote and its url, where the images are"
    )
    publisher.git("rm", "-rq", ".dvc")
    publisher.commit("No project")
    assert "no .dvc/config; expected a DVC project" in refused(at, "standard", "--folder", "imagenet", "--update")


def test_without_git(publisher: Publisher, export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher.push(export, str(publisher.remote))
    monkeypatch.setenv("PATH", "/nowhere")
    assert refused(publisher.url, "standard") == (
        "git: No such file or directory; expected the program git: install it"
    )


@pytest.mark.long
def test_other_remotes_are_read_through_dvc(publisher: Publisher, export: Path, tmp_path: Path) -> None:
    """If dvc is not installed, the message says so."""
    publisher.push(export, "s3://bucket/dvc")
    program = "import sys; sys.modules['dvc'] = None; from cleanset.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "fetch", publisher.url, "standard"], capture_output=True, text=True, check=False
    )
    assert done.stderr.partition("asked now\n")[2] == (
        "error: s3://bucket/dvc: a remote that is read through dvc, which is not installed for s3; "
        "expected dvc and its driver: pip install 'dvc[s3]', which cleanset[build] has for s3 and ssh\n"
    )


def test_a_list_that_leads_out_of_the_set_is_refused(publisher: Publisher, export: Path, tmp_path: Path) -> None:
    publisher.push(export, str(publisher.remote))
    (listing,) = publisher.remote.rglob("*.dir")
    listed = json.loads(listing.read_text())
    listed[0]["relpath"] = "../../README.md"
    text = json.dumps(listed).encode()
    md5 = hashlib.md5(text).hexdigest() + ".dir"
    publisher.object(md5).parent.mkdir(exist_ok=True)
    publisher.object(md5).write_bytes(text)
    lock = publisher.repository / "dvc.lock"
    lock.write_text(lock.read_text().replace(listing.parent.name + listing.name, md5))
    publisher.commit("Lead out")
    assert refused(publisher.url, "standard").endswith(
        "the list of the set's files has the path '../../README.md'; expected a path in the set"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="a folder is given to another user by the superuser alone")
def test_a_repository_of_another_user_is_refused_with_gits_remedy(tmp_path: Path) -> None:
    """Whole, however long the path; once it is trusted, what is wrong next is reported."""
    repository = tmp_path / ("long name " * 20) / "sets"
    subprocess.run(["git", "init", "--quiet", "--bare", repository], check=True)
    os.chown(repository, 12345, 12345)
    remedy = f"git config --global --add safe.directory '{repository}'"
    assert refused(f"file://{repository}", "standard").endswith(remedy)
    os.chown(repository, 0, 0)
    assert "safe.directory" not in refused(f"file://{repository}", "standard")
