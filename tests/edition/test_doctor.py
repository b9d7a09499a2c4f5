"""What kills and failing disks leave, in real DVC repositories: found, and repaired by the printed commands."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cleanset.edition.doctor import as_text, examine
from cleanset.edition.dvc_files import is_whole
from cleanset.edition.locks import repair_locks
from cleanset.edition.repository import ATTRIBUTES
from cleanset.errors import CleansetError
from cleanset.plumbing.file_locks import folder_lock, only_run
from cleanset.plumbing.files import workspace_for
from tests.forked_commands import forking

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parents[2] / "src"
PIPELINE = """\
stages:
  one:
    cmd: cp given one
    deps: [given]
    outs: [one]
  many:
    cmd: mkdir -p many/deep && cp one many/a && tr a-z A-Z < one > many/deep/b
    deps: [one]
    outs: [many]
  counted:
    cmd: mkdir -p counted && wc -c < one > counted/bytes
    deps: [one]
    metrics:
      - counted:
          cache: false
"""


def run(folder: Path, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    environment = os.environ | forking(SOURCE) | {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "DVC_SITE_CACHE_DIR": str(folder / ".dvc" / "tmp" / "site"),
        "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
    }  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0 or not check, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipeline that has run, committed, with all of it on a remote."""
    folder = tmp_path_factory.mktemp("doctor") / "edition"
    folder.mkdir()
    (folder / "dvc.yaml").write_text(PIPELINE)
    (folder / ".gitattributes").write_text(ATTRIBUTES)
    (folder / "given").write_text("given\n" * 1000)
    run(folder, "git", "init", "--quiet")
    run(folder, "dvc", "init", "--quiet")
    run(folder, "dvc", "config", "core.analytics", "false")
    run(folder, "dvc", "remote", "add", "--default", "origin", str(folder.parent / "remote"))
    run(folder, "dvc", "repro")
    run(folder, "dvc", "push")
    run(folder, "git", "add", "--all")
    run(folder, "git", "commit", "--quiet", "--message", "Run")
    return folder


@pytest.fixture
def edition(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "edition", symlinks=True))


@pytest.fixture
def hashed(edition: Path) -> Path:
    run(edition, "dvc", "status")  # hashes once, and trusts it afterwards
    return edition


def changed(edition: Path) -> str:
    """The text of its dvc.lock after a change of its input."""
    (edition / "given").write_text("other\n")
    run(edition, "dvc", "repro")
    return (edition / "dvc.lock").read_text()


def flip(path: Path) -> None:
    """Change one bit; size, time and inode stay, as when a disk does it."""
    state, mode = path.stat(), path.stat().st_mode
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.write(data)
    path.chmod(mode)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def object_of(edition: Path, out: str) -> Path:
    """The cached object of an out."""
    lines = (edition / "dvc.lock").read_text().split(f"path: {out}\n")[1].splitlines()
    md5 = next(line.split()[1] for line in lines if "md5: " in line)
    return edition / ".dvc/cache/files/md5" / md5[:2] / md5[2:]


