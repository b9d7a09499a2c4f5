"""An archive of ImageNet's size: the published set from it, the edition `imagenet-published/`, and the daily work.

`python bench/full_size.py [--archive TAR] [PART …]`; the archive is drawn there if it is missing, and kept.
"""

import argparse
import csv
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

from cleanset.dataset.ilsvrc import OFFICIAL_IMAGES_MD5, image_id
from cleanset.files import blocks_of, md5
from measuring import BIN, PROJECT, PYTHON, REAL, Run, in_child, print_machine, print_table, scratch, share, together
from process_trees import StageUse, TreeRun, run_tree
from pull import commit, environment, git, served
from tests.remotes.servers import sshd

IMAGES = 50_000
ROLES = ("standard", "norm_robust", "corruption_robust")
EDITION = "imagenet-published"
ARCHIVE, DEVKIT = "ILSVRC2012_img_val.tar", "ILSVRC2012_devkit_t12.tar.gz"
MIB = 1_500
SLOWEST = 8
"""Stages shown apart."""

PREPROCESS, PUBLISHED, VERDICT, VERIFY, REPORT = 1.25, 1.5, 60.0, 1.3, 60.0
"""Limits: ratios to the plain way for preprocess, published and verify, else seconds."""

SSH = ("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR")
HEADER = ("what", "seconds", "processor seconds", "peak MiB", "limit", "of the limit")

