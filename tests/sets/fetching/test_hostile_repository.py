"""`cleanset fetch` from a repository that means harm: one clean error each, and nothing is written but in the cache."""

import hashlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cleanset.errors import CleansetError
from cleanset.sets.fetching import fetch, repository
from tests.checkouts import files
from tests.sets.fetching.publisher import Publisher

COMMIT = "0123456789" * 4
MD5 = "0123456789abcdef" * 2
PATH = "n01440764/ILSVRC2012_val_00000001.JPEG"
SETTINGS = "[core]\n    remote = origin\n['remote \"origin\"']\n    url = {}\n"
OUT = f"{{path: data/export/standard, hash: md5, md5: {MD5}.dir}}"


@dataclass
class Repository:
    """Stands in for a snapshot of a git repository; a text for each path."""

    published: Any
    texts: dict[str, str]
    commit: str = COMMIT

    def read(self, path: str) -> str | None:
        return self.texts.get(path)

    def folders_with(self, *names: str) -> list[str]:
        return []


def refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lock: str, settings: str) -> str:
    """The one line with which a fetch into a new folder ends."""
    texts = {"dvc.lock": lock, ".dvc/config": settings}
    monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(repository, "snapshot", lambda published, *_: Repository(published, texts))
    before = files(tmp_path)
    with pytest.raises(CleansetError) as raised:
        fetch.run("https://example.org/sets.git", "standard", COMMIT, ".", tmp_path / "out")
    message = str(raised.value)
    assert "\n" not in message
    assert len(message) < 600
    assert {name: data for name, data in files(tmp_path).items() if not name.startswith("cache/")} == before
    assert not list((tmp_path / "cache").glob("*/standard"))
    return message


LOCKS = {
    "empty": ("", "dvc.lock: not readable"),
    "no mapping": ("[]", "dvc.lock: not readable"),
    "text": ("stages", "dvc.lock: not readable"),
    "no stages": ("schema: '2.0'\n", "dvc.lock: not readable"),
    "stages are a list": ("stages: []", "dvc.lock: not readable"),
    "stages are null": ("stages: null", "dvc.lock: not readable"),
    "a stage is a number": ("stages: {a: 1}", "dvc.lock: not readable"),
    "a stage is a list": (f"stages: {{a: [{OUT}]}}", "dvc.lock: not readable"),
    "outs are null": ("stages: {a: {outs: null}}", "dvc.lock: not readable"),
    "outs are a number": ("stages: {a: {outs: 7}}", "dvc.lock: not readable"),
    "an out is text": ("stages: {a: {outs: [path]}}", "dvc.lock: not readable"),
    "an out is a list": ("stages: {a: {outs: [[path]]}}", "dvc.lock: not readable"),
    "an out without a path": ("stages: {a: {outs: [{md5: a}]}}", "dvc.lock: not readable"),
    "a path is a number": ("stages: {a: {outs: [{path: 7}]}}", "dvc.lock: not readable"),
    "a path is a list": ("stages: {a: {outs: [{path: [data/export/standard]}]}}", "dvc.lock: not readable"),
    "a path is null": ("stages: {a: {outs: [{path: null}]}}", "dvc.lock: not readable"),
    "a path twice": (f"stages: {{a: {{outs: [{OUT}, {OUT}]}}}}", "dvc.lock: not readable"),
    "a key twice": (f"stages: {{a: {{outs: []}}}}\nstages: {{a: {{outs: [{OUT}]}}}}", "dvc.lock: not readable"),
    "no such set": ("stages: {a: {outs: [{path: data/export/vit}]}}", "no finished set of model standard; expected"),
    "no MD5": ("stages: {a: {outs: [{path: data/export/standard, hash: md5}]}}", "no MD5 of data/export/standard"),
    "an MD5 of a file": (f"stages: {{a: {{outs: [{OUT.replace('.dir', '')}]}}}}", "no MD5 of data/export/standard"),
    "an MD5 that leads out": (OUT.replace(MD5, "../" * 11) and "stages: {a: {outs: [{path: data/export/standard, "
        "hash: md5, md5: ../../../../../../../../../../etc/passwd.dir}]}}", "no MD5 of data/export/standard"),
    "an MD5 is a list": ("stages: {a: {outs: [{path: data/export/standard, hash: md5, md5: []}]}}", "no MD5 of data"),
    "an MD5 is not a number": ("stages: {a: {outs: [{path: data/export/standard, hash: md5, md5: .nan}]}}", "no MD5"),
    "deep nesting": ("[" * 30_000, "dvc.lock: not readable"),
    "deep mappings": ("".join(" " * level + "a:\n" for level in range(1500)), "dvc.lock: not readable"),
    "an invalid date": ("stages: 2026-99-99", "dvc.lock: not readable"),
    "endless digits": (f"stages: {{a: {'1' * 5000}}}", "dvc.lock: not readable"),
    "a Python object": ("stages: !!python/object/apply:os.getcwd []", "dvc.lock: not readable"),
    "an unhashable key": ("stages: {[a]: b}", "dvc.lock: not readable"),
    "a merge key": (f"a: &a {{outs: [{OUT}]}}\nstages: {{b: {{<<: *a}}}}", "dvc.lock: not readable"),
    "bad syntax": ("stages: [", "dvc.lock: not readable"),
    "control characters": ("stages: \x00", "dvc.lock: not readable"),
    "a merge conflict": ("<<<<<<< HEAD\nstages: {}\n=======\n", "dvc.lock: not readable"),
}  # fmt: skip


