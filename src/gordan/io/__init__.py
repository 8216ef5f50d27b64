"""Files: readers for data, conversion to arrays that are mapped, model files, atomic writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gordan.io.converting import Converted as Converted
    from gordan.io.converting import convert as convert
    from gordan.io.files import write_atomic as write_atomic
    from gordan.io.model import Model as Model
    from gordan.io.reading import read as read
    from gordan.io.table import Table as Table

__all__ = ["Converted", "Model", "Table", "convert", "read", "write_atomic"]

# Fetched when they are first asked for: `import gordan` needs none of them.
_PLACES = {
    "Converted": "converting",
    "Model": "model",
    "Table": "table",
    "convert": "converting",
    "read": "reading",
    "write_atomic": "files",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'gordan.io' has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module(f"gordan.io.{_PLACES[name]}"), name)
    globals()[name] = found
    return found
