"""Read tables of data, convert them to memory-mapped arrays, and read and write model files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gordan.lazy_imports import lazy_attributes

if TYPE_CHECKING:
    from gordan.io.converting import Converted as Converted
    from gordan.io.converting import convert as convert
    from gordan.io.files import write_atomic as write_atomic
    from gordan.io.model import Model as Model
    from gordan.io.reading import read as read
    from gordan.io.store import check as check
    from gordan.io.table import Table as Table

__all__ = ["Converted", "Model", "Table", "check", "convert", "read", "write_atomic"]

# `import gordan` needs none of these modules, so they are imported when first used.
__getattr__ = lazy_attributes(
    __name__,
    {
        "Converted": "gordan.io.converting",
        "Model": "gordan.io.model",
        "Table": "gordan.io.table",
        "check": "gordan.io.store",
        "convert": "gordan.io.converting",
        "read": "gordan.io.reading",
        "write_atomic": "gordan.io.files",
    },
)
