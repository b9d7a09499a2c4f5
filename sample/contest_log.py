"""Enter the sample's contest, from what is in sample/contest, into studies/contest: log and objects.

Run in the checkout's root with the sample built: PYTHONPATH=sample:src python -m contest_log. None of it has happened.
The runs of the defences are those of the log that is there, so that the log is the same on every machine: the rate of
a run differs from machine to machine. Without a log they are computed.
"""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from cleanset.studies.contest.entering import append, enter, enter_runs
from cleanset.studies.contest.log import LOG, OBJECTS, DraftLine
from cleanset.studies.contest.rules import parse_instant

CONTEST = Path("studies", "contest")
MAIL = Path("sample", "contest")
PUBLISH = "publish"
RUNS = "runs"
DEFENCES = ("reef/colors", "reef/corruption_robust", "tide/standard")
JUDGES = ("3f9c2a71", "8b04d6e5", "c17e590a")
STORY: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("2026-10-26T09:00:00Z", ("contest.yaml",)),
    ("2026-10-26T09:10:00Z", ("judges/roster.yaml", "judges/controls.yaml", "judges/examples.yaml")),
    ("2026-10-26T16:30:00Z", tuple(f"defences/{name}" for name in DEFENCES)),
    ("2026-10-30T18:00:00Z", (RUNS,)),
    ("2026-11-02T08:00:00Z", ("board/stake.yaml",)),
    ("2026-11-03T15:40:00Z", ("submissions/orchard/2026-11-03-1",)),
    ("2026-11-05T08:30:00Z", ("submissions/grove/2026-11-05-1",)),
    ("2026-11-06T23:59:59Z", (PUBLISH,)),
    ("2026-11-07T17:00:00Z", (*(f"answers/{judge}/2026-11-06.yaml" for judge in JUDGES), RUNS)),
    ("2026-11-09T11:20:00Z", ("board/appeal.yaml",)),
    ("2026-11-10T21:00:00Z", ("submissions/orchard/2026-11-10-1",)),
    ("2026-11-12T14:00:00Z", ("board/decision.yaml",)),
    ("2026-11-13T23:59:59Z", (PUBLISH,)),
    ("2026-11-14T17:00:00Z", (*(f"answers/{judge}/2026-11-13.yaml" for judge in JUDGES), RUNS)),
)
"""Entries by their instant: paths below sample/contest, the end of a week, or a run of all defences."""


def build(folder: Path, story: tuple[tuple[str, tuple[str, ...]], ...] = STORY) -> None:
    """Enter a story into the folder of a contest, in place of what is there."""
    # not by the reader: what it expects may have changed, which is why the log is built again
    written = (folder / LOG).read_text().splitlines() if (folder / LOG).exists() else []
    runs = [each["data"] for each in map(json.loads, written) if each.get("kind") == "run"]
    (folder / LOG).unlink(missing_ok=True)
    shutil.rmtree(folder / OBJECTS, ignore_errors=True)
    for instant, things in story:
        at = parse_instant(instant)
        for thing in things:
            if thing == RUNS and runs:
                append(folder, [DraftLine("run", runs.pop(0)) for _ in DEFENCES], at=at)
            elif thing == RUNS:
                print("\n".join(enter_runs(folder, at=at, write=True)))
            else:
                paths = [] if thing == PUBLISH else [MAIL / thing]
                print("\n".join(enter(folder, paths, publish=thing == PUBLISH, at=at)))


def main(arguments: Sequence[str]) -> None:
    """Build the log of the contest in a folder, or of the sample's own."""
    build(Path(*arguments) if arguments else CONTEST)


if __name__ == "__main__":
    main(sys.argv[1:])