class TestLocks:
    def test_an_empty_or_cut_lock_is_put_back(self, edition: Path) -> None:
        """At whatever byte it was cut."""
        lock = edition / "dvc.lock"
        whole = lock.read_text()
        for end in range(0, len(whole), 71):
            lock.write_text(whole[:end])
            assert repair_locks(edition) == [f"{lock}: empty or cut off, restored from git"], whole[:end]
            assert lock.read_text() == whole
        assert run(edition, "dvc", "status").stdout == "Data and pipelines are up to date.\n"
        assert repair_locks(edition) == []

    def test_what_is_not_committed_comes_from_the_copy(self, edition: Path) -> None:
        lock, newer = edition / "dvc.lock", changed(edition)
        assert repair_locks(edition) == []
        lock.write_text("")
        copy = edition / ".dvc/tmp/whole/dvc.lock"
        assert repair_locks(edition) == [f"{lock}: empty or cut off, restored from {copy}"]
        assert lock.read_text() == newer

    def test_an_older_commit_is_no_cut_lock(self, edition: Path) -> None:
        """Its lock may be the beginning of a later one."""
        lock = edition / "dvc.lock"
        repair_locks(edition)
        shorter = "".join(re.split(r"(?m)^(?=  \w+:$)", lock.read_text())[:-1])
        assert is_whole(shorter)
        lock.write_text(shorter)
        run(edition, "git", "commit", "--quiet", "--all", "--message", "Shorter")
        assert repair_locks(edition) == []
        assert lock.read_text() == shorter

    def test_without_any_whole_one_it_is_reported(self, edition: Path) -> None:
        shutil.rmtree(edition / ".git")
        (edition / "dvc.lock").write_text("")
        with pytest.raises(
            CleansetError, match=r"dvc\.lock: empty or cut off, and neither git nor \S+ has a whole one"
        ):
            repair_locks(edition)

    @pytest.mark.parametrize("form", ["merge", "diff3", "cut in the middle"])
    def test_a_merge_conflict_is_left_to_the_user(self, edition: Path, form: str) -> None:
        repair_locks(edition)  # now there is a copy of the whole one
        lock = edition / "dvc.lock"
        before, after = lock.read_text().split("  many:\n")
        base = "||||||| 0a1b2c3\n  many: {}\n" if form == "diff3" else ""
        conflict = f"{before}<<<<<<< HEAD\n  many:\n{base}=======\n  other:\n>>>>>>> theirs\n{after}"
        if form == "cut in the middle":
            conflict = conflict[: conflict.index("=======")]
        lock.write_text(conflict)
        line = before.count("\n") + 1
        with pytest.raises(
            CleansetError, match=rf"dvc\.lock, line {line}: a merge conflict of git; expected a resolved"
        ):
            repair_locks(edition)
        assert lock.read_text() == conflict

    def test_a_damaged_copy_is_replaced(self, edition: Path) -> None:
        lock, copy = edition / "dvc.lock", edition / ".dvc/tmp/whole/dvc.lock"
        repair_locks(edition)
        for content in (b"\xff\xfe", b"[" * 200_000):
            copy.write_bytes(content)
            assert repair_locks(edition) == []
            assert copy.read_bytes() == lock.read_bytes()
            copy.write_bytes(content)
            lock.write_bytes(b"")
            assert repair_locks(edition) == [f"{lock}: empty or cut off, restored from git"]

    @pytest.mark.long
    def test_a_newer_lock_that_was_cut_is_kept_beside(self, edition: Path) -> None:
        lock = edition / "dvc.lock"
        repair_locks(edition)
        older, newer = lock.read_text(), changed(edition)
        at = newer.index("  one:\n") - 40
        lock.write_text(newer[:at])
        (done,) = repair_locks(edition)
        assert done.startswith(f"{lock}: empty or cut off, restored from ")
        assert done.endswith("; the damaged file, perhaps newer, is dvc.lock.damaged")
        assert (lock.read_text(), (edition / "dvc.lock.damaged").read_text()) == (older, newer[:at])
        assert repair_locks(edition) == []

    @pytest.mark.long
    def test_a_damaged_newer_lock_is_left_alone(self, edition: Path) -> None:
        lock = edition / "dvc.lock"
        repair_locks(edition)
        newer = changed(edition)
        for old, new in (
            ("5: ", "5; "),
            ("path: given", "path: given\n    - {"),
            ("stages:", ""),
            ("size: ", "siz\udcff: "),
        ):
            damaged = newer.replace(old, new, 1).encode("utf-8", "surrogateescape")
            lock.write_bytes(damaged)
            with pytest.raises(
                CleansetError, match=r"dvc\.lock: damaged, and not the beginning of .*; correct it, or put"
            ):
                repair_locks(edition)
            assert lock.read_bytes() == damaged

    def test_a_broken_rwlock_is_removed(self, edition: Path) -> None:
        rwlock = edition / ".dvc/tmp/rwlock"
        for content in ("null", "[" * 200_000, '{"read": 1}', '{"write": {"/x": {"pid": "a"}}}', "", '{"write": {"/s'):
            rwlock.write_text(content)
            if content.startswith('{"write": {"/s'):
                assert run(edition, "dvc", "repro", check=False).returncode != 0
            assert repair_locks(edition) == [f"{rwlock}: empty or cut off, removed"]
        run(edition, "dvc", "repro")
        assert repair_locks(edition) == []

    def test_nothing_is_touched_while_dvc_is_at_work(self, edition: Path) -> None:
        rwlock = edition / ".dvc/tmp/rwlock"
        (edition / "dvc.lock").write_text("")
        program = "import time; print(flush=True); time.sleep(60)"
        with subprocess.Popen(["dvc", "-c", program], executable=sys.executable, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            other.stdout.readline()
            rwlock.write_text(json.dumps({"write": {"/x": {"pid": other.pid, "cmd": "dvc"}}, "read": {}}))
            with pytest.raises(CleansetError, match=rf"DVC is running \(process {other.pid}\): wait"):
                repair_locks(edition)
            other.kill()
        (edition / ".dvc/tmp/whole").mkdir(exist_ok=True)
        assert len(repair_locks(edition)) == 1  # it was killed
        program = (
            "import fcntl, time, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, 2); print(flush=True); time.sleep(60)"
        )
        guard = str(edition / ".dvc/tmp/rwlock.lock")
        with subprocess.Popen([sys.executable, "-c", program, guard], stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            other.stdout.readline()
            rwlock.write_text("")
            (edition / "dvc.lock").write_text("")
            with pytest.raises(CleansetError, match=r"DVC is running \(rwlock.lock is held\): wait"):
                repair_locks(edition)
            other.kill()
        assert len(repair_locks(edition)) == 2


class TestRot:
    def test_a_healthy_edition(self, edition: Path) -> None:
        findings = examine(edition, quick=False)
        assert (findings.repaired, findings.rotten, findings.unchecked, findings.leftovers) == ([], [], [], [])
        # in the cache two lists and three files (many/a is `one`), counted/bytes for DVC's runs; in the workspace four
        assert findings.hashed == 2 + 3 + 4
        assert as_text(findings) == "files hashed: 9, different from dvc.lock: 0"

    @pytest.mark.parametrize("quick", [True, False])
    def test_links_to_nothing_are_removed(self, edition: Path, quick: bool) -> None:
        """DVC removes a damaged object when it reads it, and then fails at the links to it; others are left alone."""
        links = [edition / "one", edition / "many" / "a"]
        for link in links:
            target = object_of(edition, "one")
            link.unlink()
            link.symlink_to(os.path.relpath(target, link.parent))
        (edition / "many" / "elsewhere").symlink_to("nowhere")
        assert examine(edition, quick=quick).repaired == []
        object_of(edition, "one").unlink()
        lines = [
            f"{link}: a link to a file that DVC's cache lacks, removed: run dvc pull or dvc repro" for link in links
        ]
        assert examine(edition, quick=quick).repaired == sorted(lines)
        assert sorted(path.name for path in edition.rglob("*") if path.is_symlink()) == ["elsewhere"]

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("bad", "remote"),
        [
            # what comes from the cache needs no remote
            (("one", "many/deep/b", "counted/bytes"), False),
            *(
                (bad, remote)
                for remote in (True, False)
                for bad in (
                    ("object of one",), ("object of many",), ("object of many/deep/b",), ("one", "object of one"),
                    ("many/deep/b", "object of many/deep/b"),
                )
            ),
        ],
    )  # fmt: skip
    def test_a_flipped_bit_is_found_and_repaired(self, hashed: Path, bad: tuple[str, ...], remote: bool) -> None:
        edition = hashed
        if not remote:
            run(edition, "dvc", "remote", "remove", "origin")
        contents = {name: (edition / name).read_bytes() for name in ("one", "many/deep/b", "counted/bytes")}
        listed = json.loads(object_of(edition, "many").read_bytes())
        deep = next(entry["md5"] for entry in listed if entry["relpath"] == "deep/b")
        paths = {
            "object of one": object_of(edition, "one"),
            "object of many": object_of(edition, "many"),
            "object of many/deep/b": edition / ".dvc/cache/files/md5" / deep[:2] / deep[2:],
        }
        for name in bad:
            flip(paths.get(name, edition / name))
        findings = examine(edition, quick=False)
        assert {rotten.path for rotten in findings.rotten} == {paths.get(name, edition / name) for name in bad}
        for line, rotten in zip(as_text(findings).splitlines(), findings.rotten, strict=False):
            assert line == f"{rotten.path}: MD5 {rotten.found}, expected {rotten.expected}: {rotten.repair}"
        for rotten in findings.rotten:
            run(edition, "bash", "-c", rotten.repair)
        assert examine(edition, quick=False).rotten == []
        assert {name: (edition / name).read_bytes() for name in contents} == contents
        assert run(edition, "dvc", "status").stdout == "Data and pipelines are up to date.\n"

    def test_what_is_not_there_is_no_fault(self, edition: Path) -> None:
        shutil.rmtree(edition / ".dvc/cache")
        shutil.rmtree(edition / "many")
        findings = examine(edition, quick=False)
        assert (findings.hashed, findings.rotten, findings.unchecked) == (2, [], [])  # `one`, and counted/bytes

    def test_a_folder_without_its_list_is_not_checked(self, edition: Path) -> None:
        lists = {name: object_of(edition, name) for name in ("many", "counted")}
        for path in lists.values():
            path.unlink()
        flip(edition / "many/deep/b")
        findings = examine(edition, quick=False)
        assert findings.rotten == []
        many, last = as_text(findings).splitlines()
        assert many == (
            f"{edition / 'many'}: differs from dvc.lock; {lists['many']}, DVC's list of its files, is missing: "
            "run dvc fetch many and then this command again, or recompute the output: rm -r many && dvc repro -f -s "
            "many"
        )
        assert last.endswith("different from dvc.lock: 0")
        run(edition, "dvc", "fetch", "many")
        again = examine(edition, quick=False)
        assert again.unchecked == []
        assert [rotten.path for rotten in again.rotten] == [edition / "many/deep/b"]

    def test_a_folder_without_its_list_is_hashed_as_a_whole(self, hashed: Path) -> None:
        """So are the metrics in a clone: DVC caches no list of an out with `cache: false`."""
        edition = hashed
        for name in ("many", "counted"):
            object_of(edition, name).unlink()
        findings = examine(edition, quick=False)
        assert as_text(findings) == "files hashed: 5, different from dvc.lock: 0"
        flip(edition / "counted/bytes")
        (rotten,) = examine(edition, quick=False).rotten
        expected = object_of(edition, "counted")
        assert (rotten.path, rotten.expected) == (edition / "counted", expected.parent.name + expected.name)
        assert rotten.found != rotten.expected
        run(edition, "bash", "-c", rotten.repair)
        assert examine(edition, quick=False).rotten == []
        assert run(edition, "dvc", "status", "counted").stdout == "Data and pipelines are up to date.\n"

    def test_a_pipeline_that_dvc_cannot_read_is_one_line(self, edition: Path) -> None:
        for content in ("stages:\n<<<<<<< HEAD\n", "[" * 200_000, "- a\n", "stages: [a]\n", "stages: {a: 1}\n"):
            (edition / "dvc.yaml").write_text(content)
            with pytest.raises(CleansetError, match=r"dvc\.yaml: not a file of DVC"):
                examine(edition, quick=False)

    def test_leftovers_are_listed(self, edition: Path) -> None:
        (edition / "data/export/standard.partial/n01440764").mkdir(parents=True)
        (edition / "data/export/standard.partial/n01440764/x.partial").touch()
        (edition / "params.yaml.partial").touch()
        expected = [edition / "data/export/standard.partial", edition / "params.yaml.partial"]
        assert examine(edition, quick=False).leftovers == expected

    def test_what_a_process_works_on_is_not_left_over(self, edition: Path) -> None:
        """A run's folder, the folder of a file that is written, and a download, for which its folder is locked."""
        running = edition / "data/runs/ex1.partial"
        weights = edition / "data/weights"
        weights.mkdir(parents=True)
        (weights / "net.pt.partial").touch()
        with only_run(running), workspace_for(edition / "data/scores.json"), folder_lock(weights):
            (running / "fold").mkdir()
            assert examine(edition, quick=False).leftovers == []
        assert examine(edition, quick=False).leftovers == [running, weights / "net.pt.partial"]

    @pytest.mark.long
    def test_the_command(self, hashed: Path) -> None:
        edition = hashed
        flip(edition / "one")
        done = run(edition, "cleanset", "doctor", "--json", check=False)
        assert done.returncode == 1
        found = json.loads(done.stdout)
        assert [bad["path"] for bad in found["rotten"]] == ["one"]
        assert found["rotten"][0]["repair"] == "rm -r one && dvc checkout one"
        (edition / "dvc.lock").write_text("")
        done = run(edition, "cleanset", "doctor", "--quick")
        assert done.stdout == "dvc.lock: empty or cut off, restored from .dvc/tmp/whole/dvc.lock\n"
        assert run(edition, "cleanset", "doctor", "--quick").stdout == ""
        shutil.rmtree(edition / ".dvc")
        assert run(edition, "cleanset", "doctor", check=False).stderr == (
            "error: .: no DVC project; expected the folder of an edition: run it there\n"
        )


def test_git_is_kept_from_mixing_two_locks(tmp_path: Path) -> None:
    """Once: what the .gitattributes had stays, and a second call finds nothing to do."""
    run(tmp_path, "git", "init", "--quiet")
    (tmp_path / ".dvc").mkdir()
    path = tmp_path / ".gitattributes"
    path.write_text("*.png binary\ndvc.lock text merge=union")
    added = f"{path}: git now takes one of two branches' dvc.lock whole, and changes no line ends: commit it"
    assert examine(tmp_path, quick=True).repaired == [added]
    assert path.read_text() == "*.png binary\ndvc.lock text merge=union\n* -text\ndvc.lock -merge\n"
    checked = run(tmp_path, "git", "check-attr", "merge", "text", "--", "dvc.lock", "studies/attacks/dvc.lock")
    assert [line.rpartition(" ")[2] for line in checked.stdout.splitlines()] == ["unset"] * 4
    assert examine(tmp_path, quick=True).repaired == []


def test_outside_of_a_repository_nothing_is_added(tmp_path: Path) -> None:
    (tmp_path / ".dvc").mkdir()
    assert examine(tmp_path, quick=True).repaired == []
    assert not (tmp_path / ".gitattributes").exists()
