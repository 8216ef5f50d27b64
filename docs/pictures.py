"""Take screenshots of the race page: light, dark, and with the width of a phone.

    python docs/pictures.py            # into docs/pictures; needs plotly, playwright and Chromium (or GORDAN_CHROMIUM)

The other pictures are drawn by the pages that show them: `python docs/pages.py`. `make pages` does both.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from gordan import datasets, report

OUT = Path(__file__).resolve().parent / "pictures"
# name, colours, width and height of the window, pixels per unit, the part of the page that is shown
SHOTS = [
    ("race-light", "light", 1100, 1000, 1, None),
    ("race-dark", "dark", 1100, 1000, 1, None),
    ("race-phone", "light", 375, 812, 2, 2050),
]


def main() -> None:
    """Run a race on iris, open its page, and take three screenshots."""
    X, y = datasets.iris()
    race = replace(report.race(X, y), source="iris.csv", told="setosa against the rest")
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    browser = os.environ.get("GORDAN_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        raise SystemExit("no Chromium: install Debian's package (apt install chromium), or set GORDAN_CHROMIUM to its path")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        page = Path(folder) / "race.html"
        page.write_text(report.page_html(race), encoding="utf-8")
        options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        chromium = driver.chromium.launch(executable_path=browser, args=options)
        for name, scheme, width, height, density, cut in SHOTS:
            context = chromium.new_context(
                viewport={"width": width, "height": height}, device_scale_factor=density, color_scheme=scheme, offline=True
            )
            tab = context.new_page()
            tab.goto(page.as_uri())
            tab.wait_for_selector("#plot-regret .main-svg")
            tab.wait_for_timeout(500)
            raw = Path(folder) / f"{name}.png"
            tab.screenshot(path=raw, full_page=True)
            with Image.open(raw) as picture:
                shown = picture.crop((0, 0, picture.width, min(picture.height, cut * density))) if cut else picture
                shown.convert("RGB").quantize(256, method=Image.Quantize.FASTOCTREE).save(OUT / f"{name}.png", optimize=True)
            context.close()
        chromium.close()


if __name__ == "__main__":
    main()
