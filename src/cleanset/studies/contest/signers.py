"""Keys after some lines of a log, the signatures that a line needs, and the lines that are void."""

from collections.abc import Collection, Container, Iterator, Sequence

from cleanset.errors import CleansetError
from cleanset.studies.contest.entries import team_of
from cleanset.studies.contest.log_lines import RULES, Line, entered_twice
from cleanset.studies.contest.rules import (
    BOARD,
    ContestRules,
)

GIVE_KEYS = (RULES, "team", "roster", "key")
"""The kinds of lines that give keys."""
_BY_BOARD = ("accept", "stake", "decision", "void")


def keys_of(lines: Sequence[Line], void: Container[int]) -> dict[str, str]:
    """The key of each person, team and judge who has one after some lines, the first one of the log among them.

    `void`: the numbers of void lines, which give none.

    Raises CleansetError for a name with two keys, and for a key of two names: one of them could sign for both. A member
    of the board may be a team, too.
    """
    found: dict[str, str] = {}
    for line in lines:
        if line.n not in void:
            give_keys(found, line, lines[0].entry)
    return found


def give_keys(keys: dict[str, str], line: Line, rules: ContestRules) -> None:
    """Add the keys that a line gives. Raises CleansetError as `keys_of`."""
    for name, key in _given_keys(line):
        if line.kind not in (RULES, "key") and name in keys:
            raise entered_twice(line, name)
        if line.kind == "key" and name not in keys:
            raise CleansetError(f"{line}: {name}, who has no key; expected one who has")
        others = {each for each, one in keys.items() if one.split()[1] == key.split()[1] and each != name}
        if others and not _is_own_team(line, name, others, rules):
            raise CleansetError(f"{line}: {name}: the key of {min(others)}, too; expected a key of each person's own")
        if line.kind == RULES and keys.get(name, key).split()[1] != key.split()[1]:
            raise CleansetError(f"{line}: {name}: two keys; expected one key of a name")
        keys[name] = key


def _is_own_team(line: Line, name: str, others: set[str], rules: ContestRules) -> bool:
    """Whether a key is that of a team and of a member of the board alone, so that the team is the member's own."""
    if line.kind == "team":
        return others <= rules.board.keys()
    is_member, is_team = name in rules.board, name in rules.teams
    both = (is_member and others <= rules.teams.keys()) or (is_team and others <= rules.board.keys())
    return line.kind == RULES and both


def _given_keys(line: Line) -> Iterator[tuple[str, str]]:
    entry = line.entry
    found: list[tuple[str, str | None]] = []
    if line.kind == RULES:
        board = ((name, each.key) for name, each in entry.board.items())
        found = [*entry.signers.items(), *entry.teams.items(), *board]
    elif line.kind == "team":
        found = [(entry.name, entry.key)]
    elif line.kind == "roster":
        found = list(entry.roster.items())
    elif line.kind == "key":
        found = [(entry.person, entry.key)]
    return ((name, key) for name, key in found if key is not None)


def required_signers(rules: ContestRules, line: Line) -> tuple[Collection[str], int]:
    """Those who may sign a line, and how many of them have to; anybody who has a key declares a conflict."""
    entry = line.entry
    match line.kind:
        case "answers":
            return {entry.judge}, 1
        case "submission" | "appeal" | "cosignature":
            return {entry.team}, 1
        case "defence":
            return {team_of(entry.name)}, 1
        case "conflict":
            return line.signatures.keys(), 1
        case "key" if entry.void_from is None and entry.person in line.signatures:
            return {entry.person}, 1
        case "key":
            return rules.board.keys() - {entry.person}, rules.quorum
        case "stake" if entry.by != BOARD:
            return {entry.by}, 1
    return (rules.board.keys(), rules.quorum) if line.kind in _BY_BOARD else ((), 0)


def check_signers(rules: ContestRules, line: Line) -> None:
    """Raise CleansetError for a line that lacks required signatures, or has others."""
    may, needed = required_signers(rules, line)
    for name in sorted(line.signatures.keys() - set(may)):
        raise CleansetError(f"{line}: signed by {name}; expected {', '.join(sorted(may)) or 'no signature'}")
    if len(line.signatures) < needed:
        raise CleansetError(
            f"{line}: signed by {', '.join(sorted(line.signatures)) or 'nobody'}; expected {needed} of "
            f"{', '.join(sorted(may)) or 'those who have a key'}: cleanset contest sign"
        )


def voided(lines: Sequence[Line], voiding: Sequence[Line] | None = None) -> dict[int, int]:
    """By the lines that are void, the line that makes them so; a void line makes none void.

    `voiding`: those that `may_void`, where they are known.
    """
    found: dict[int, int] = {}
    # from the end: whether a line is void is settled by those after it
    for line in reversed(lines if voiding is None else voiding):
        if line.n not in found:
            found |= dict.fromkeys(voided_by(lines, line), line.n)
    return found


def voided_by(lines: Sequence[Line], line: Line) -> list[int]:
    """The lines that a line makes void, if it counts."""
    if line.kind == "void":
        return list(line.entry.lines)
    if line.kind != "key" or line.entry.void_from is None:
        return []
    person, first, rules = line.entry.person, line.entry.void_from, lines[0].entry
    signed = (each for each in lines if first <= each.n < line.n and person in each.signatures)
    return [each.n for each in signed if len(each.signatures) - 1 < required_signers(rules, each)[1]]


def may_void(line: Line) -> bool:
    """Whether a line is of those that make others void."""
    return line.kind == "void" or (line.kind == "key" and line.entry.void_from is not None)


def check_voided(lines: Sequence[Line], line: Line) -> None:
    """Raise CleansetError for lines that cannot be void: later ones, and some kinds unless their clock was wrong."""
    if line.kind == "key" and line.entry.void_from >= line.n:
        raise CleansetError(f"{line}: void_from {line.entry.void_from}; expected a line before it")
    for n in voided_by(lines, line):
        if not n < line.n or (
            line.kind == "void" and lines[n].kind in ("void", "key", "publish") and lines[n].at <= line.at
        ):
            raise CleansetError(f"{line}: {n}; expected earlier lines that are not void, key or publish")
