"""The race: what its table and lines say, re-derived from the traces; and its page in a browser without a network."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from commands import IRIS, run
from typer.testing import CliRunner

import gordan
from gordan import datasets, report
from gordan.cli.app import app
from gordan.report.page import format_seconds

pytest.importorskip("plotly", reason="the page needs plotly: pip install 'gordan[report]'")
METHODS = ["double_oracle", "smooth_perceptron", "mirror_prox_perceptron", "normalized_gradient_descent"]


@pytest.fixture(scope="module")
def result():
    X, y = datasets.iris()
    return replace(report.race(X, y, methods=METHODS, rounds=400), source="</script><b>iris & co", told="setosa against the rest")


@pytest.fixture(scope="module")
def html(result):
    return report.page_html(result)


# ---- the race itself --------------------------------------------------------------------------------------------------


def test_margins_keep_what_the_theorems_promise(result):
    gamma = gordan.maximize_margin(*datasets.iris(), tol=1e-8).margin[0]
    promised = 0
    for lane in result.lanes:
        lines = lane.promised_margin(result.bracket[0])
        if lines is None:
            continue
        promised += 1
        assert (np.array(lines) <= lane.trace.normalized_margin + 1e-9).all()
        # drawn for a lower bound of γ*, so below what would be drawn for γ* itself
        assert (np.array(lines) <= np.array(lane.promised_margin(gamma)) + 1e-9).all()
    assert promised >= 2


@pytest.mark.parametrize("place", [0, 1])
def test_a_race_that_is_stopped_keeps_its_lanes(place, monkeypatch):
    """Ctrl-C before a lane has a round to show: those before it are kept. In the first lane there is nothing to keep."""
    real = report.racing.play

    def play(A, method, *arguments, **options):
        if method.name == METHODS[1 + place]:
            raise KeyboardInterrupt
        return real(A, method, *arguments, **options)

    monkeypatch.setattr(report.racing, "play", play)

    def race():
        return report.race(*datasets.iris(), methods=METHODS[1:], rounds=20)

    if place == 0:
        with pytest.raises(KeyboardInterrupt):
            race()
    else:
        found = race()
        assert [lane.name for lane in found.lanes] == METHODS[1:2]
        assert found.lanes[0].trace.t[-1] == 20


@pytest.mark.parametrize("when", ["verdict", "warm-up"])
def test_a_command_that_is_stopped_plays_no_more_and_shows_what_there_is(when, monkeypatch):
    """Ctrl-C that a function has taken, as those do that keep what they have proved."""
    play, separate = report.racing.play, report.racing.separate

    def press():
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    def interrupted_separate(*arguments, **options):
        if when == "verdict":
            press()
        return separate(*arguments, **options)

    def interrupted_play(A, method, rounds, **options):
        found = play(A, method, rounds, **options)
        if when == "warm-up" and rounds == 2 and method.name == METHODS[2]:
            press()
            return replace(found, status="interrupted")
        return found

    monkeypatch.setattr(report.racing, "play", interrupted_play)
    monkeypatch.setattr(report.racing, "separate", interrupted_separate)
    done = run("race", IRIS, "--positive", "setosa", "--rounds", 20, *(word for name in METHODS[1:] for word in ("-m", name)))
    assert done.exit_code == 130
    assert [name in done.stdout for name in METHODS[1:3]] == [when == "warm-up", False]
    assert ("gordan: interrupted" in done.stderr) == (when == "verdict")


def test_a_race_that_is_stopped_in_a_round_shows_it():
    """The lane that was stopped is the last one, with the rounds it had played."""

    def stop(moment):
        if moment.t == 7:
            raise KeyboardInterrupt

    found = report.race(*datasets.iris(), methods=METHODS[1:], rounds=20, callback=stop)
    assert [(lane.name, lane.trace.status, int(lane.trace.t[-1])) for lane in found.lanes] == [(METHODS[1], "interrupted", 7)]


def test_smooth_perceptron_line_is_the_printed_one(result):
    lane = next(lane for lane in result.lanes if lane.name == "smooth_perceptron")
    X, y = datasets.iris()
    R, gamma = np.linalg.norm(X, axis=1).max(), result.bracket[0]
    D = (np.log((y > 0).sum()) + np.log((y < 0).sum())) / 2
    t = lane.trace.t
    assert lane.promised_margin(gamma) == pytest.approx(gamma - R * 8 * D / (gamma / R * t * (t + 1)), rel=1e-9)


def test_regrets_stay_under_their_bounds(result):
    measured = [lane for lane in result.lanes if lane.average_regret is not None and lane.trace.bound is not None]
    assert len(measured) >= 2
    for lane in measured:
        regret = lane.average_regret
        assert (regret <= lane.trace.bound + 1e-9).all()
        assert (lane.trace.dual - lane.trace.m <= regret + 1e-9).all()  # Theorem 1


def test_a_race_is_reported_in_a_line_for_each_method(result):
    first, *lines = repr(result).split("\n")
    assert "setosa against the rest. separable: " in first
    assert [line.split(":")[0].strip() for line in lines] == METHODS
    assert f"took {result.lanes[0].reached(1e-4).passes:.4g} passes to reach a gap of 0.0001; " in lines[0]
    assert "did not reach a gap of 0.0001; " in lines[-1]


def test_steps_are_first_ones(result):
    for lane in result.lanes:
        rounds = {int(t): k for k, t in enumerate(lane.trace.t)}
        first = lane.first_positive
        assert first is not None
        k = rounds[first.t]
        assert lane.trace.lower[k] > 0
        assert (lane.trace.lower[:k] <= 0).all()
        assert (first.passes, first.seconds) == (lane.trace.passes[k], lane.trace.seconds[k])
        reached = lane.reached(result.tol)
        if reached is None:
            assert (lane.trace.gap > result.tol).all()
        else:
            assert lane.trace.gap[rounds[reached.t]] <= result.tol
            assert (lane.trace.gap[: rounds[reached.t]] > result.tol).all()
    assert result.lanes[0].reached(result.tol) is not None
    assert result.lanes[-1].reached(result.tol) is None


def test_inseparable_data_never_reaches(capsys):
    X, y = datasets.iris("virginica")
    result = report.race(X, y, methods=["smooth_perceptron", "double_oracle"], rounds=30)
    assert result.verdict.separable is False
    assert [(lane.first_positive, lane.reached(1e-4)) for lane in result.lanes] == [(None, None)] * 2
    assert result.bracket[0] == 0
    assert result.lanes[0].promised_margin(result.bracket[0]) is None
    assert report.page_html(result).count("not reached") == 4


def test_other_norms_and_intercepts():
    X, y = datasets.iris()
    result = report.race(X, y, norm=4.0, intercept="penalized", rounds=20)
    assert [lane.name for lane in result.lanes] == ["double_oracle", "smooth_p_norm_perceptron", "accelerated_p_norm_perceptron"]
    # one margin, three brackets
    assert max(lane.trace.bracket[0] for lane in result.lanes) <= min(lane.trace.bracket[1] for lane in result.lanes) * (1 + 1e-9)
    for norm, names in ((np.inf, ["double_oracle", "steepest_descent"]), (1, ["box_perceptron", "steepest_descent"])):
        lanes = report.race(X, y, norm=norm, rounds=50).lanes
        assert [lane.name for lane in lanes] == names
        lower, upper = gordan.maximize_margin(X, y, norm=norm, tol=1e-6).margin
        for lane in lanes:
            assert lane.trace.bracket[0] <= upper * (1 + 1e-9)
            assert lane.trace.bracket[1] >= lower * (1 - 1e-9)
    assert "perceptron" in [lane.name for lane in report.race(X, y, intercept="none", rounds=3).lanes]
    for wrong, told in (
        ({"methods": ["perceptron"]}, "supports neither caps"),
        ({"methods": ["smooth_perceptron"], "norm": 3.0}, "plays for the norm 2, not 3"),
        ({"norm": 0.9}, "norm is 0.9"),
        ({"methods": ["nesterov"], "norm": 1.5}, "nesterov: the norm p is 1.5"),
        ({"methods": ["box_perceptron"]}, "box_perceptron: the norm p is 2.0"),
        ({"methods": ["smooth_p_norm_perceptron"], "norm": np.inf}, "the norm p is inf"),
        ({"methods": ["nesterov"] * 2}, "listed twice"),
        ({"methods": ["robust_perceptron"]}, "margins under noise"),
    ):
        with pytest.raises(gordan.InputError, match=told):
            report.race(X, y, **wrong)


@pytest.mark.parametrize(("seconds", "told"), [(2e-5, "20 µs"), (0.0123, "12 ms"), (0.25, "250 ms"), (3.456, "3.46 s")])
def test_seconds(seconds, told):
    assert format_seconds(seconds) == told


# ---- the page as text -------------------------------------------------------------------------------------------------


class _Parts(HTMLParser):
    """What refers to somewhere else, and the rows of the table."""

    def __init__(self):
        super().__init__()
        self.outside, self.rows, self.inside, self.scripts = [], [], False, 0

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.outside += [v for k, v in attributes if k in ("src", "href") and not (v or "").startswith("data:")]
        self.scripts += tag == "script"
        if tag == "tr" and "data-method" in found:
            self.rows.append([])
        self.inside = tag in ("td", "th", "span", "wbr") and bool(self.rows)

    def handle_data(self, text):
        if self.inside and self.rows and text.strip():
            self.rows[-1].append(text.strip())


def test_page_needs_nothing_else(html, result):
    parts = _Parts()
    parts.feed(html)
    assert parts.outside == []
    assert parts.scripts == 3  # data, plotly, ours: a name from outside has opened no other
    assert "<b>iris" not in html
    assert [re.sub("[^a-z_]", "", "".join(row))[: len(name)] for row, name in zip(parts.rows, METHODS, strict=True)] == METHODS


def test_page_carries_the_numbers(html, result):
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)[1])
    for lane, shown in zip(result.lanes, data["methods"], strict=True):
        assert shown["columns"]["upper"] == lane.trace.upper.tolist()
        assert shown["columns"]["gap"] == lane.trace.gap.tolist()


def test_command_writes_the_page(tmp_path):
    page = tmp_path / "report.html"
    path = os.path.join(os.path.dirname(gordan.__file__), "data", "iris.csv")
    arguments = ["race", path, "--positive", "setosa", "--rounds", "50", "-m", "nesterov", "-m", "double_oracle"]
    done = CliRunner().invoke(app, [*arguments, "--html", str(page)])
    assert done.exit_code == 0, done.output
    assert re.search(r"double_oracle +[\d.]+ passes +[\d.]+ passes", done.output)
    assert re.search(r"nesterov +1 pass +-", done.output)
    assert page.read_text().startswith("<!doctype html>")
    told = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert [method["method"] for method in told["methods"]] == ["nesterov", "double_oracle"]
    assert told["methods"][1]["to_tol"]["passes"] > 0
    assert told["methods"][0]["to_tol"] is None


def test_without_plotly_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr("gordan.report.page.find_spec", lambda _: None)
    path = os.path.join(os.path.dirname(gordan.__file__), "data", "rash.csv")
    done = CliRunner().invoke(app, ["race", path, "--html", str(tmp_path / "x.html")])
    assert done.exit_code == 2
    assert "pip install 'gordan[report]'" in done.stderr


# ---- the page in a browser --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    api = pytest.importorskip("playwright.sync_api", reason="driving a browser needs playwright: pip install 'gordan[test]'")
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    found = os.environ.get("GORDAN_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("no Chromium: install Debian's package chromium (apt install chromium), or set GORDAN_CHROMIUM to its path")
    with api.sync_playwright() as driver:
        options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        context = driver.chromium.launch_persistent_context(
            str(tmp_path_factory.mktemp("profile")), executable_path=found, headless=True, args=options, offline=True
        )
        yield context
        context.close()


@pytest.fixture
def tab(browser, html, tmp_path):
    """The page, opened anew; a test that makes the browser complain or ask the network for something has failed."""
    path = tmp_path / "race.html"
    path.write_text(html, encoding="utf-8")
    tab, complaints = browser.new_page(), []
    tab.set_default_timeout(300_000)  # ms
    tab.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: request.url.startswith(("file:", "data:", "blob:")) or complaints.append(request.url))
    tab.goto(path.as_uri())
    tab.wait_for_selector("#plot-regret .main-svg")
    yield tab
    tab.close()
    assert complaints == []


VISIBLE = "id => document.getElementById(id).data.filter(line => line.visible).map(line => line.name)"


@pytest.mark.skipif(sys.platform == "win32", reason="not tried on Windows")
def test_page_loads_and_toggles_a_series(tab):
    plots = ["plot-bracket", "plot-gap", "plot-margin", "plot-regret"]
    assert all(any(name.startswith("smooth_perceptron") for name in tab.evaluate(VISIBLE, plot)) for plot in plots)
    drawn = tab.locator("#plot-bracket .scatterlayer .trace").count()
    chip = tab.get_by_role("button", name="smooth_perceptron")
    assert chip.get_attribute("aria-pressed") == "true"
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    for plot in plots:
        assert not any(name.startswith("smooth_perceptron") for name in tab.evaluate(VISIBLE, plot))
    assert tab.locator("#plot-bracket .scatterlayer .trace").count() == drawn - 2
    chip.press("Enter")  # by keyboard as well
    assert tab.locator("#plot-bracket .scatterlayer .trace").count() == drawn
    title = "id => document.getElementById(id).layout.xaxis.title.text"
    assert tab.evaluate(title, "plot-gap") == "passes"
    tab.get_by_role("radio", name="seconds").check()
    assert tab.evaluate(title, "plot-gap") == "seconds"
    assert tab.evaluate(title, "plot-margin") == "rounds"


def test_tiny_gaps_take_no_room(tab, result):
    """Those below a tenth of the tolerance are drawn there; what is shown when one points at them is what they are."""
    drawn = tab.evaluate("document.getElementById('plot-gap').data.map(line => [line.y, line.customdata])")
    assert min(min(y) for y, _ in drawn) == result.tol / 10
    assert [told for _, told in drawn] == [lane.trace.gap.tolist() for lane in result.lanes]
    assert min(min(told) for _, told in drawn) < 1e-9


def test_page_has_names_for_everything(tab):
    unnamed = """() => Array.from(document.querySelectorAll("button, input, [role=img], [role=region], figure, table"))
        .filter(e => !(e.ariaLabel || e.getAttribute("aria-labelledby") || e.labels?.length || e.caption || e.textContent.trim()))
        .map(e => e.outerHTML.slice(0, 80))"""
    assert tab.evaluate(unnamed) == []
    assert tab.get_by_role("img", name="Relative gap against passes").count() == 1
    assert tab.get_by_role("table", name="Each method on the same rows").count() == 1
    assert tab.get_by_role("rowheader").count() == len(METHODS)


def contrast(first: str, second: str) -> float:
    """Of two colours rgb(…), as WCAG defines it."""
    lights = []
    for colour in (first, second):
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(lights) + 0.05) / (min(lights) + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_in_light_and_dark(tab, scheme, tmp_path):
    tab.emulate_media(color_scheme=scheme)
    tab.wait_for_selector(f"html[data-theme={scheme}]")
    ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (contrast(ground, "rgb(255, 255, 255)") < 1.5) == (scheme == "light")
    for selector, least in (("body", 7), (".facts", 4.5), (".never", 4.5), ("tbody .mark", 4.5)):
        for colour in tab.eval_on_selector_all(selector, "all => all.map(e => getComputedStyle(e).color)"):
            assert contrast(ground, colour) >= least, (selector, colour)
    tab.get_by_role("button", name="colours").click()  # the reader may choose the other one
    assert tab.evaluate("document.documentElement.dataset.theme") != scheme
    picture = tab.screenshot(path=tmp_path / f"{scheme}.png", full_page=True)
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 20_000


def test_page_on_a_phone(tab):
    tab.set_viewport_size({"width": 375, "height": 812})
    drawn = "document.documentElement.scrollWidth <= 375 ? done() : requestAnimationFrame(look)"  # the plots are drawn again
    tab.evaluate(f"() => new Promise(done => {{ const look = () => {drawn}; look(); }})")  # the page allows no eval
    width = "document.getElementById('plot-bracket').getBoundingClientRect().width"
    assert 250 <= tab.evaluate(width) <= 375
    table = "const box = document.querySelector('.scroll'); box.scrollWidth <= box.clientWidth"
    assert tab.evaluate(table)  # cells are below each other, each with its heading
    assert tab.eval_on_selector("td", "cell => getComputedStyle(cell, '::before').content") == '"first separator"'
    small = "Array.from(document.querySelectorAll('button')).filter(e => e.getBoundingClientRect().height < 40).length"
    assert tab.evaluate(small) == 0


def test_who_cannot_run_says_so_before_anybody_does():
    X, y, begun = [[0.0, 0.0], [1.0, 1.0], [3.0, 0.0]], [0, 0, 1], []
    for name in ("perceptron", "gradient_descent", "p_norm_perceptron"):
        with pytest.raises(gordan.InputError, match=f"{name} supports neither caps"):
            report.race(X, y, methods=["smooth_perceptron", name], begin=begun.append)
    assert begun == []
    with pytest.raises(gordan.InputError, match="callback is 3"):
        report.race(X, y, callback=3)
