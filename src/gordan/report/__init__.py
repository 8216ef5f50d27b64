"""Reports: a race of methods on one data set, and its page."""

from gordan.report.page import page_html, require_plotly
from gordan.report.racing import Lane, Race, race

__all__ = ["Lane", "Race", "page_html", "race", "require_plotly"]
