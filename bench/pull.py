"""Pull of 9,000 images as this project publishes them, against DVC's own for as many plain files; over HTTP."""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measuring import BIN, PROJECT, Run, figures, print_machine, print_table, run, scratch, share
from tests.remotes.servers import nginx

ROUNDS = 3
LIMIT = 1.5
ROLES = ("standard", "norm_robust", "corruption_robust")
CLASSES, PER_CLASS, SIZE = 1_000, 3, 100_000
TRACKED = (".dvc/config", ".dvcignore", "dvc.yaml", "params.yaml", "sample/dvc.yaml", "sample/dvc.lock")
"""The files of this project that DVC reads; `src/` beside them is empty."""


def main() -> None:
    with scratch() as folder:
        publish_plain(folder)
        publish_project(folder)
        found: dict[str, list[Run]] = {}
        with served(folder) as url:
            ways = {
                "plain files, DVC's own settings": ("plain", "files", {}),
                "plain files, this project's settings": ("plain", "files", {"verify": "true", "jobs": "32"}),
                "dvc pull export": ("project", "export", {}),
            }
            for number in range(ROUNDS):
                for name in ways if number % 2 == 0 else reversed(ways):
                    source, target, settings = ways[name]
                    found.setdefault(name, []).append(pull(folder, source, target, {"url": url} | settings))
                    print(f"{name}: {found[name][-1].seconds:.1f} s", file=sys.stderr)
    print_machine()
    report(found)


def publish_plain(folder: Path) -> None:
    """Three folders of 3,000 files in one folder under `dvc add`, pushed to `folder`/remote."""
    plain = folder / "plain"
    drawn = random.Random(20261120)
    for role in ROLES:
        for number in range(CLASSES * PER_CLASS):
            path = plain / "files" / role / f"n{number // PER_CLASS:08}" / f"ILSVRC2012_val_{number:08}.JPEG"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(drawn.randbytes(SIZE))
    git(plain, "init", "--quiet")
    dvc(plain, "init", "--quiet")
    dvc(plain, "config", "core.analytics", "false")
    dvc(plain, "config", "cache.type", "hardlink")
    dvc(plain, "remote", "add", "--default", "origin", str(folder / "remote"))
    dvc(plain, "add", "--quiet", "files")
    dvc(plain, "push", "--quiet")
    dvc(plain, "config", "--unset", "cache.type")
    commit(plain)


def publish_project(folder: Path) -> None:
    """The same files as the exports of this project's pipeline, committed and pushed."""
    project = folder / "project"
    for name in TRACKED:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PROJECT / name, project / name)
    git(project, "init", "--quiet")
    for role in ROLES:
        shutil.copytree(folder / "plain" / "files" / role, project / "data" / "export" / role, copy_function=os.link)
    dvc(project, "remote", "modify", "--local", "origin", "url", str(folder / "remote"))
    dvc(project, "cache", "dir", "--local", str(folder / "plain" / ".dvc" / "cache"))
    dvc(project, "config", "--local", "cache.type", "hardlink")
    dependencies = subprocess.run(
        [sys.executable, "-c", "from dvc.repo import Repo\nfor stage in Repo().index.stages:\n"
         " if stage.addressing.startswith('export@'):\n  for dep in stage.deps:\n   print(dep.def_path)"],
        cwd=project, env=environment(project), capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    for name in dependencies:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        if not (project / name).exists():
            (project / name).write_bytes(b"")
    dvc(project, "commit", "--force", "--quiet", "export")
    dvc(project, "push", "--quiet", "export")
    (project / ".gitignore").write_text("/data/\n")
    commit(project)
    for made in (project / "data", folder / "plain" / "files", folder / "plain" / ".dvc" / "cache"):
        shutil.rmtree(made)


def pull(folder: Path, source: str, target: str, settings: dict[str, str]) -> Run:
    """Time the pull into a fresh clone. Exits unless all files came."""
    clone = folder / "clone"
    git(folder, "clone", "--quiet", str(folder / source), str(clone))
    for name, value in settings.items():
        dvc(clone, "remote", "modify", "--local", "origin", name, value)
    subprocess.run(["sync"], check=True)
    done = run(BIN / "dvc", "pull", "--quiet", target, cwd=clone, env=environment(clone))
    there = sum(path.stat().st_size == SIZE for path in clone.rglob("*.JPEG"))
    if there != len(ROLES) * CLASSES * PER_CLASS:
        sys.exit(f"{source}: {there} files came")
    shutil.rmtree(clone)
    return done


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The remote behind nginx on a port of loopback; gives its address."""
    with nginx(
        lambda port: f"server {{ listen 127.0.0.1:{port}; root {folder}/remote; }}",
        folder / "nginx",
        "http://127.0.0.1:{port}",
    ) as remote:
        yield remote.url


def report(found: dict[str, list[Run]]) -> None:
    """Print the medians, and the project's share of the limit."""
    times = {name: figures(runs)[:2] for name, runs in found.items()}
    rows: list[tuple[str, ...]] = [(name, *(f"{each:.1f}" for each in both)) for name, both in times.items()]
    plain, _, ours = times.values()
    ratios = tuple(mine / theirs for mine, theirs in zip(ours, plain, strict=True))
    rows.append(("the last by the first", *(f"{ratio:.2f}" for ratio in ratios)))
    rows.append(("limit", f"{LIMIT:g}", f"{LIMIT:g}"))
    rows.append(("of the limit", *(share(ratio, LIMIT) for ratio in ratios)))
    title = f"{len(ROLES) * CLASSES * PER_CLASS:,} files of {SIZE:,} bytes over loopback, median of {ROUNDS} rounds"
    print_table(title, ("what", "seconds", "processor seconds"), rows)


def dvc(folder: Path, *arguments: str) -> None:
    run(BIN / "dvc", *arguments, cwd=folder, env=environment(folder))


def git(folder: Path, *arguments: str) -> None:
    run("git", *arguments, cwd=folder)


def commit(folder: Path) -> None:
    run("git", "add", "--all", cwd=folder)
    git(folder, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "--message", "Publish")


def environment(folder: Path) -> dict[str, str]:
    return os.environ | {"DVC_SITE_CACHE_DIR": str(folder / ".dvc" / "tmp" / "site"), "NO_PROXY": "127.0.0.1"}


if __name__ == "__main__":
    main()
