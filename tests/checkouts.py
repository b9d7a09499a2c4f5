"""Copies of this checkout as git repositories of their own, in which DVC really runs."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.forked_commands import forked_commands, forking

INSTALLED = {"PATH": os.environ["PATH"]}
"""Variables of a checkout whose commands are the installed ones, not those that a server forks."""


@dataclass(frozen=True)
class Checkout:
    """A git repository with this project in it."""

    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    """What the environment of its commands has beyond, or instead of, that of all checkouts."""

    def run(self, *command: str, check: bool = True, cwd: str = ".") -> subprocess.CompletedProcess[str]:
        """Run a command in it, with its own source code and its own DVC state."""
        done = subprocess.run(
            command, cwd=self.folder / cwd, capture_output=True, text=True, check=False, env=self.environment()
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
        return done

    def environment(self) -> dict[str, str]:
        """The environment of `run`."""
        return os.environ | {
            **forking(self.folder / "src"),
            "DVC_SITE_CACHE_DIR": str(self.folder / ".dvc" / "tmp" / "site"),
            "COLUMNS": "120",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
            **self.variables,
        }  # fmt: skip

    def commit(self, message: str) -> None:
        """Commit everything that git does not ignore."""
        self.run("git", "add", "--all")
        self.run("git", "commit", "--quiet", "--message", message)

    def clone(self, folder: Path, **variables: str) -> "Checkout":
        """A fresh clone, without any of DVC's data, with these variables in its environment."""
        subprocess.run(["git", "clone", "--quiet", str(self.folder), str(folder)], check=True)
        return Checkout(folder, variables)

    def clone_with_cache(self, folder: Path) -> "Checkout":
        """A fresh clone that shares this checkout's cache, with nothing checked out yet."""
        checkout = self.clone(folder)
        cache = self.folder / ".dvc" / "cache"
        (folder / ".dvc" / "config.local").write_text(f"[cache]\n    dir = {cache}\n")
        return checkout

    def clone_with_data(self, folder: Path) -> "Checkout":
        """A fresh clone with all of DVC's data, which shares this checkout's cache."""
        checkout = self.clone_with_cache(folder)
        checkout.run("dvc", "checkout", "--quiet")
        return checkout

    def pull_what_is_in(self, cache: Path, project: str = ".") -> None:
        """Pull what another cache has of the outputs of a DVC project in this checkout; no cache, nothing."""
        if not (cache / "files").is_dir():
            return
        settings = self.folder / project / ".dvc" / "config.local"
        settings.write_text(f"['remote \"other\"']\n    url = {cache}\n")
        self.run("dvc", "pull", "--quiet", "--remote", "other", check=False, cwd=project)
        settings.unlink()

    def with_environment(self) -> "Checkout":
        """This checkout, with the environment that runs the tests as its .venv, so that `make` sets none up.

        Its commands are forked, unless those of this checkout are the installed ones.
        """
        environment = self.folder / ".venv"
        (environment / "bin").mkdir(parents=True)
        for name in ("lib", "pyvenv.cfg"):
            (environment / name).symlink_to(Path(sys.prefix) / name)
        for path in (Path(sys.prefix) / "bin").iterdir():
            (environment / "bin" / path.name).symlink_to(path)
        if "PATH" not in self.variables:
            for path in forked_commands().iterdir():
                if os.access(path, os.X_OK) and path.is_file():
                    (environment / "bin" / path.name).unlink()
                    (environment / "bin" / path.name).symlink_to(path)
        (environment / ".ready").touch()
        return self

    def stages_run(self, *arguments: str) -> list[str]:
        """Run `dvc repro` and name the stages that really ran."""
        output = self.run("dvc", "repro", *arguments).stdout
        return [line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage")]


def holds_data(cache: Path, project: Path) -> bool:
    """Whether a cache holds everything in `data/` that the lock of a DVC project names."""
    lock = yaml.load((project / "dvc.lock").read_text(), yaml.CSafeLoader)
    outs = [out for stage in lock["stages"].values() for out in stage.get("outs", ())]
    digests = [out["md5"] for out in outs if out["path"].startswith("data/")]
    return all((cache / "files" / "md5" / md5[:2] / md5[2:]).is_file() for md5 in digests)


def copy_checkout(repository: Path, folder: Path) -> Checkout:
    """The files that git tracks or would, committed in a new repository."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=repository, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        # a link, also to a folder, is copied as one
        if (repository / name).is_file() or (repository / name).is_symlink():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(repository / name, folder / name, follow_symlinks=False)
    checkout = Checkout(folder)
    checkout.run("git", "init", "--quiet", "--initial-branch", "main")
    checkout.commit("Copy")
    return checkout


def files(folder: Path) -> dict[str, str]:
    """SHA-256 of every file under a folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
