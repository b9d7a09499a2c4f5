"""The published set from an archive of ImageNet's size: its time beside that of md5sum, and its memory.

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
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread
from time import perf_counter

import psutil

from cleanset.dataset.ilsvrc import OFFICIAL_IMAGES_MD5, image_id
from cleanset.plumbing.files import blocks_of, md5
from cleanset.plumbing.machine import available_cores
from measuring import BIN, PROJECT, PYTHON, REAL, Run, in_child, print_machine, print_table, scratch, share

IMAGES = 50_000
ARCHIVE = "ILSVRC2012_img_val.tar"
DEVKIT = "ILSVRC2012_devkit_t12.tar.gz"
MIB = 1_500
"""Limit of the memory of all processes together."""

RATIOS = {2: 1.2, 1: 2.0}
"""Limits of the time of `cleanset published` as a multiple of md5sum's, by the number of cores."""

VERIFY_RATIOS = {"in the page cache": 1.3, "not in it": 1.2}
"""Limits of the time of `cleanset verify` as a multiple of hashing the same files."""

VERIFY_MIB = 60
"""Limit of the memory of `cleanset verify`."""

ROUNDS = 3
"""Times that verify and hashing are measured, one after the other; the shortest time of each counts."""

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
    rows = []
    for cores, ratio in RATIOS.items():
        if cores > available_cores():
            continue
        shutil.rmtree(out, ignore_errors=True)
        pinned = ["taskset", "--cpu-list", ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores]))]
        plain = measured(project, *pinned, "md5sum", archive)
        made = measured(project, *pinned, BIN / "cleanset", "published", "--images", archive, "--out", out)
        print(made.output, file=sys.stderr)
        rows += [(*row(f"md5sum, cores: {cores}", plain), "", "", ""), beside("cleanset published", made, plain, ratio)]
    load = f"import cleanset; print(len(cleanset.load('norm_robust', {str(out)!r})))"
    loaded = measured(project, PYTHON, "-c", load)
    rows.append((*row("cleanset.load of the set, with the start of Python", loaded), "", "", ""))
    header = ("what", "seconds", "processor seconds", "peak MiB", "ratio", "limit", "of the limit")
    print_table(f"The published set; limit of the memory {MIB:,} MiB", header, rows)
    print_table(f"Its verification; limit of the memory {VERIFY_MIB} MiB", header, list(verified(project, out)))


def verified(project: Path, folder: Path) -> Iterator[tuple[str, ...]]:
    """Rows of verify and of hashing the same files, with the files in the page cache and without."""
    for where, ratio in VERIFY_RATIOS.items():
        hashed: list[Run] = []
        checked: list[Run] = []
        for _ in range(ROUNDS):
            for runs, command in (
                (hashed, (PYTHON, __file__, "--sha256", folder)),
                (checked, (BIN / "cleanset", "verify", folder)),
            ):
                if where == "not in it":
                    leave_page_cache(folder)
                runs.append(measured(project, *command))
        plain = min(hashed, key=lambda each: each.seconds)
        yield *row(f"plain Python: SHA-256 of each file, {where}", plain), "", "", ""
        yield beside("cleanset verify", min(checked, key=lambda each: each.seconds), plain, ratio)


def beside(name: str, done: Run, plain: Run, ratio: float) -> tuple[str, ...]:
    """A row with the time as a multiple of another one's."""
    found = done.seconds / plain.seconds
    return *row(name, done), f"{found:.2f}", f"{ratio}", share(found, ratio)


def leave_page_cache(folder: Path) -> None:
    """Let the system forget the content of the files below a folder, so that it is read from the disk again."""
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


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


def print_sha256(folder: Path) -> None:
    """Hash each file below a folder, by a thread for each core; print the digest of the digests."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        digests = pool.map(lambda path: hashlib.sha256(path.read_bytes()).digest(), paths)
        print(hashlib.sha256(b"".join(digests)).hexdigest())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--sha256"]:
        print_sha256(Path(sys.argv[2]))
    else:
        main()
