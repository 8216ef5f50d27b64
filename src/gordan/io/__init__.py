"""Files: readers for data, conversion to arrays that are mapped, model files, atomic writes."""

from gordan.io.converting import Converted, convert
from gordan.io.files import write_atomic
from gordan.io.model import Model
from gordan.io.reading import read
from gordan.io.table import Table

__all__ = ["Converted", "Model", "Table", "convert", "read", "write_atomic"]
