"""Files: atomic writes (readers, models and checkpoints join them here)."""

from gordan.io.files import write_atomic

__all__ = ["write_atomic"]
