"""Result files, as `evaluate`, `robustness evaluate` and `attacks evaluate` write them: named, read, checked.

Their headline measures, by which results are compared, are in headlines.yaml.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from cleanset.errors import CleansetError
from cleanset.evaluation.comparability import CLEAN_ACCURACY, RESULTS_FORMAT, ComparabilityCard
from cleanset.evaluation.measured_models import not_deterministic
from cleanset.evaluation.measures import NOT_MEASURED, Measure
from cleanset.evaluation.notes import MeasuredSet
from cleanset.evaluation.pairs import parse_answers
from cleanset.evaluation.specs import file_stems
from cleanset.plumbing.files import read_bytes
from cleanset.plumbing.json_files import JsonMapping, JsonObject, check_digest, parse_record
from cleanset.plumbing.validation import first_problem, shown
from cleanset.plumbing.yaml_files import data_beside
from cleanset.statistics.basics import Flags

RESULTS = "results.json"
"""File of results in a folder that `--out` names."""
ATTACK_RESULTS = "attack_results.json"
"""File of the results of attacks there."""
# the expected calibration error, which a file has under `calibration`
ECE = "ece"
# characters of a text in a result file; a notice has some 300
MAX_RESULT_TEXT = 1000
COMMANDS = "cleanset evaluate, robustness evaluate or attacks evaluate"
EXPECTED_RESULTS = f"the JSON that {COMMANDS} wrote"


@dataclass(frozen=True, slots=True)
class Headline:
    """A measure that results are compared by: its name in the file and its title.

    `is_share`: shown in percent. `higher_is_better`: the order of a ranking. `is_bounded`: from 0 to 1; not so for
    measures relative to a reference model, which exceed 1 where a model is worse than it.
    """

    name: str
    title: str
    is_share: bool = True
    higher_is_better: bool = False
    is_bounded: bool = True


HEADLINES = TypeAdapter(dict[str, tuple[Headline, ...]]).validate_python(data_beside(__file__, "headlines.yaml"))
"""The measures that a table of results has, by measurement."""
ATTACKS = "attacks in"
"""The measurements of robust accuracy begin so, before the name of the threat model."""


def headlines_of(measured: str) -> tuple[Headline, ...]:
    """The measures of a measurement."""
    return HEADLINES[_kind(measured)]


def _kind(measured: str) -> str:
    return ATTACKS if measured.startswith(f"{ATTACKS} ") else measured


# largest difference between an accuracy and the share of its counts: a file may hold rounded numbers
COUNTS_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class MeasuredModels:
    """The card of one kind of measurement in a result file, and the headline measures of each model by name.

    `answers`: whether each of `image_keys` is classified correctly, by model that did not choose the images. `limits`:
    limits of these numbers, such as of a benchmark or of a model, in sentences. `stems`: the name of a model's files,
    without its ending, by model whose predictions are kept. `group_of`: the group of each of `image_keys`; empty if
    no two images share one.
    """

    card: ComparabilityCard
    models: Mapping[str, Mapping[str, Measure]]
    image_keys: Sequence[str]
    answers: Mapping[str, Flags]
    limits: Sequence[str] = ()
    stems: Mapping[str, str] = field(default_factory=dict)
    group_of: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A result file: its name as given, the facts about its set, and by measurement the card and the models."""

    name: str
    images: MeasuredSet
    measured: Mapping[str, MeasuredModels]


def is_result(path: Path) -> bool:
    """Whether a path names a result file: JSON, or a folder that holds one."""
    return path.suffix == ".json" or (
        path.is_dir() and any((path / name).is_file() for name in (RESULTS, ATTACK_RESULTS))
    )


def result_file(path: Path) -> Path:
    """The result file that a path names: itself, or the one in a folder."""
    if not path.is_dir():
        return path
    return path / (RESULTS if (path / RESULTS).is_file() or not (path / ATTACK_RESULTS).is_file() else ATTACK_RESULTS)


def are_results(paths: Sequence[Path]) -> bool:
    """Whether these are result files. Raises CleansetError where only some of them are."""
    others = [path for path in paths if not is_result(path)]
    if others and len(others) < len(paths):
        found = "not a result file" if others[0].exists() else "missing"
        raise CleansetError(f"{others[0]}: {found}; expected {EXPECTED_RESULTS}, as the others are")
    return not others


def read_results(path: Path) -> ResultFile:
    """Read a result file, or that in a folder.

    Raises CleansetError, one line, for a missing, damaged or edited file, and for one without a card.
    """
    file = result_file(path)
    try:
        data = read_bytes(file)
    except FileNotFoundError:
        raise CleansetError(
            f"{file}: missing; expected {EXPECTED_RESULTS}: name its file, or the folder of its --out"
        ) from None
    content = parse_record(data, str(file), EXPECTED_RESULTS, RESULTS_FORMAT)
    if isinstance(content, dict):
        check_digest(content, file, "run the evaluation again")
        if "fingerprint" in content and "models" not in content:
            return _of_model(file)
    return parse_results(content, str(path))


