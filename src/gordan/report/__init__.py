"""Reports: a race of methods on one data set, and its page."""

from gordan.report.page import page, require_plotly
from gordan.report.race import Lane, Race, race

__all__ = ["Lane", "Race", "page", "race", "require_plotly"]
