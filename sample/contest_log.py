"""Enter the sample's contest, from what lies in sample/contest, into studies/contest: log, signatures and objects.

Run in the checkout's root with the sample built: PYTHONPATH=sample:src python -m contest_log. The keys of its people
are committed, since none of it has happened; ed25519 signs the same bytes in the same way, so that the log is the same
on every machine. The answers of the defences are those of the log that is there, and are computed without one: the
rate of a run differs from machine to machine.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cleanset.plumbing.files import sha256
from cleanset.studies.contest.cosigning import cosign_checkpoint
from cleanset.studies.contest.entering import edition_of, enter, enter_runs, sign_entries
from cleanset.studies.contest.line_checks import check_lines
from cleanset.studies.contest.log_lines import LOG, DraftLine
from cleanset.studies.contest.log_writing import append
from cleanset.studies.contest.memory import forget
from cleanset.studies.contest.objects import OBJECTS
from cleanset.studies.contest.rules import parse_instant

CONTEST = Path("studies", "contest")
MAIL = Path("sample", "contest")
PUBLISH = "publish"
RUNS = "runs"
TEAMS_DEFENCES = ("reef/colors", "reef/corruption_robust", "reef/uninteresting", "tide/standard")
JUDGES = ("3f9c2a71", "8b04d6e5", "c17e590a")
STORY: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("2026-10-26T09:00:00Z", ("contest.yaml",)),
    ("2026-10-26T09:10:00Z", ("judges/roster.yaml", "judges/controls.yaml", "judges/examples.yaml")),
    ("2026-10-26T16:30:00Z", tuple(f"defences/{name}" for name in TEAMS_DEFENCES)),
    ("2026-10-28T10:00:00Z", ("board/accept.yaml",)),
    ("2026-10-30T18:00:00Z", (RUNS,)),
    ("2026-11-02T08:00:00Z", ("board/stake.yaml",)),
    ("2026-11-03T15:40:00Z", ("submissions/orchard/2026-11-03-1",)),
    ("2026-11-05T08:30:00Z", ("submissions/grove/2026-11-05-1",)),
    ("2026-11-06T23:59:59Z", (PUBLISH,)),
    ("2026-11-07T17:00:00Z", (*(f"answers/{judge}/2026-11-06.yaml" for judge in JUDGES), RUNS)),
    ("2026-11-08T12:00:00Z", ("cosign/grove", "cosign/orchard")),
    ("2026-11-09T11:20:00Z", ("board/appeal.yaml",)),
    ("2026-11-10T21:00:00Z", ("submissions/orchard/2026-11-10-1",)),
    ("2026-11-12T14:00:00Z", ("board/decision.yaml",)),
    ("2026-11-13T23:59:59Z", (PUBLISH,)),
    ("2026-11-14T09:00:00Z", ("cosign/grove", "cosign/tide")),
    ("2026-11-14T17:00:00Z", (*(f"answers/{judge}/2026-11-13.yaml" for judge in JUDGES), RUNS)),
)
"""Entries by their instant: paths below sample/contest, a team that cosigns, the end of a week, or a run of all."""
BOARD, APPEAL, APPEALING = "ada", "board/appeal.yaml", "tide"


def author(thing: str) -> str | None:
    """Who signs a file or folder of the mail; None for what the organizers enter themselves."""
    kind, *names = thing.split("/")
    if kind == "board":
        return APPEALING if thing == APPEAL else BOARD
    return names[0] if kind in ("defences", "submissions", "answers") else None


def build(contest: Path, story: tuple[tuple[str, tuple[str, ...]], ...] = STORY) -> None:
    """Enter a story into the folder of a contest, in place of what is there."""
    # not by the reader: what it expects may have changed, which is why the log is built anew
    written = (contest / LOG).read_text().splitlines() if (contest / LOG).exists() else []
    runs = [each["data"] for each in map(json.loads, written) if each.get("kind") == "run"]
    if written:
        forget(sha256(written[0].encode()))
    (contest / LOG).unlink(missing_ok=True)
    shutil.rmtree(contest / OBJECTS, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        mail = Path(folder, "mail")
        shutil.copytree(MAIL, mail, ignore=shutil.ignore_patterns("__pycache__"))
        for key in (mail / "keys").iterdir():
            # ssh-keygen reads no key that others may read
            key.chmod(0o600)
        staff = mail / "keys" / "staff"
        for instant, things in story:
            at = parse_instant(instant)
            for thing in things:
                if thing == RUNS and runs:
                    drafts = [DraftLine("run", runs.pop(0)) for _ in TEAMS_DEFENCES]
                    append(contest, drafts, partial(check_lines, edition_of(contest)), key=staff, at=at)
                elif thing == RUNS:
                    list(enter_runs(contest, key=staff, at=at))
                elif thing.startswith("cosign/"):
                    team = Path(thing).name
                    path, _ = cosign_checkpoint(contest, mail / thing, team, mail / "keys" / team, at)
                    print("\n".join(enter(contest, [path], key=staff, at=at)))
                else:
                    name = author(thing)
                    if name is not None:
                        sign_entries(contest, [mail / thing], name, mail / "keys" / name)
                    paths = [] if thing == PUBLISH else [mail / thing]
                    print("\n".join(enter(contest, paths, publish=thing == PUBLISH, key=staff, at=at)))


def main(arguments: Sequence[str]) -> None:
    """Build the log of the contest in a folder, or of the sample's own."""
    build(Path(*arguments) if arguments else CONTEST)


if __name__ == "__main__":
    main(sys.argv[1:])