def _of_model(record: Path) -> ResultFile:
    """The results of one model, named by the record that is next to its predictions in a folder of --out."""
    every = read_results(record.with_name(RESULTS))
    measured = {}
    for name, one in every.measured.items():
        found = [model for model in one.models if one.stems.get(model, *file_stems([model])) == record.stem]
        if len(found) != 1:
            raise CleansetError(
                f"{record}: the record of a model that {RESULTS} next to it does not name; expected "
                f"{EXPECTED_RESULTS}: name the folder"
            )
        answers = {model: each for model, each in one.answers.items() if model in found}
        measured[name] = replace(one, models={found[0]: one.models[found[0]]}, answers=answers)
    return ResultFile(str(record), every.images, measured)


def parse_results(content: object, name: str) -> ResultFile:
    """The results in the content of a result file; errors as in `read_results`."""
    if not isinstance(content, dict):
        raise CleansetError(f"{name}: {shown(content)}; expected {EXPECTED_RESULTS}")
    check_format(content, name)
    _check_printable(_printed(content), name)
    parts = content.get("families", {"": content})
    if not isinstance(parts, dict) or not parts or not all(isinstance(part, dict) for part in parts.values()):
        raise CleansetError(f"{name}: no results; expected {EXPECTED_RESULTS}")
    measured = {}
    for part in parts.values():
        found = _measured(part, name)
        if found.card.measured in measured:
            raise CleansetError(f"{name}: {shown(found.card.measured)} measured twice; expected it once")
        measured[found.card.measured] = found
    images = MeasuredSet.from_json(content.get("set"))
    if images is None:
        raise CleansetError(
            f"{name}: set: {shown(content.get('set'))}; expected its name, version, selection and limits: run the "
            "evaluation again with the same --out, which computes only the changes"
        )
    return ResultFile(name, images, measured)


def check_format(content: JsonMapping, name: str) -> None:
    """Raise CleansetError, which names the command that writes it again, for results of another format."""
    if content.get("format") == RESULTS_FORMAT or ("models" not in content and "families" not in content):
        return
    command = "evaluate"
    if "families" in content:
        command = "attacks evaluate" if "attacks" in content else "robustness evaluate"
    raise CleansetError(
        f"{name}: format {shown(content.get('format', 1))}; expected {RESULTS_FORMAT}, the format of results of this "
        f"version: run cleanset {command} again with the same --out, which computes only the changes"
    )


def _printed(content: JsonMapping) -> JsonObject:
    """The texts of a file that are printed: not its lists of images and measures by class, which are most of it."""
    return {key: value for key, value in content.items() if key not in ("models", "families", "image_keys", "attacks")}


def _check_printable(value: object, name: str) -> None:
    """Raise CleansetError for a text with control characters: texts of the file are printed on a terminal."""
    if isinstance(value, str) and not (value.isprintable() and len(value) <= MAX_RESULT_TEXT):
        raise CleansetError(
            f"{name}: {shown(value)}; expected printable texts of at most {MAX_RESULT_TEXT:,} characters"
        )
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for each in value:
            _check_printable(each, name)


def _measured(part: JsonMapping, name: str) -> MeasuredModels:
    card = _card(part, name)
    _check_printable(_printed(part), name)
    models: dict[str, dict[str, Measure]] = {}
    answers: dict[str, Flags] = {}
    image_keys = _image_keys(part, card, name)
    stems: dict[str, str] = {}
    notice = part.get("notice")
    limits = [notice] if isinstance(notice, str) else []
    entries = part.get("models")
    for entry in entries if isinstance(entries, list) else []:
        model = entry.get("model") if isinstance(entry, dict) else None
        if not isinstance(model, str) or model in models:
            raise CleansetError(f"{name}: models: {shown(model)}; expected the name of each model once")
        _check_printable([model, entry.get("notes")], name)
        models[model] = dict(_values(entry, card.measured, f"{name}: {model}"))
        if (found := entry.get("answers")) is not None:
            of_model = _answers(found, entry, len(image_keys), f"{name}: {model}")
            if entry.get("chose_images") is not True:
                answers[model] = of_model
        if isinstance(predictions := entry.get("predictions"), str):
            stems[model] = Path(predictions).stem
        limits += _limits(model, entry)
    if models.keys() != card.models.keys() or not models:
        raise CleansetError(
            f"{name}: models {shown(sorted(models))}; expected the card's, {shown(sorted(card.models))}"
        )
    groups = part.get("groups", {})
    if not (isinstance(groups, dict) and all(isinstance(each, str) for each in groups.values())):
        expected = "expected the group of each image: run the evaluation again"
        raise CleansetError(f"{name}: groups {shown(groups)}; {expected}")
    return MeasuredModels(
        card,
        models,
        image_keys,
        answers,
        limits=list(dict.fromkeys(limits)),
        stems=stems,
        group_of=groups,
    )


