"""The interface for Python: `load` and `table` of finished sets, `evaluate` of models on them, and the errors.

`load` gives a model's finished set as a sequence (a torch Dataset where torch is installed), `table` its manifest as a
pandas table, `evaluate` the measures of any model on a set; all raise CleansetError, or one of its kinds: InputError,
UnreachableError, DamagedError, NotComparableError. `__version__` is the version of
the installed package. Nothing else is imported before it is asked for.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cleanset.errors import CleansetError, DamagedError, InputError, NotComparableError, UnreachableError
    from cleanset.evaluation.function import Results, evaluate
    from cleanset.loading import load, table

    __version__: str

_ERRORS = ("CleansetError", "DamagedError", "InputError", "NotComparableError", "UnreachableError")

__all__ = [
    "CleansetError",
    "DamagedError",
    "InputError",
    "NotComparableError",
    "Results",
    "UnreachableError",
    "evaluate",
    "load",
    "table",
]


def __getattr__(name: str) -> object:
    if name in _ERRORS:
        from cleanset import errors

        return getattr(errors, name)
    if name == "__version__":
        from importlib.metadata import version

        return version("cleanset")
    if name in ("Results", "evaluate"):
        from cleanset.evaluation import function

        return getattr(function, name)
    if name in __all__:
        from cleanset import loading

        return getattr(loading, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
