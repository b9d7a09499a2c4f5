"""Cosign the last checkpoint of a contest as a team."""

import datetime
import json
from pathlib import Path

from cleanset.plumbing.files import write_text
from cleanset.studies.contest.entering import sign_entries
from cleanset.studies.contest.entries import SHORT_DIGEST
from cleanset.studies.contest.log_lines import COSIGN
from cleanset.studies.contest.log_writing import cosigned


def cosign_checkpoint(
    contest: Path, folder: Path, team: str, key: Path, at: datetime.datetime | None = None
) -> list[Path]:
    """Cosign the last checkpoint in a signed entry in a folder; the paths of the entry and of its signature."""
    entry = cosigned(contest, team, key, at)
    path = folder / f"{COSIGN}-{team}-{entry['checkpoint'][:SHORT_DIGEST]}.yaml"
    folder.mkdir(parents=True, exist_ok=True)
    lines = (f"  {name}: {json.dumps(text, ensure_ascii=False)}\n" for name, text in entry.items())
    write_text(path, f"{COSIGN}:\n{''.join(lines)}")
    return [path, *sign_entries(contest, [path], team, key)]