def _card(part: JsonMapping, name: str) -> ComparabilityCard:
    """The card of a measurement in a result file."""
    if "comparability" not in part:
        has_models = isinstance(part.get("models"), list)
        found = "no comparability card" if has_models else "no results of models"
        raise CleansetError(
            f"{name}: {found}; expected {EXPECTED_RESULTS}: run it again with the same --out, which "
            "computes only the changes"
        )
    try:
        card = ComparabilityCard.from_json(part["comparability"])
    except ValidationError as error:
        raise CleansetError(f"{name}: comparability: {first_problem(error)}; expected {EXPECTED_RESULTS}") from None
    except CleansetError as error:
        raise CleansetError(f"{name}: comparability: {error}; run the evaluation again") from None
    if _kind(card.measured) not in HEADLINES:
        raise CleansetError(f"{name}: unknown measurement {shown(card.measured)}; expected {', '.join(HEADLINES)}")
    return card


def _limits(model: str, entry: JsonMapping) -> list[str]:
    """The notes on a model in a result file, in sentences."""
    notes = entry.get("notes")
    found = [each for each in notes if isinstance(each, str)] if isinstance(notes, list) else []
    if entry.get("deterministic") is False:
        found.append(not_deterministic(model))
    return found


def _image_keys(part: JsonMapping, card: ComparabilityCard, name: str) -> list[str]:
    """The images that the answers are of; empty if the file has none."""
    found = part.get("image_keys", [])
    if not isinstance(found, list) or not set(map(type, found)) <= {str} or len(found) not in (0, card.images.count):
        raise CleansetError(
            f"{name}: image_keys: {shown(found)}; expected a text for each of {card.images.count:,} images: run the "
            "evaluation again"
        )
    return found


def _answers(found: object, entry: JsonMapping, images: int, where: str) -> Flags:
    answers = parse_answers(found) if isinstance(found, str) else None
    correct = entry.get("correct")
    if answers is None or len(answers) != images or answers.sum() != correct:
        raise CleansetError(
            f"{where}: answers: {shown(found)}; expected 0 or 1 for each of {images:,} images, 1 for the "
            f"{shown(correct)} correct ones: run the evaluation again"
        )
    return answers


def _values(entry: JsonMapping, measured: str, where: str) -> Iterator[tuple[str, Measure]]:
    """Yield the headline measures that an entry has: numbers of its own, or below `measures`, each with an interval."""
    measures = entry.get("measures", entry)
    if not isinstance(measures, dict):
        raise CleansetError(f"{where}: measures {shown(measures)}; expected numbers by name")
    calibration = measures.get("calibration")
    error = calibration.get("error") if isinstance(calibration, dict) else None
    for headline in headlines_of(measured):
        found = measures.get(headline.name, error if headline.name == ECE else None)
        if found is None:
            continue
        # the accuracy's interval is next to it
        ends = entry.get("interval") if headline.name == CLEAN_ACCURACY else None
        table = found if isinstance(found, dict) else {"value": found, "interval": ends}
        number = table.get("value", table.get(CLEAN_ACCURACY))
        interval = table.get("interval")
        pair: list[Any] = interval if isinstance(interval, list) else []
        numbers = [each for each in (number, *pair) if each is not None]
        expected = ""
        if not all(map(_is_finite, numbers)) or len(pair) not in (0, 2):
            expected = "finite numbers"
        elif headline.is_bounded and not all(0 <= each <= 1 for each in numbers):
            expected = "shares from 0 to 1"
        elif len(numbers) == 3 and pair[0] > pair[1]:
            expected = "its lower end first"
        if expected:
            raise CleansetError(
                f"{where}: {headline.name}: {shown(number)}, interval {shown(interval)}; expected {expected}"
            )
        value = None if number is None else float(number)
        ends = (float(pair[0]), float(pair[1])) if len(numbers) == 3 else None
        yield headline.name, Measure.of(value, ends, problem=str(table.get("problem") or NOT_MEASURED.problem))
    accuracy, correct, images = (entry.get(name) for name in (CLEAN_ACCURACY, "correct", "images"))
    if not (_is_finite(accuracy) and isinstance(correct, int) and isinstance(images, int)):
        return
    if not 0 <= correct <= images or abs(accuracy * images - correct) > COUNTS_TOLERANCE * images:  # type: ignore[operator]
        raise CleansetError(
            f"{where}: accuracy {accuracy}, {correct:,} of {images:,} images correct; expected the share of these "
            "images: edited since it was written; run the evaluation again"
        )


def _is_finite(value: object) -> bool:
    # bool is an int; an int of 400 digits does not fit a float
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 and math.isfinite(value)
    )
