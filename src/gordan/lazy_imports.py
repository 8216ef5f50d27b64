"""Names of a package that are imported when they are first asked for, because what they need takes long to import."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def lazy_attributes(package: str, places: dict[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of that package: `places` says in which module each name is, or which module it is."""

    def imported(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found: Any = importlib.import_module(places[name])
        if places[name] != f"{package}.{name}":
            found = getattr(found, name)
        setattr(importlib.import_module(package), name, found)
        return found

    return imported
