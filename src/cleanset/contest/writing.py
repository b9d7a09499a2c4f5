"""What a contest writes: results/standing.json and results/notices/."""

from pathlib import Path

from cleanset.contest.files import ContestFiles
from cleanset.contest.report import as_json, notices
from cleanset.contest.standing import Standing
from cleanset.files import replacing, write_text


def write_standing(folder: Path, files: ContestFiles, standing: Standing) -> None:
    """Write a standing and the notices to defenders, in place of those that are there."""
    results = folder / "results"
    write_text(results / "standing.json", as_json(standing))
    with replacing(results / "notices") as partial:
        partial.mkdir()
        for name, text in notices(files, standing).items():
            write_text(partial / name, text)