@pytest.mark.parametrize("name", LOCKS)
def test_hostile_locks(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, expected = LOCKS[name]
    assert expected in refusal(tmp_path, monkeypatch, text, SETTINGS.format(tmp_path))


CONFIGS = {
    "empty": ("", "no default remote"),
    "no section": ("url = a", "not readable"),
    "bad syntax": ("[core", "not readable"),
    "a line of nothing": ("[core]\nremote\n", "not readable"),
    "no such remote": ("[core]\nremote = origin\n", "no default remote"),
    "a NUL": (SETTINGS.format("/a\0b"), "url '/a\\x00b'; expected"),
    "a bracket": (SETTINGS.format("https://[::1/sets"), "https://[::1/sets"),
    "a bracket in a file's": (SETTINGS.format("file://[a/sets"), "file://[a/sets"),
    "an invalid port": (SETTINGS.format("http://127.0.0.1:port/"), "http://127.0.0.1:port"),
    "no host": (SETTINGS.format("http://"), "http:"),
    "a blank": (SETTINGS.format("http://127.0.0.1:9/a b"), "http://127.0.0.1:9/a b"),
    "a host of dots": (SETTINGS.format(f"http://{'é' * 70}.example"), "http://é"),
    "a long path": (SETTINGS.format("/" + "a" * 5000), "remote unreachable"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_hostile_settings(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, expected = CONFIGS[name]
    assert expected in refusal(tmp_path, monkeypatch, f"stages: {{a: {{outs: [{OUT}]}}}}", text)


def entry(relpath: object = PATH, md5: object = MD5) -> list[object]:
    return [{"md5": md5, "relpath": relpath}]


LISTINGS: dict[str, Any] = {
    "empty": b"",
    "text": b"files",
    "a number": 7,
    "null": None,
    "a mapping": {"md5": MD5, "relpath": PATH},
    "an entry is text": [PATH],
    "an entry is null": [None],
    "an entry is a list": [[MD5, PATH]],
    "no path": [{"md5": MD5}],
    "no MD5": [{"relpath": PATH}],
    "a path is a number": entry(7),
    "a path is null": entry(None),
    "a path is a list": entry([PATH]),
    "an empty path": entry(""),
    "a point": entry("."),
    "an absolute path": entry("/etc/passwd"),
    "a path that leads out": entry("../../README.md"),
    "a path that leads out within": entry(f"n01440764/../../{PATH}"),
    "a folder": entry("n01440764/"),
    "points within": entry(f"./{PATH}"),
    "a NUL": entry("n01440764/a\0b.JPEG"),
    "a surrogate": entry("n01440764/\ud800.JPEG"),
    "a line break": entry("n01440764/a\nb.JPEG"),
    "a long name": entry(f"n01440764/{'a' * 300}.JPEG"),
    "a deep path": entry("a/" * 2000 + "a.JPEG"),
    "a path twice": [*entry(), *entry()],
    "a path twice, of two files": [*entry(), *entry(md5="f" * 32)],
    "a file as a folder": [*entry("n01440764"), *entry()],
    "an MD5 is a number": entry(md5=7),
    "an MD5 is null": entry(md5=None),
    "an MD5 that leads out": entry(md5="../../../../etc/passwd"),
    "an MD5 of a folder": entry(md5=f"{MD5}.dir"),
    "an MD5 in full-width digits": entry(md5="\uff10" * 32),
    "an invalid number": b'[{"md5": "' + MD5.encode() + b'", "relpath": "a", "size": NaN}]',
    "endless digits": b"[" + b"1" * 5000 + b"]",
    "a key twice": f'[{{"md5": "{MD5}", "relpath": "a", "relpath": "../b"}}]'.encode(),
    "deep nesting": b"[" * 50_000,
    "not UTF-8": b'[{"md5": "\xff", "relpath": "a"}]',
    "UTF-16": json.dumps(entry()).encode("utf-16"),
    "more than any set has": b"[" + b" " * (1 << 25) + b"]",
}


@pytest.mark.parametrize("name", LISTINGS)
def test_hostile_listings(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = LISTINGS[name]
    data = listing if isinstance(listing, bytes) else json.dumps(listing).encode()
    md5 = hashlib.md5(data).hexdigest()
    folder = tmp_path / "remote" / "files" / "md5"
    for name_of, content in ((f"{md5}.dir", data), (MD5, b"content")):
        (folder / name_of[:2]).mkdir(parents=True, exist_ok=True)
        (folder / name_of[:2] / name_of[2:]).write_bytes(content)
    lock = f"stages: {{a: {{outs: [{OUT.replace(MD5, md5)}]}}}}"
    message = refusal(tmp_path, monkeypatch, lock, SETTINGS.format(tmp_path / "remote"))
    assert "the list of the set's files" in message


def test_a_role_that_leads_out_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path / "cache"))
    for model in ("../../standard", "/standard", ".", "Standard", "a b"):
        with pytest.raises(CleansetError, match="; expected the role of a model: small letters, digits and _"):
            fetch.run("https://example.org/sets.git", model, COMMIT, ".", tmp_path / "out")


def test_folders_that_hold_each_other(publisher: Publisher) -> None:
    """Ten thousand million files in a few objects, none of them a dvc.lock: nobody lists them."""
    publisher.commit("Begin")

    def made(command: str, given: str) -> str:
        return subprocess.run(
            ["git", command, *(["-w", "--stdin"] if command == "hash-object" else [])],
            cwd=publisher.repository, input=given, capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip

    kind, held = "100644 blob", made("hash-object", "a file")
    for _ in range(10):
        held = made("mktree", "".join(f"{kind} {held}\t{number}\n" for number in range(10)))
        kind = "040000 tree"
    commit = publisher.git("commit-tree", "-m", "Many", held)
    publisher.git("update-ref", "HEAD", commit)
    with pytest.raises(CleansetError, match=r"no dvc\.lock; .+; it has no edition"):
        fetch.run(publisher.url, "standard", None, ".", None)


@pytest.mark.long
def test_other_things_than_files_in_the_repository(publisher: Publisher, export: Path, tmp_path: Path) -> None:
    publisher.push(export, str(publisher.remote))
    lock = publisher.repository / "dvc.lock"
    text = lock.read_text()
    lock.unlink()
    lock.mkdir()
    (lock / "a").touch()
    publisher.commit("A folder")
    with pytest.raises(CleansetError, match=r", dvc\.lock: a tree of git; expected a file"):
        fetch.run(publisher.url, "standard", None, ".", None)
    (lock / "a").unlink()
    lock.rmdir()
    lock.symlink_to("/etc/passwd")
    publisher.commit("A link")
    with pytest.raises(CleansetError, match=r"dvc\.lock: not readable"):
        fetch.run(publisher.url, "standard", None, ".", None)
    lock.unlink()
    lock.write_text(text + "#" * (1 << 24))
    publisher.commit("A large file")
    with pytest.raises(CleansetError, match=r"dvc\.lock: [0-9,]+ bytes; expected at most 16,777,216"):
        fetch.run(publisher.url, "standard", None, ".", None)


@pytest.mark.parametrize("name", ["directory", "remote", "url", "deep"])
def test_a_damaged_location_is_looked_up_again(name: str, publisher: Publisher, export: Path, tmp_path: Path) -> None:
    publisher.push(export, str(publisher.remote))
    assert fetch.run(publisher.url, "standard", None, ".", None).images == 6
    (path,) = (tmp_path / "cache" / "sets").iterdir()
    found = json.loads(path.read_text())
    damaged = {
        "directory": found | {"directory": 7},
        "remote": found | {"remote": {"name": "origin", "options": [], "root": "."}},
        "url": found | {"remote": {"name": "origin", "options": {"url": 7}, "root": "."}},
    }
    path.write_text("[" * 50_000 if name == "deep" else json.dumps(damaged[name]))
    assert fetch.run(publisher.url, "standard", None, ".", None).images == 6
    assert json.loads(path.read_text()) == found
