"""Fill the parts of docs/ that are made from the code and from tables: `python docs/reference.py`.

A part is what a page has between `<!-- NAME -->` and `<!-- /NAME -->`; NAME is a key of PARTS. The pages are committed
with it, so that they are whole in the repository and for `cleanset docs`; a test compares them with the code. Without
the second marker, the first one is where a part begins. `--check` writes nothing, and exits with 1 if a page is out of
date.
"""

import ast
import csv
import inspect
import itertools
import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from typer.main import get_command

from cleanset import tables
from cleanset.classes import imagenet
from cleanset.cli import PANELS, app
from cleanset.edition.params import PROTOCOLS, Params
from cleanset.plumbing.interpreter import python_command
from cleanset.plumbing.yaml_files import read_yaml
from cleanset.reproduce import papers
from cleanset.review.hints.kinds import HINTS, KnownHint
from cleanset.sets.manifest import COLUMNS
from cleanset.studies.attacks.results import ATTACKED
from cleanset.studies.attacks.results import MEASURE_COLUMNS as ATTACK_COLUMNS
from cleanset.studies.attacks.study import ATTACKS, AttackParams
from cleanset.studies.contest.rules import ContestRules
from cleanset.studies.robustness.answers import ANSWER_TABLES
from cleanset.studies.robustness.corruptions.params import CORRUPTION_ENTRIES
from cleanset.studies.robustness.digests import DIGESTS
from cleanset.studies.robustness.families import FAMILIES, StudyParams
from cleanset.studies.robustness.images import MASKS, STUDY_IMAGES
from cleanset.studies.robustness.measuring import MEASURE_FILES, OFFICIAL_COLUMN
from cleanset.studies.training.params import TrainingParams
from cleanset.tables import Table

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent

MEASURE_COLUMNS: Mapping[str, str] = {
    "accuracy": "share of correct images",
    "answers": "correct answers: the highest of `all` classes, or `restricted` to the classes of the edition",
    "attack": "the name of an attack, or of a threat model",
    "change": "a change or a group of them; nothing where the measure is over all",
    "class_index": "a class index",
    "correct": "number of correct images",
    "definition": "`as_written`, as in the paper, or `consecutive`: a frame of noise with the one before",
    "df": "degrees of freedom",
    "epsilon": "Greenhouse and Geisser's, by which both degrees of freedom of F are multiplied",
    "error": "share of misclassified images",
    "errors": "number of misclassified images",
    "estimate": "a coefficient",
    "f": "F",
    "factor": "`intercept`, `model`, `scenario` or `class_index`",
    "family": "a family of changes: " + ", ".join(f"`{family.name}`" for family in FAMILIES),
    "fitted": "the accuracy that the regression gives",
    "flips": "number of images whose prediction differs from that to the frame compared with; by frame their share",
    "frame": "a frame, counted from 0",
    "high": "the upper end of the 95 % interval",
    "images": "the number of images that it is over",
    "level": "a level of the factor, or a scenario or class that Score is over; empty without one",
    "low": "the lower end of the 95 % interval",
    "measure": "the name of a measure",
    "model": "a role, or the name of a further model",
    "ms": "mean square",
    "note": "the name of a note that every table of these measures carries",
    "notice": "a caution about the numbers",
    OFFICIAL_COLUMN: "`yes`: of all images of the published benchmark; `no`: of a subset, or of changes made here",
    "origin": "who made the masks: `person`, `generator` or `model`",
    "other": "the model whose measure is subtracted",
    "p": "probability of a value at least as large by chance; for a difference, from the exact sign test over images",
    "p_holm": "p after Holm's correction for all differences of the measure on the selection, or levels of the factor",
    "parameters": "the number of the model's parameters",
    "part": "`external`, over scenarios, or `internal`, over classes or networks trained on each scenario",
    "problem": "why the value is missing",
    "residual_df": "degrees of freedom of the variation of images, against which the factor is tested",
    "scenario": "a scenario, or `unchanged`",
    "selection": "`union`, `own` or `common`",
    "severity": "1 to 5",
    "source": "source of the sum of squares: `regression`, a factor, `residual` or `total`",
    "squared_deviation": "(accuracy minus accuracy on unchanged images), squared",
    "ss": "sum of squares",
    "standard_error": "of the estimate",
    "t": "estimate by standard error",
    "text": "the note",
    "value": "the measure, or of a difference the first model's minus the other's",
}
"""Descriptions of the columns of the CSV files of measures, by name."""
OF_ATTACKS = {"model": "a role, or the name of a further or a wrapped model", "value": "the measure"}
"""Those that differ in attack_measures.csv."""


