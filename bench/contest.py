"""How long a contest's log takes, by its lines: reading it with the chain, and its standing.

The log is made here: a week has 200 submissions of one image by 25 teams, aimed at one defence, and the answers of
three judges to each image in lines of their own. Objects are not read.
"""

import datetime
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any

from measuring import print_machine, print_table, share

LINES = (1_000, 10_000, 100_000)
READING_SECONDS = 3.0
STANDING_SECONDS = 1.0
"""Limits for a log of 100,000 lines, on one core."""
TEAMS = [f"team{number}" for number in range(25)]
JUDGES = [f"0000000{letter}" for letter in "abc"]
IMAGES_A_WEEK = 200
BEGIN = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)
Entry = tuple[datetime.datetime, str, dict[str, Any]]


def entries() -> Iterator[Entry]:
    """Instant, kind and data of each entry."""
    rules = {
        "classes": {"bicycle": ["n02835271"], "bird": ["n01514668"]}, "teams": TEAMS, "board": {"ada": []},
        "judges": {"controls": 0.0}, "limits": {"unbroken_days": 3650},
    }  # fmt: skip
    defence = f"{TEAMS[0]}/wall"
    model = {"role": "standard", "confidence": "softmax", "threshold": 0.5}
    yield BEGIN, "contest", rules
    yield BEGIN, "roster", {"judges": JUDGES}
    yield BEGIN, "defence", {"name": defence, "open": True, "source": "a file", "model": model}
    yield BEGIN, "stake", {"batch": "first", "defences": [defence]}
    week = 0
    while True:
        monday = BEGIN + datetime.timedelta(1 + 7 * week)
        names = [hashlib.sha256(f"{week} {number}".encode()).hexdigest() for number in range(IMAGES_A_WEEK)]
        for number, name in enumerate(names):
            size = {"width": 224, "height": 224}
            image = {"file": "x.png", "sha256": name, "pixels_sha256": name[::-1], **size}
            yield monday, "submission", {"team": TEAMS[number % len(TEAMS)], "target": defence, "images": [image]}
        friday = monday + datetime.timedelta(4)
        yield friday, "publish", {}
        for name in names:
            for judge in JUDGES:
                contains = {"bird": "definitely_yes", "bicycle": "definitely_no"}
                statements = {"complete": True, "not_occluded": True, "real": True}
                answer = {"contains": contains, "outline": "5,5 219,5 219,219 5,219", **statements}
                yield friday, "answers", {"judge": judge, "week": str(friday.date()), "answers": {name: answer}}
        week += 1


def write_log(folder: Path, count: int) -> None:
    """Write a log of some lines."""
    from cleanset.studies.contest.log import LOG, START

    texts: list[str] = []
    prev = START
    for n, (at, kind, data) in zip(range(count), entries(), strict=False):
        line = {"n": n, "at": f"{at:%FT%TZ}", "kind": kind, "prev": prev, "data": data}
        texts.append(json.dumps(line, separators=(",", ":")))
        prev = hashlib.sha256(texts[-1].encode()).hexdigest()
    (folder / LOG).write_text("".join(f"{text}\n" for text in texts))


def seconds(folder: Path) -> tuple[float, ...]:
    """Processor seconds of reading a log, and of its standing."""
    from cleanset.studies.contest.log import read
    from cleanset.studies.contest.standing import standing

    times = [process_time()]
    log = read(folder)
    times.append(process_time())
    standing(log, log.lines[-1].day)
    times.append(process_time())
    return tuple(after - before for before, after in pairwise(times))


def main(arguments: list[str]) -> None:
    """Print a row for each number of lines."""
    print_machine()
    rows = []
    for count in [int(each) for each in arguments] or LINES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_log(folder, count)
            size = (folder / "log.jsonl").stat().st_size / 1e6
            reading, standing = seconds(folder)
        times = [f"{each:.2f}" for each in (reading, standing)]
        parts = [
            share(found, limit * count / LINES[-1])
            for found, limit in ((reading, READING_SECONDS), (standing, STANDING_SECONDS))
        ]
        rows.append((f"{count:,}", f"{size:.1f}", *times, *parts))
    title = "Processor seconds of a contest's log; the limits are of reading it, and of its standing"
    heads = ("lines", "MB", "reading", "standing", "of the limit: reading", "standing")
    print_table(title, heads, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
