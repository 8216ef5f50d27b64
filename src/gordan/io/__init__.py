"""Files: readers for data, model files, atomic writes."""

from gordan.io.files import write_atomic
from gordan.io.model import Model
from gordan.io.reading import read
from gordan.io.table import Table

__all__ = ["Model", "Table", "read", "write_atomic"]
