"""The interface for Python: finished sets, changes of images, and the measures of models on them.

`load` gives a model's finished set as a sequence (a torch Dataset if torch is installed), `table` its manifest as a
pandas table; `published`, `verify` and `hints` make, check and look at images. `corrupt`, `perturb`, `watermark` and
`change_background` change images, `changes` lists how. `evaluate`, `robustness` and `attack` measure any model,
`compare` several results. All raise CleansetError, or one of its kinds: InputError, UnreachableError, DamagedError,
NotComparableError. `__version__` is the version of the installed package. Nothing else is imported before it is asked
for. What `__all__` names is public; the rest may change without notice.
"""

# as type checkers read it; the module typing takes most of the time of this import
TYPE_CHECKING = False

if TYPE_CHECKING:
    from cleanset.api.changes import change_background, changes, corrupt, perturb, watermark
    from cleanset.api.measured import attack, compare, robustness
    from cleanset.api.results import MeasureResults
    from cleanset.api.sets import hints, published, verify
    from cleanset.errors import CleansetError, DamagedError, InputError, NotComparableError, UnreachableError
    from cleanset.evaluation.function import Results, evaluate
    from cleanset.loading import load, table

    __version__: str

_PLACES = {
    "errors": ("CleansetError", "DamagedError", "InputError", "NotComparableError", "UnreachableError"),
    "evaluation.function": ("Results", "evaluate"),
    "loading": ("load", "table"),
    "api.changes": ("change_background", "changes", "corrupt", "perturb", "watermark"),
    "api.measured": ("attack", "compare", "robustness"),
    "api.results": ("MeasureResults",),
    "api.sets": ("hints", "published", "verify"),
}
"""The modules of the public names."""

__all__ = [
    "CleansetError",
    "DamagedError",
    "InputError",
    "MeasureResults",
    "NotComparableError",
    "Results",
    "UnreachableError",
    "attack",
    "change_background",
    "changes",
    "compare",
    "corrupt",
    "evaluate",
    "hints",
    "load",
    "perturb",
    "published",
    "robustness",
    "table",
    "verify",
    "watermark",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("cleanset")
    for module, names in _PLACES.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(f"cleanset.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