def commands() -> str:
    """Every command with its help, as typer writes it, but with whole sentences in the lists of commands.

    The first list is grouped as `cleanset --help` is. Without hidden commands.
    """
    program = python_command("-m", "typer", "cleanset.cli", "utils", "docs", "--name", "cleanset")
    text = subprocess.run(program, capture_output=True, text=True, check=True).stdout.partition("\n")[2]
    summaries = dict(re.findall(r"(?m)^##+ `cleanset (.+)`\n\n((?:.+\n)+)", text))

    def whole(entry: re.Match[str]) -> str:
        group = [name for start, name in groups if start < entry.start()][-1:]
        name = " ".join([*group, entry[1]])
        name = name if name in summaries else entry[1]
        if name in hidden:
            return ""
        panel = "" if group else first_of_panel.get(name, "")
        return f"{panel}* [`{name}`](#cleanset-{name.replace(' ', '-')}): {' '.join(summaries[name].split())}\n"

    first_of_panel = {names[0]: f"\n**{panel}**\n\n" for panel, names in PANELS.items()}
    hidden = set(hidden_commands(get_command(app), ()))
    groups = [(found.start(), found[1]) for found in re.finditer(r"(?m)^##+ `cleanset (.+)`$", text)]
    text = re.sub(r"(?m)^\* `([a-z][\w-]*)`: .*\n", whole, text)
    parts = re.split(r"(?m)^(?=##+ `cleanset )", text)
    return "".join(part for part in parts if part.partition("`cleanset ")[2].partition("`")[0] not in hidden)


