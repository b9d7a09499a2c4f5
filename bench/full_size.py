"""The published set from an archive of ImageNet's size: its time beside the archive's MD5, and its memory.

`python bench/full_size.py [--archive TAR]`; the archive is drawn there if it is missing, and kept.
"""

import argparse
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from threading import Event, Thread
from time import perf_counter

import psutil

from cleanset.dataset.ilsvrc import OFFICIAL_IMAGES_MD5, image_id
from cleanset.files import blocks_of, md5
from measuring import BIN, PROJECT, PYTHON, REAL, Run, in_child, print_machine, print_table, scratch, share

IMAGES = 50_000
ARCHIVE = "ILSVRC2012_img_val.tar"
DEVKIT = "ILSVRC2012_devkit_t12.tar.gz"
BLOCK_BYTES = 2**22
MIB = 1_500
"""Limit of the memory of all processes together."""

RATIO = 1.5
"""Limit of the time of `cleanset published`, as a multiple of the MD5's."""

SAMPLE_SECONDS = 0.2
"""Interval between two looks at the memory."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--archive", type=Path, help="where the archive is, or is to be drawn and kept")
    options = parser.parse_args()
    with scratch() as folder:
        archive = (options.archive or folder / ARCHIVE).absolute()
        if not archive.exists():
            in_child(draw, archive)
        project = copy_project(folder / "project", archive)
        print_machine()
        print(f"{IMAGES:,} images, {archive.stat().st_size / 1e9:.1f} GB.", flush=True)
        published(project, archive)


def draw(archive: Path) -> None:
    """Write a tar of 50,000 different JPEGs with the official names, made from the photographs."""
    # imports numpy, which would count as memory of what is measured
    from photographs import photographs_or_drawings, variant

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
    """A copy of this project's files in which the drawn archive is the official one."""
    digests = {OFFICIAL_IMAGES_MD5: md5(blocks_of(archive))}
    official = (PROJECT / "imagenet" / "raw.md5").read_text().split()
    digests[official[official.index(f"data/raw/{DEVKIT}") - 1]] = md5(blocks_of(REAL / DEVKIT))
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(PROJECT / name, project / name, follow_symlinks=False)
    for name in ("src/cleanset/dataset/ilsvrc.py", "imagenet/raw.md5", "imagenet-published/raw.md5"):
        text = (project / name).read_text()
        for before, after in digests.items():
            text = text.replace(before, after)
        (project / name).write_text(text)
    return project


def published(project: Path, archive: Path) -> None:
    """Measure the command, what people do next with the set, and the MD5 of the archive."""
    out = project.parent / "scooter"
    load = f"import cleanset; print(len(cleanset.load('norm_robust', {str(out)!r})))"
    plain = measured(project, PYTHON, __file__, "--md5", archive)
    made = measured(project, BIN / "cleanset", "published", "--images", archive, "--out", out)
    checked = measured(project, BIN / "cleanset", "verify", out)
    loaded = measured(project, PYTHON, "-c", load)
    print(made.output, checked.output, loaded.output, sep="", file=sys.stderr)
    limit = RATIO * plain.seconds
    rows = [
        (*row("plain Python: read the archive and compute its MD5", plain), "", ""),
        (*row("cleanset published --images", made), f"{limit:.1f}", share(made.seconds, limit)),
        (*row("cleanset verify of the set", checked), "", ""),
        (*row("cleanset.load of the set, with the start of Python", loaded), "", ""),
    ]
    header = ("what", "seconds", "processor seconds", "peak MiB", "limit", "of the limit")
    print_table(f"The published set; limit {RATIO:g} times the MD5, {MIB:,} MiB", header, rows)


def row(name: str, done: Run) -> tuple[str, str, str, str]:
    mark = " (too much)" if done.peak_mib > MIB else ""
    return name, f"{done.seconds:.1f}", f"{done.processor_seconds:.1f}", f"{done.peak_mib:,.0f}{mark}"


def measured(project: Path, *command: str | Path) -> Run:
    """Run a command with the code of `project`. Exits with its output if it fails.

    The peak is of the command and all that it starts, together. A page of memory that several processes share is
    counted once: each has its share of it (PSS, which Linux alone has).
    """
    environment = os.environ | {"PYTHONPATH": str(project / "src"), "OMP_NUM_THREADS": "1"}
    with (project / "output").open("w+") as output:
        start = perf_counter()
        process = subprocess.Popen(
            command, cwd=project.parent, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        ended = Event()
        peaks = [0.0]
        sampler = Thread(target=sample, args=(process.pid, ended, peaks), daemon=True)
        sampler.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = perf_counter() - start
        ended.set()
        sampler.join()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {process.returncode}\n{text[-4000:]}")
    return Run(seconds, usage.ru_utime + usage.ru_stime, max(peaks), text)


def sample(pid: int, ended: Event, peaks: list[float]) -> None:
    """Append the MiB of a process and its descendants again and again, until it has ended."""
    while not ended.wait(SAMPLE_SECONDS):
        whole = 0
        try:
            root = psutil.Process(pid)
            for each in (root, *root.children(recursive=True)):
                whole += each.memory_full_info().pss
        except psutil.Error:  # one has just ended
            continue
        peaks.append(whole / 2**20)


def print_md5(archive: Path) -> None:
    """Read and hash the archive, as `md5sum` does."""
    digest = hashlib.md5(usedforsecurity=False)
    with archive.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    print(digest.hexdigest())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--md5"]:
        print_md5(Path(sys.argv[2]))
    else:
        main()
