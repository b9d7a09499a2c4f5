"""Classes of an edition that have another name in the next one, so that their verdicts hold there.

A verdict is on an image in a class. If a folder of a class has a new name, only its owner knows whether it is the same
class; so the command stops, and its message asks the owner with the option to add.
"""

import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError
from cleanset.plumbing.validation import shown

OPTION = "--renamed"


@dataclass(frozen=True, slots=True)
class RenamedClasses:
    """The answers of an edition's owner: which classes have another name, and which are gone."""

    new_keys: Mapping[str, str] = field(default_factory=dict)
    """The new key by the old one; empty for a class that is gone."""

    def key_of(self, old: str) -> str:
        """The key that a class has now."""
        return self.new_keys.get(old) or old

    def check(self, old: ClassTable, new: ClassTable) -> None:
        """Raise CleansetError for an answer on a class that is there as before, and for a new one that is not new."""
        for before, after in self.new_keys.items():
            if before not in old.indices or before in new.indices:
                raise CleansetError(
                    f"{OPTION} {before}={after}: {shown(before)} is not a class of the older edition that is gone; "
                    "expected such a class, and its new name: correct it, or leave the option out"
                )
            if after and (after in old.indices or after not in new.indices):
                raise CleansetError(
                    f"{OPTION} {before}={after}: {shown(after)} is not a new class; expected one that the older "
                    "edition lacks and the images have"
                )


def parse_renamed(answers: Iterable[str]) -> RenamedClasses:
    """The answers in texts OLD=NEW, or OLD= for a class that is gone. Raises CleansetError for other texts."""
    found: dict[str, str] = {}
    for text in answers:
        before, sign, after = text.partition("=")
        if not before or not sign:
            raise CleansetError(f"{OPTION} {shown(text)}: expected OLD=NEW, or OLD= for a class that is gone")
        if before in found or (after and after in found.values()):
            raise CleansetError(f"{OPTION} {shown(text)}: a class a second time; expected one new name for each class")
        found[before] = after
    return RenamedClasses(found)


def check_answered(
    reviewed: Mapping[str, Collection[str]],
    classes_of: Mapping[str, Collection[str]],
    renamed: RenamedClasses,
    old: ClassTable,
) -> None:
    """Raise CleansetError, with the options to add, for classes that seem to have a new name without an answer.

    `reviewed`: the SHA-256 of the reviewed images by class that is gone. `classes_of`: the new classes in which the
    bytes of a SHA-256 are. A class seems renamed if its reviewed images, as far as they exist, are in one class
    that the `old` table has not.
    """
    questions: dict[str, list[str]] = defaultdict(list)
    for before, digests in sorted(reviewed.items()):
        found = {key for digest in digests for key in classes_of.get(digest, ())}
        if before not in renamed.new_keys and len(found) == 1:
            (after,) = found
            if after not in old.indices and after not in renamed.new_keys.values():
                questions[after].append(before)
    if questions:
        raise CleansetError(_question(questions, reviewed))


def _question(questions: Mapping[str, Sequence[str]], reviewed: Mapping[str, Collection[str]]) -> str:
    pairs = [(before, after) for after, several in questions.items() for before in several]
    words = [f"{before} (reviewed images: {len(reviewed[before]):,}), now in {after}" for before, after in pairs]
    # of several classes in one none can continue under its name
    kept = [f"{before}={after}" for after, several in questions.items() for before in several if len(several) == 1]
    gone = [f"{before}=" for before, _ in pairs]
    options = [" ".join(f"{OPTION} {shlex.quote(each)}" for each in group) for group in (kept, gone) if group]
    keep = f"add {options[0]} if they are the same classes under new names, or " if kept else "add "
    return f"classes that are gone: {'; '.join(words)}; {keep}{options[-1]} to leave their verdicts out"