def hidden_commands(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    """The names of the hidden commands below a command, such as `robustness stage`."""
    if command.hidden:
        yield " ".join(path)
    for name, each in getattr(command, "commands", {}).items():
        yield from hidden_commands(each, (*path, name))


def params() -> str:
    """The keys of an edition's params.yaml."""
    protocols = [
        (f"`{name}`", ", ".join(f"`{section}.{key}: {value}`" for section, keys in given.items()
        for key, value in keys.items()).replace("'", ""))
        for name, given in PROTOCOLS.items()
    ]  # fmt: skip
    return sections(Params, f"\n\n{_table(('PROTOCOLS', 'what it gives'), protocols)}")


def sections(model: type[BaseModel], after_top: str = "") -> str:
    """The keys of a params file: those outside sections, then each section with its values and defaults."""
    schema = model.model_json_schema(schema_generator=WithDefaults)
    return _described(schema, "", schema.get("$defs", {}), 2, after_top)


class WithDefaults(GenerateJsonSchema):
    """A schema that includes the defaults made by a function, and each field's docstring as its `meaning`."""

    def model_schema(self, schema: Any) -> Any:
        """The schema of a section."""
        found = super().model_schema(schema)
        docstrings = field_docstrings(schema["cls"])
        for name in found.get("properties", {}).keys() & docstrings.keys():
            found["properties"][name]["meaning"] = docstrings[name]
        return found

    def get_default_value(self, schema: Any) -> Any:
        """The default of a field."""
        made = "default_factory" in schema and not schema.get("default_factory_takes_data")
        return schema["default_factory"]() if made else super().get_default_value(schema)


def field_docstrings(model: type) -> dict[str, str]:
    """The docstrings below the fields of a record, those of what it inherits from in this package included."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if not each.__module__.startswith("cleanset."):
            continue
        try:
            [definition] = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        except OSError:  # a class that a function made has no source
            continue
        assert isinstance(definition, ast.ClassDef)
        for field, below in itertools.pairwise(definition.body):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                found.pop(field.target.id, None)
                if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                    found[field.target.id] = inspect.cleandoc(str(below.value.value))
    return found


def _described(section: Mapping[str, Any], prefix: str, definitions: Mapping[str, Any], level: int, end: str) -> str:
    """The description of a section, a table of its keys, `end`, and its sections under headings of that level."""
    fields = {key: _resolved(field, definitions) for key, field in section["properties"].items()}
    plain = {key: field for key, field in fields.items() if "properties" not in field}
    text = _documented(section["description"]) + (_keys(prefix, plain, section.get("required", ())) if plain else "")
    text += end
    for key, field in fields.items():
        for path, inner in _inner(f"{prefix}{key}", field, definitions):
            text += f"\n\n{'#' * min(level, 4)} `{path}`\n\n"
            text += _described(inner, f"{path}.", definitions, level + 1, "")
    return text


def _inner(path: str, field: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The sections in a key's value: its own, that of each name or kind, or that of a list's entries."""
    each = _each(field)
    if "properties" in field:
        yield path, dict(field)
    for kind, reference in each.get("discriminator", {}).get("mapping", {}).items():
        yield f"{path}.{kind}", _resolved({"$ref": reference}, definitions)
    if "$ref" in each:
        yield f"{path}.<{_named_by(path)}>", _resolved(each, definitions)
    if "$ref" in field.get("items", {}):
        yield f"{path}[]", _resolved(field["items"], definitions)
    for choice in field.get("anyOf", ()):
        if "properties" in _resolved(choice, definitions):
            yield path, _resolved(choice, definitions)


def _each(field: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of the values of a mapping; nothing for another field."""
    found = next(iter(field.get("patternProperties", {}).values()), field.get("additionalProperties") or {})
    return found if isinstance(found, dict) else {}


def _named_by(path: str) -> str:
    """The word for the names in a mapping."""
    names = {"attacks": "attack", "board": "member", "classes": "group", "groups": "group", "wrapped": "name"}
    return names.get(path.rpartition(".")[2], "role")


def _resolved(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A field's schema with what it refers to put in."""
    reference = field.get("$ref", "").removeprefix("#/$defs/")
    return {**definitions[reference], **field} if reference else dict(field)


def _documented(docstring: str) -> str:
    """A docstring, with the keys that it explains as a list."""
    return re.sub(r"(?m)^(`\w+`(?:,? and `\w+`)?(?: \(.+?\))?:)", r"\n\1", docstring) + "\n\n"


def _keys(prefix: str, fields: Mapping[str, Mapping[str, Any]], required: Iterable[str]) -> str:
    rows = []
    for name, field in fields.items():
        default = "(needed)" if name in required else _default(field)
        meaning = " ".join(field.get("meaning", "").split()).replace("|", "\\|")
        rows.append((f"`{prefix}{name}`", _values(field, name), default, meaning))
    # without a column of meanings where the section's docstring explains its keys
    columns = 4 if any(row[-1] for row in rows) else 3
    return _table(("key", "values", "default", "meaning")[:columns], [row[:columns] for row in rows])


def _values(field: Mapping[str, Any], name: str = "") -> str:
    """The possible values of the key `name`, in words."""
    if "anyOf" in field:
        return " or ".join(_values(each, name) for each in field["anyOf"])
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if "$ref" in field:
        return f"a section `{snake_case(field['$ref'].rpartition('/')[2])}`"
    kinds = {"integer": "whole number", "number": "number", "string": "text", "boolean": "`true`, `false`",
             "null": "nothing", "array": "list", "object": f"a section for each {_named_by(name)}"}  # fmt: skip
    kind = kinds[field["type"]]
    if kind == "list":
        return "list of sections" if "$ref" in field["items"] else f"list of {_values(field['items'])}"
    if "type" in _each(field):
        kind = f"{_values(_each(field))}, by {_named_by(name)}"
    kind += _range(field)
    return f"{kind} as in `{field['pattern']}`".replace("|", "\\|") if "pattern" in field else kind


def _range(field: Mapping[str, Any]) -> str:
    """The bounds of a number, in words."""
    least = field.get("minimum")
    most = field.get("maximum")
    above = field.get("exclusiveMinimum", field.get("gt"))
    text = f" from {least:,}" if least is not None else f" above {above:,}" if above is not None else ""
    return text + (f" to {most:,}" if most is not None else "")


def snake_case(name: str) -> str:
    """The kind of an attack, from the name of its class."""
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name.removesuffix("Attack")).lower()


def _default(field: Mapping[str, Any]) -> str:
    """A default as params.yaml has it; a mapping of sections is summarised."""
    value = field.get("default")
    if isinstance(value, dict) and any(isinstance(each, dict) for each in value.values()):
        return "all, with their defaults"
    if isinstance(value, dict) and "kind" in value:
        return "with its defaults"
    return f"`{_yaml(value)}`"


def _yaml(value: object) -> str:
    """A default as params.yaml has it; a long number as the fraction that it is."""
    if isinstance(value, float) and len(repr(value)) > 8:
        return str(Fraction(value).limit_denominator(255))
    return value if isinstance(value, str) and value else json.dumps(value).replace('"', "" if value else '"')


def manifest() -> str:
    """The columns of a manifest, and which sets have them."""
    sets = {"model": "with a model", "studies": "compared with studies of labels", "own": "of your own images"}
    rows = (
        (
            f"`{name}`",
            column.kind,
            column.description.replace("|", "\\|"),
            sets.get(column.only, "all"),
            str(column.since),
        )
        for name, column in COLUMNS.items()
    )
    return _table(("column", "type", "meaning", "sets", "since format"), rows)


def corruptions() -> str:
    """The corruptions, the benchmark that each is of, and what it does."""
    rows = ((f"`{name}`", entry.benchmark or "", entry.effect) for name, entry in CORRUPTION_ENTRIES.items())
    return _table(("corruption", "benchmark", "effect"), rows)


def attacks() -> str:
    """The attacks, and what each does."""
    return _table(("attack", "effect"), ((f"`{kind}`", attack.effect) for kind, attack in ATTACKS.items()))


def hints() -> str:
    """The hints, the sign that each looks for, and how often it was right (bench/hint_rates.yaml)."""
    rates = read_yaml(ROOT / "bench" / "hint_rates.yaml", "expected the rates of the hints")
    rows = [(each.kind.replace("_", " "), each.docs, _rate(each, rates)) for each in HINTS.values()]
    return _table(("hint", "sign", "found"), rows)


def _rate(hint: type[KnownHint], rates: Any) -> str:
    """How many flaws a hint has found; empty if its rules have changed since, or nobody has rated it."""
    day = hint.rules_of.isoformat()
    found = rates["half_of_500"]["flaws"].get(hint.kind)
    copies = rates["copies"]
    if found is not None and found["rules_of"] == day:
        return f"{found['found']} of {found['flawed']}, and {found['false']} without"
    if hint.kind == "duplicate" and copies["rules_of"] == day:
        return f"{copies['found_by_share']['0.05']} of {copies['photographs']} copies without 5 % of each side"
    return "not yet measured"


def all_tables() -> str:
    """The columns of every table of an edition, with type and values."""
    found = {name.lower(): table for name, table in vars(tables).items() if isinstance(table, Table)}
    return _tables(found)


def study_tables() -> str:
    """The columns of every table of a study of robustness and of attacks, and of the CSV files of their measures."""
    found = {"data/images.parquet": STUDY_IMAGES, "data/masks.parquet": MASKS}
    found |= {f"data/{family}/<model>.parquet": table for family, table in ANSWER_TABLES.items()}
    found |= {f"data/digests/{family}.parquet": table for family, table in DIGESTS.items()}
    found["data/attacks/<attack>/<model>/attacked.parquet"] = ATTACKED
    text = _tables(found)
    for name, columns in {**MEASURE_FILES, "attack_measures.csv": ATTACK_COLUMNS}.items():
        said = {**MEASURE_COLUMNS, **(OF_ATTACKS if columns == ATTACK_COLUMNS else {})}
        text += f"## `data/{name}`\n\n"
        text += _table(("column", "meaning"), ((f"`{key}`", said[key]) for key in columns)) + "\n\n"
    return text


def _tables(found: Mapping[str, Table]) -> str:
    text = ""
    for name, table in found.items():
        rows = [
            (f"`{column}`", f"`{kind.type}`", kind.expected(imagenet()) + (", or null" if kind.nullable else ""))
            for column, kind in table.columns.items()
        ]
        text += f"## `{name}`\n\nSorted by {', '.join(f'`{key}`' for key in table.key)}.\n\n"
        text += _table(("column", "type", "values"), rows) + "\n\n"
    return text


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]], right: tuple[int, ...] = ()) -> str:
    """A table; the columns `right` are aligned to the right."""
    lines = [head, tuple("--:" if place in right else "---" for place in range(len(head))), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def example(study: str) -> str:
    """The params of a study of the sample, as YAML."""
    return f"```yaml\n{(ROOT / 'studies' / study / 'params.yaml').read_text('utf-8')}```"


def paper(name: str) -> str:
    """What `cleanset reproduce NAME` finds: its summary, the numbers that differ, and what is not computed."""
    found = papers.PAPERS[name](None)
    text = f"`cleanset reproduce {name}`: {papers.summary_of(found)}.\n\n"
    rows = []
    for texts, (printed, computed, difference, verdict, _) in papers.table_of(found).rows:
        if verdict.value == "differs":
            rows.append((*texts, str(printed.value), str(computed.value), str(difference.value)))
    if rows:
        head = ("where", "number", "printed", "computed", "difference")
        text += _table(head, rows, right=(2, 3, 4)) + "\n\n"
    for title, lines in (
        ("Not computed:", papers.not_computed_lines(found)),
        ("Tests, not counted, of the authors' program on our own input:", papers.own_input_lines(found)),
    ):
        if lines:
            text += f"{title}\n\n" + "".join(f"- {' '.join(line.split())}\n" for line in lines) + "\n"
    return text.rstrip("\n")


PUBLIC = {
    "Load a set": (
        "loading.load", "loading.table", "sets.image_set.ImageSet", "sets.torch_dataset.TorchImageSet",
        "sets.manifest.Entry",
    ),
    "Evaluate a model": (
        "evaluation.function.evaluate", "evaluation.function.Results", "evaluation.pairs.Pair",
    ),
    "Change images": (
        "api.changes.corrupt", "api.changes.perturb", "api.changes.watermark", "api.changes.change_background",
        "api.changes.changes",
    ),
    "Robustness, attacks, comparison": (
        "api.measured.robustness", "api.measured.attack", "api.measured.compare", "api.results.MeasureResults",
    ),
    "Images and sets": ("api.sets.hints", "api.sets.verify", "api.sets.published"),
    "Errors": (
        "errors.CleansetError", "errors.InputError", "errors.UnreachableError", "errors.DamagedError",
        "errors.NotComparableError",
    ),
}  # fmt: skip
"""What users of Python may rely on, by heading."""


def python() -> str:
    """Every public function and class with its signature, its docstring, and what a class offers."""
    text = ""
    for title, names in PUBLIC.items():
        text += f"## {title}\n\n"
        for module, _, name in (each.rpartition(".") for each in names):
            text += _public(vars(import_module(f"cleanset.{module}"))[name])
    return text


def _public(found: Any) -> str:
    (node,) = ast.parse(inspect.getsource(found)).body
    text = f"### {found.__name__}\n\n"
    if isinstance(node, ast.FunctionDef):
        text += f"```python\n{_signature(node)}\n```\n\n"
    text += f"{inspect.getdoc(found)}\n\n"
    if isinstance(node, ast.ClassDef):
        offered = field_docstrings(found) | dict(_methods(node))
        text += "".join(f"- `{name}`: {' '.join(words.split())}\n" for name, words in offered.items()) + "\n"
    return text


def _methods(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The public methods of a class, with their signatures, and its properties, with their docstrings."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_") and (words := ast.get_docstring(each)):
            names = {getattr(decorator, "id", "") for decorator in each.decorator_list}
            yield each.name if names & {"property", "cached_property"} else " ".join(_signature(each).split()), words


def _signature(node: ast.FunctionDef) -> str:
    """The signature of a function, with types; an argument a line where they do not fit into one."""
    called = re.sub("^(self|cls)(, )?", "", ast.unparse(node.args)).replace("'", '"')
    called = re.sub(r"(?<=[\w\])])=", " = ", called)
    result = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    if len(called) > 88:
        called = "\n    " + re.sub(r", (?=\*|\w+[:=])", ",\n    ", called) + ",\n"
    return f"{node.name}({called}){result}"


def table_of_file(name: str, right: tuple[int, ...], chosen: str = "") -> str:
    """The table of a CSV file in docs/data; `chosen`: only its rows with this value of `section`, which is left out."""
    with (DOCS / "data" / name).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    titles = [title for title in rows[0] if title != "section"]
    cells = [tuple(row[title] for title in titles) for row in rows if row.get("section", "") == chosen]
    return _table(tuple(titles), cells, right)


def filled(page: str) -> str:
    """The text of a page with every part up to date."""

    def made(found: re.Match[str]) -> str:
        name = found[1]
        return f"<!-- {name} -->\n\n{PARTS[name]().strip(chr(10))}\n\n<!-- /{name} -->"

    names = "|".join(map(re.escape, PARTS))
    return re.sub(rf"(?s)<!-- ({names}) -->(?:(?!<!-- ).*?<!-- /\1 -->)?", made, page)


def main() -> None:
    """Fill all pages, or check them."""
    outdated = []
    for path in sorted(DOCS.glob("**/*.md")):
        before = path.read_text("utf-8")
        after = filled(before)
        if after != before:
            outdated.append(path.relative_to(ROOT).as_posix())
            if "--check" not in sys.argv[1:]:
                path.write_text(after, "utf-8")
    for name in outdated:
        print(f"{name}: {'out of date; run python docs/reference.py' if '--check' in sys.argv[1:] else 'written'}")
    sys.exit(bool(outdated) and "--check" in sys.argv[1:])


PARTS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "params": params,
    "study_params": partial(sections, StudyParams),
    "manifest": manifest,
    "corruptions": corruptions,
    "attacks": attacks,
    "hints": hints,
    "attack_params": partial(sections, AttackParams),
    "attack_example": partial(example, "attacks"),
    "training_params": partial(sections, TrainingParams),
    "training_example": partial(example, "training"),
    "study_example": partial(example, "robustness"),
    "contest_rules": partial(sections, ContestRules),
    "python": python,
    "tables": all_tables,
    "study_tables": study_tables,
    **{f"paper {name}": partial(paper, name) for name in papers.PAPERS},
    "robustbench": partial(table_of_file, "robustbench.csv", (2, 3, 4)),
    **{
        f"authors {section}": partial(table_of_file, "authors.csv", (2, 3), section)
        for section in ("corruptions", "perturbations", "scenarios", "watermark", "factors", "attacks", "training")
    },
}
"""What fills each part, by its name."""


if __name__ == "__main__":
    main()
