"""Races: several methods on the same data, measured in the same way, and the HTML page that shows the result."""

from gordan.report.page import page_html, require_plotly
from gordan.report.racing import Lane, Race, race

__all__ = ["Lane", "Race", "page_html", "race", "require_plotly"]
