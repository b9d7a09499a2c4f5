"""An edition that a stranger packed: what reads or repairs it writes nothing elsewhere, and asks nobody."""

import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from cleanset.edition.code_link import LINKED, relink_code
from cleanset.edition.doctor import as_text, examine
from cleanset.edition.locks import repair_locks
from cleanset.errors import CleansetError
from cleanset.planning.stages import stage_states
from cleanset.plumbing.files import md5
from cleanset.status import _Digests as Digests

MD5 = "d41d8cd98f00b204e9800998ecf8427e"
ENTRY = f"    - path: {{path}}\n      hash: md5\n      md5: {MD5}\n      size: 0\n"
LOCK = f"schema: '2.0'\nstages:\n  one:\n    cmd: a\n    outs:\n{ENTRY}"
PIPELINE = "stages:\n  one:\n    cmd: a\n    outs: [a]\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder of the user, with a file."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "profile").write_text("mine\n")
    return tmp_path / "home"


@pytest.fixture
def edition(tmp_path: Path) -> Path:
    edition = tmp_path / "edition"
    (edition / ".dvc").mkdir(parents=True)
    (edition / ".dvc" / "config").write_text("[core]\n    no_scm = true\n    analytics = false\n")
    (edition / "dvc.yaml").write_text(PIPELINE)
    (edition / "dvc.lock").write_text(LOCK.format(path="a"))
    return edition


def test_a_link_in_place_of_a_damaged_lock(edition: Path, home: Path) -> None:
    repair_locks(edition)
    lock = edition / "dvc.lock"
    lock.write_text(LOCK.format(path="b") + "  two:\n    cm")
    (edition / "dvc.lock.damaged").symlink_to(home / "profile")
    repair_locks(edition)
    assert (home / "profile").read_text() == "mine\n"
    assert not (edition / "dvc.lock.damaged").is_symlink()


@pytest.mark.parametrize("link", [".dvc", ".dvc/tmp", ".dvc/tmp/whole"])
def test_links_in_place_of_folders_that_are_written_to(link: str, edition: Path, home: Path) -> None:
    (home / "rwlock").touch()
    if link == ".dvc":
        (edition / ".dvc").rename(edition / "dvc")
    (edition / link).parent.mkdir(exist_ok=True, parents=True)
    (edition / link).symlink_to(home)
    with pytest.raises(CleansetError, match=f"{link}: a symbolic link; expected none where"):
        repair_locks(edition)
    assert sorted(path.name for path in home.iterdir()) == ["profile", "rwlock"]


def test_a_link_in_place_of_the_links_to_the_code(edition: Path, home: Path) -> None:
    (home / "requirements.txt").write_text("mine\n")
    (edition / "params.yaml").write_text(f"root: {LINKED}\n")
    (edition / LINKED).symlink_to(home)
    with pytest.raises(CleansetError, match=f"{LINKED}: a symbolic link; expected none where something is written"):
        relink_code(edition)
    assert (home / "requirements.txt").read_text() == "mine\n"
    assert sorted(path.name for path in home.iterdir()) == ["profile", "requirements.txt"]


@pytest.mark.parametrize("path", ["/dev/zero", "../home/profile", "a/../../home/profile"])
def test_a_file_elsewhere(path: str, edition: Path, home: Path) -> None:
    (edition / "dvc.lock").write_text(LOCK.format(path=path))
    with pytest.raises(CleansetError, match=r"dvc\.lock: '.+; expected a path in the edition: restore the file$"):
        examine(edition, quick=False)


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        (f'[{{"md5": "{MD5}", "relpath": "../../home/profile"}}]', "expected a path in the edition"),
        ('[{"md5": "../../../home", "relpath": "a"}]', "md5 '../../../home'; expected a list of DVC's"),
    ],
)
def test_a_list_of_files_elsewhere(listed: str, message: str, edition: Path) -> None:
    digest = md5([listed.encode()])
    cached = edition / ".dvc" / "cache" / "files" / "md5" / digest[:2] / f"{digest[2:]}.dir"
    cached.parent.mkdir(parents=True)
    cached.write_text(listed)
    text = LOCK.format(path="a").replace(f"md5: {MD5}", f"md5: {digest}.dir") + "      nfiles: 1\n"
    (edition / "dvc.lock").write_text(text)
    (edition / "a").mkdir()
    with pytest.raises(CleansetError, match=message):
        examine(edition, quick=False)


def test_advice_with_a_name_that_a_shell_or_terminal_would_run(edition: Path) -> None:
    name = "a;touch pwned;\x1b[2J"
    (edition / "dvc.lock").write_text(LOCK.format(path='"a;touch pwned;\\e[2J"'))
    (edition / name).write_text("other")
    findings = examine(edition, quick=False)
    text = as_text(findings)
    assert text.isascii()
    assert "\x1b" not in text
    (rotten,) = findings.rotten
    subprocess.run(["sh", "-c", rotten.repair], cwd=edition, capture_output=True, check=False)
    assert not (edition / "pwned").exists()
    assert not (edition / name).exists()


SETTINGS = """\
[core]
    no_scm = true
    analytics = false
    site_cache_dir = {edition}/pickles
['remote "store"']
    url = s3://bucket/a
    endpointurl = http://127.0.0.1:9
    configpath = aws.ini
    profile = docs
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("dependency", "message"),
    [("remote://store/a", "DVC cannot read it"), ("{url}/a", "expected files alone"), ("ds://a", "expected files")],
)
def test_dvc_asks_no_address_and_runs_no_program(dependency: str, message: str, edition: Path) -> None:
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            asked.append(self.path)

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        (edition / ".dvc" / "config").write_text(SETTINGS.format(edition=edition))
        program = f'credential_process = /bin/sh -c "touch {edition}/has_run; echo {{}}"'
        (edition / ".dvc" / "aws.ini").write_text(f"[profile docs]\nregion = us-east-1\n{program}\n")
        dependency = dependency.format(url=f"http://127.0.0.1:{server.server_port}")
        (edition / "dvc.yaml").write_text(PIPELINE + f"    deps: ['{dependency}']\n")
        with pytest.raises(CleansetError, match=message):
            stage_states(edition)
        server.shutdown()
    assert asked == []
    assert not (edition / "has_run").exists()
    assert not (edition / "pickles").exists()


@pytest.mark.long
def test_dvc_keeps_its_state_where_the_user_says(
    edition: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DVC_SITE_CACHE_DIR", raising=False)
    monkeypatch.setenv("DVC_GLOBAL_CONFIG_DIR", str(tmp_path))
    (tmp_path / "config").write_text(
        f"[core]\n    site_cache_dir = {tmp_path}/site\n['remote \"store\"']\n    profile = b\n"
    )
    (edition / ".dvc" / "config").write_text(SETTINGS.format(edition=edition))
    assert stage_states(edition).changed == {"one": [{"changed outs": {"a": "not in cache"}}]}
    assert [path.name for path in (tmp_path / "site").iterdir()] == ["repo"]
    assert not (edition / "pickles").exists()


def test_status_and_plan_write_through_no_link(edition: Path, home: Path) -> None:
    (edition / ".dvc" / "tmp").symlink_to(home)
    with pytest.raises(CleansetError, match=r"\.dvc/tmp: a symbolic link"):
        stage_states(edition)
    digests = Digests(edition / ".dvc" / "tmp" / "cleanset-images.json")
    digests.of({"a": edition / "dvc.yaml"}, "md5")
    with pytest.raises(CleansetError, match=r"\.dvc/tmp: a symbolic link"):
        digests.save()
    assert [path.name for path in home.iterdir()] == ["profile"]
