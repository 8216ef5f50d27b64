"""Attributes of a package that are imported on first access, because their dependencies take long to import."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any


def lazy_attributes(package: str, places: dict[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package: `places` maps names to their modules; other names are those of submodules."""

    def imported(name: str) -> Any:
        module = places.get(name, f"{package}.{name}")
        if name.startswith("__") or (name not in places and importlib.util.find_spec(module) is None):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found: Any = importlib.import_module(module)
        if name in places:
            found = getattr(found, name)
        setattr(importlib.import_module(package), name, found)
        return found

    return imported
