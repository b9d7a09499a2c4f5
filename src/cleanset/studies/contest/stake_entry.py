"""The lines that organizers enter by hand: a stake with its digests, and the digest of an unpublished list."""

import datetime
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from cleanset.errors import CleansetError
from cleanset.studies.contest.defending import list_digest, unpublished_list
from cleanset.studies.contest.entries import Stake
from cleanset.studies.contest.folder_checks import check_defence
from cleanset.studies.contest.reading import defence_digest, read_defence, read_rules
from cleanset.validation import first_problem


def stake_yaml(contest: Path, batch: str, on: datetime.date, by: str, names: Sequence[str]) -> str:
    """The entry of board/stakes.yaml by which defences are staked as they lie there now.

    Raises CleansetError for a defence whose files are not as its defence.yaml names them.
    """
    digests = {}
    for name in names:
        folder = contest / "defences" / name
        if not folder.is_dir():
            raise CleansetError(f"{name}: unknown defence; expected team/name of a folder in {contest / 'defences'}")
        defence = read_defence(folder)
        check_defence(folder, defence)
        digests[name] = defence_digest(folder, defence)
    content = {"batch": batch, "date": str(on), "by": by, "defences": list(names), "digests": digests}
    try:
        Stake.model_validate(content)
    except ValidationError as error:
        raise CleansetError(f"stake: {first_problem(error)}") from None
    lines = [f"- batch: {batch}", f'  date: "{on}"', f"  by: {by}", f"  defences: [{', '.join(names)}]", "  digests:"]
    return "\n".join([*lines, *(f'    {name}: "{digest}"' for name, digest in digests.items())]) + "\n"


def unpublished_yaml(contest: Path, folder: Path) -> str:
    """The line of contest.yaml that names an unpublished list, a folder with one of images for each group."""
    found = unpublished_list(folder, read_rules(contest).groups())
    return f'unpublished: "{list_digest(found)}"   # {len(found)} images\n'