Row = tuple[str, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all if none is named")
    parser.add_argument("--archive", type=Path, help="where the archive is, or is to be drawn and kept")
    options = parser.parse_args()
    with scratch() as folder:
        archive = (options.archive or folder / ARCHIVE).absolute()
        if not archive.exists():
            in_child(draw, archive)
        project = copy_project(folder / "project", archive)
        print_machine()
        print(f"{IMAGES:,} images, {archive.stat().st_size / 1e9:.1f} GB.", flush=True)
        for part in options.parts or PARTS:
            PARTS[part](project, archive)


def draw(archive: Path) -> None:
    """Write a tar of 50,000 different JPEGs with the official names, made from the photographs."""
    from export import (
        photographs_or_drawings,
        variant,
    )  # imports pandas, which would count as memory of what is measured

    _, photographs = photographs_or_drawings()
    partial = archive.with_suffix(".partial")
    with tarfile.open(partial, "w", format=tarfile.USTAR_FORMAT) as tar:
        for number in range(IMAGES):
            times, which = divmod(number, len(photographs))
            changed = variant(photographs[which], times)
            member = tarfile.TarInfo(f"{image_id(number + 1)}.JPEG")
            member.size = len(changed)
            tar.addfile(member, io.BytesIO(changed))
    partial.rename(archive)


def copy_project(project: Path, archive: Path) -> Path:
    """A git repository of this project's files in which the drawn archives are the official ones, in raw.md5 too.

    In its edition every image that nobody has looked at is clean, so that the sets are full.
    """
    raw = project / "imagenet" / "data" / "raw"
    raw.mkdir(parents=True)
    for path, name in ((archive, ARCHIVE), (REAL / DEVKIT, DEVKIT)):
        (raw / name).symlink_to(path.resolve())
    official = dict(line.split("  ")[::-1] for line in (PROJECT / "imagenet" / "raw.md5").read_text().splitlines())
    digests = {digest: md5(blocks_of(project / "imagenet" / name)) for name, digest in official.items()}
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(PROJECT / name, project / name, follow_symlinks=False)
    for name in ("src/cleanset/dataset/ilsvrc.py", "imagenet/raw.md5", f"{EDITION}/raw.md5"):
        text = (project / name).read_text()
        for before, after in digests.items():
            text = text.replace(before, after)
        (project / name).write_text(text)
    params = project / EDITION / "params.yaml"
    text, changes = re.subn("unreviewed: pending", "unreviewed: clean", params.read_text())
    if changes != 1 or OFFICIAL_IMAGES_MD5 not in digests:
        sys.exit(f"{EDITION}: params.yaml or raw.md5 is not as expected")
    params.write_text(text)
    git(project, "init", "--quiet")
    commit(project)
    return project


def variables(project: Path) -> dict[str, str]:
    """The environment in which a command runs the code of `project`."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return environment(project) | {"PATH": path, "PYTHONPATH": str(project / "src"), "OMP_NUM_THREADS": "1"}


def measured(
    project: Path, *command: str | Path, cwd: Path | None = None, more: Mapping[str, str] | None = None
) -> TreeRun:
    """Run a command of the environment in the edition, or in `cwd`, with `more` environment variables."""
    program = BIN / command[0] if (BIN / command[0]).exists() else command[0]
    done = run_tree(program, *command[1:], cwd=cwd or project / EDITION, env={**variables(project), **(more or {})})
    print(f"{' '.join(map(str, command))[:100]}: {done.seconds:.1f} s", file=sys.stderr, flush=True)
    return done


def plain(project: Path, name: str, archive: Path) -> TreeRun:
    return measured(project, PYTHON, PROJECT / "bench" / "plain_loops.py", name, archive)


def published(project: Path, archive: Path) -> None:
    """The published set, from the archive, by the slim command."""
    instead = plain(project, "md5", archive)
    out = project.parent / "scooter"
    done = measured(project, "cleanset", "published", "--images", archive, "--out", out, cwd=project.parent)
    checked = measured(project, "cleanset", "verify", out, cwd=project.parent)
    loaded = measured(
        project, "python", "-c", f"import cleanset; print(len(cleanset.load('norm_robust', {str(out)!r})))",
        cwd=project.parent,
    )  # fmt: skip
    print(done.output, checked.output, loaded.output, sep="", file=sys.stderr)
    rows = [
        row("plain Python: read the archive and compute its MD5", instead),
        row("cleanset published --images", done, PUBLISHED * instead.seconds),
        row("cleanset verify of the set", checked),
        row("cleanset.load of the set, with the start of Python", loaded),
    ]
    print_table(f"The published set; limit {PUBLISHED:g} times the MD5, {MIB:,} MiB", HEADER, rows)
    shutil.rmtree(out)


def edition(project: Path, archive: Path) -> None:
    """All of `dvc repro`, by stage, and what one does with the finished edition."""
    instead = plain(project, "decode", archive)
    done = measured(project, "dvc", "repro")
    commit(project)
    slowest = sorted(done.stages, key=lambda name: done.stages[name].seconds, reverse=True)
    whole = sum(stage.seconds for stage in done.stages.values())
    rows = [row("plain Python: read, hash and decode each image", instead)]
    limits = {"preprocess": PREPROCESS * instead.seconds, "report": REPORT}
    rows += [row(f"cleanset {name}", done.stages[name], limits.get(name)) for name in slowest[:SLOWEST]]
    others = [done.stages[name] for name in slowest[SLOWEST:]]
    rest = together([Run(each.seconds, each.processor_seconds, each.peak_mib, "") for each in others])
    rows.append(row(f"the other {len(others)} stages", rest))
    rows.append(row("dvc repro, all of it", done))
    rows.append(("of it: DVC, between the stages", f"{done.seconds - whole:.1f}", "", "", "", ""))
    print_table(f"{EDITION}: dvc repro; limit {PREPROCESS:g} times the loop, {MIB:,} MiB", HEADER, rows)
    daily(project)
    sent(project)


def daily(project: Path) -> None:
    export = project / EDITION / "data" / "export"
    nothing = measured(project, "dvc", "repro")
    metrics = measured(project, "dvc", "metrics", "show")
    hashing = measured(project, PYTHON, PROJECT / "bench" / "hashing.py", export)
    each = " && ".join(f"{BIN / 'cleanset'} verify {export / role}" for role in ROLES)
    verify = measured(project, "sh", "-c", each)
    print(verify.output, file=sys.stderr)
    rejected = reject_one(project / EDITION)
    changed = measured(project, "dvc", "repro", "export")
    if rejected in (export / ROLES[0] / "manifest.csv").read_text():
        sys.exit(f"{rejected} is still in the set")
    rows = [
        row("dvc repro with nothing to do", nothing),
        row("dvc metrics show", metrics),
        row("one changed verdict, to the new export", changed, VERDICT),
        row("reading and hashing 3 sets, a process per core", hashing),
        row("cleanset verify, 3 sets", verify, VERIFY * hashing.seconds),
    ]
    print_table(f"The finished edition; limit of verify {VERIFY:g} times the hashing", HEADER, rows)


def reject_one(edition: Path) -> str:
    """Reject the first image in the set of the first role that nobody has looked at; return its id."""
    with (edition / "data" / "export" / ROLES[0] / "manifest.csv").open(newline="") as file:
        line = next(line for line in csv.DictReader(file) if line["reviewers"] == "0")
    reviewer = edition / "reviews" / "somebody"
    reviewer.mkdir()
    (reviewer / f"{line['wnid']}.yaml").write_text(
        f"{line['wnid']}:\n  {line['image_id']}:\n    verdict: reject\n    reason: watermark\n"
        f"    sha256: {line['source_sha256']}\n"
    )
    return line["image_id"]


def sent(project: Path) -> None:
    """Push the sets over SSH and pull them over HTTP, on loopback; beside it the same files by scp and curl."""
    folder, export = project.parent, project / EDITION / "data" / "export"
    (folder / "remote").mkdir()
    with sshd(folder / "remote" / "dvc", folder / "ssh") as remote:
        scp = ("scp", "-F", remote.variables["HOME"] + "/.ssh/config", *SSH, "-rq")
        plain_push = measured(project, *scp, export, f"server:{folder / 'remote' / 'plain'}", more=remote.variables)
        measured(project, "dvc", "remote", "modify", "--local", "origin", "url", remote.url)
        push = measured(project, "dvc", "push", "export", more=remote.variables)
    commit(project)
    with served(folder) as url:
        files = [path.relative_to(export) for path in sorted(export.rglob("*")) if path.is_file()]
        pairs = "".join(f'url = "{url}/plain/{name}"\noutput = "{folder}/curl/{name}"\n' for name in files)
        (folder / "curl.txt").write_text(pairs)
        curl = ("curl", "--silent", "--fail", "--create-dirs", "--parallel", "--parallel-max", "32", "--config")
        plain_pull = measured(project, *curl, folder / "curl.txt")
        clone = folder / "clone"
        git(folder, "clone", "--quiet", str(project), str(clone))
        measured(clone, "dvc", "remote", "modify", "--local", "origin", "url", f"{url}/dvc")
        pull = measured(clone, "dvc", "pull", "export")
    came = sum(path.is_file() for path in (clone / EDITION / "data" / "export").rglob("*"))
    if came != len(files):
        sys.exit(f"{came} of {len(files)} files came")
    rows = [
        row("scp, over SSH", plain_push),
        row("dvc push export, over SSH", push),
        row("curl, 32 connections, over HTTP", plain_pull),
        row("dvc pull export, over HTTP", pull),
    ]
    size = sum((export / name).stat().st_size for name in files) / 1e6
    print_table(f"3 sets, {len(files):,} files, {size:,.0f} MB, over loopback", HEADER, rows)


def row(name: str, done: Run | StageUse, limit: float | None = None) -> Row:
    """A line of a table; more than `MIB` is marked."""
    against = (f"{limit:.1f}", share(done.seconds, limit)) if limit else ("", "")
    mark = " (too much)" if done.peak_mib > MIB else ""
    return name, f"{done.seconds:.1f}", f"{done.processor_seconds:.1f}", f"{done.peak_mib:,.0f}{mark}", *against


PARTS: Mapping[str, Callable[[Path, Path], None]] = {"published": published, "edition": edition}


if __name__ == "__main__":
    main()
