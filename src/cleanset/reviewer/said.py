"""The votes of a class as they lie on disk now, and writing one."""

import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from cleanset.errors import CleansetError
from cleanset.ilsvrc import wnids
from cleanset.review_files import Votes, check_reviews
from cleanset.reviews import Review, Vote, parse_reviews

ClassVotes = Mapping[tuple[int, str], Mapping[str, Vote]]
"""By class index and image id, then by reviewer; of one class."""


class Said:
    """The reviews under `folder`, read again whenever a file of the class changed."""

    def __init__(self, folder: Path, reviewer: str, index: pd.DataFrame) -> None:
        self._folder, self._reviewer, self._index = folder, reviewer, index
        self._read = {}

    def of_class(self, class_index: int) -> Votes:
        wnid = wnids()[class_index]
        stamps = {}
        for reviewer in sorted(os.listdir(self._folder)):
            path = self._folder / reviewer / f"{wnid}.yaml"
            try:
                st = path.stat()
                stamps[path] = (st.st_mtime_ns, st.st_size, st.st_ino)
            except (FileNotFoundError, NotADirectoryError):
                continue
        known = self._read.get(class_index)
        if known and known[0] == stamps:
            return known[1]
        votes = defaultdict(dict)
        for path in stamps:
            for vote in parse_reviews(path.read_text(), wnid, str(path)):
                votes[class_index, vote.image_id][path.parent.name] = vote
        votes = dict(votes)
        check_reviews(votes, self._index)
        self._read[class_index] = (stamps, votes)
        return votes

    def say(self, class_index: int, image_id: str, review: Review | None, expected: Review | None) -> None:
        import yaml

        wnid = wnids()[class_index]
        votes = self.of_class(class_index)
        mine = {i: v[self._reviewer].review for (_, i), v in votes.items() if self._reviewer in v}
        if mine.get(image_id) != expected:
            raise CleansetError("changed meanwhile")
        mine.pop(image_id, None)
        if review:
            mine[image_id] = review
        path = self._folder / self._reviewer / f"{wnid}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump({wnid: {k: v.model_dump(exclude_none=True) for k, v in sorted(mine.items())}}))
