"""The command line: what it prints is re-derived from the files it was given."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from commands import IRIS, RASH, SETOSA, answer, program, run, write_csv
from terminal import signalled

import gordan
from gordan.cli import answers
from gordan.cli.commands import Interrupts, Terminated
from gordan.cli.data import parse_size
from gordan.cli.progress import Watch, fit_to_width
from gordan.compiling import _CompilationLog
from gordan.io import Model, read
from gordan.io.lines import lines_of

# ---- play and demo ----------------------------------------------------------------------------------------------------


def test_play_prints_a_table_or_the_trace(tmp_path):
    arguments = ("play", IRIS, "mirror_prox_perceptron", "--positive", "setosa", "--rounds", 200)
    found = answer(*arguments, "--save", tmp_path / "t.json")
    saved = gordan.Trace.load(tmp_path / "t.json")
    assert found["columns"]["upper"] == saved.upper.tolist()
    assert found["bracket"][0] <= SETOSA <= found["bracket"][1]
    lines = [line.split() for line in run(*arguments).stdout.splitlines()]
    last = next(line for line in reversed(lines) if line[:1] == ["200"])
    assert float(last[2]) <= SETOSA <= float(last[3])


def test_play_says_how_it_ended():
    arguments = ("play", IRIS, "--positive", "setosa", "--intercept", "none")
    assert "\nfinished after round " in run(*arguments, "perceptron").stdout
    assert "\nstopped: time limit (round " in run(*arguments, "--rounds", 10**9, "--time-limit", 0.01).stdout


def test_demo(tmp_path):
    result = run("demo", "--rounds", "300", "--picture", tmp_path / "demo.png")
    assert result.exit_code == 0
    brackets = [tuple(map(float, pair)) for pair in re.findall(r"(0\.\d{5,7}) (\d\.\d{4,6})\b", result.output)]
    assert len(brackets) == 3
    assert all(lower <= SETOSA <= upper for lower, upper in brackets)
    assert "cancel exactly" in result.output
    assert "Quasi-complete separation" in result.output
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    found = answer("demo", "--rounds", "10", "--no-picture")
    assert found["virginica"]["accepted"]
    assert found["picture"] is None


def test_demo_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("demo", "--rounds", "10", "--picture", tmp_path / "demo.png")
    assert result.exit_code == 0
    assert "gordan[plot]" in result.output
    assert not (tmp_path / "demo.png").exists()


def test_the_demo_is_shown_where_no_picture_can_be_saved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gordan-demo.png").mkdir()  # a place that cannot be written to, for root as well
    result = run("demo", "--rounds", "10")
    assert result.exit_code == 0
    assert "cancel exactly" in result.output
    assert "no picture was saved. gordan-demo.png: cannot be written: Is a directory" in result.output
    assert answer("demo", "--rounds", "10")["picture"] is None
    assert run("demo", "--rounds", "10", "--picture", "gordan-demo.png").exit_code == 2
    assert run("demo", "--rounds", "10", "--picture", "demo.docx").exit_code == 2


# ---- files, lines, wrong use ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        ("a.csv", 'a,y\n1,0\n\n2,1\n"3\n",1\n4,0\n', {0: 2, 1: 4, 2: 5, 3: 7}),
        ("a.tsv", "\ufeffa\ty\r\n1\t0\r\n2\t1\r\n", {0: 2, 1: 3}),
        ("a.svm", "# one\n1 1:1\n\n-1 2:1 # two\n1\n", {0: 2, 1: 4, 2: 5}),
    ],
)
def test_lines_of_rows(tmp_path, name, content, lines):
    path = tmp_path / name
    path.write_bytes(content.encode())
    assert lines_of(path, [*lines]) == lines
    assert lines_of(path, [1]) == {1: lines[1]}
    if '"' not in content:
        assert len(read(path).y) == len(lines)


def test_binary_files_have_no_lines(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(3))
    assert lines_of(tmp_path / "a.npy", [0]) == {}


def bad_files(folder: Path) -> None:
    (folder / "bad.csv").write_text("a,b,y\n1,2,0\n1,x,1\n")
    (folder / "one.csv").write_text("a,y\n1,0\n2,0\n")
    (folder / "empty.csv").write_text("")
    (folder / "bad.svm").write_text("1 1:2\n-1 2:1 1:3\n")
    (folder / "junk.json").write_text("{}")


WRONG = [
    (["nonsense"], "No such command"),
    (["separate"], "Missing argument"),
    (["separate", "missing.csv"], "missing.csv: No such file"),
    (["separate", "bad.csv"], "bad.csv, line 3, column 1 ('b'): the cell is 'x', which is not a number"),
    (["separate", "bad.svm"], "bad.svm, line 2: index 1 comes after 2"),
    (["separate", "one.csv"], "one.csv has one class only"),
    (["separate", "empty.csv"], "empty.csv is empty"),
    (["separate", IRIS], "3 classes, setosa, versicolor, virginica; pass --positive setosa"),
    (["separate", IRIS, "--positive", "rose"], "no class 'rose'; its classes are setosa"),
    (["separate", RASH, "--label", "colour"], "no column named 'colour'; its columns are 'age'"),
    (["separate", RASH, "--certificate", "nowhere/c.json"], "the folder nowhere does not exist"),
    (["separate", RASH, "--intercept", "maybe"], "'maybe' is not one of 'free', 'penalized', 'none'"),
    (["fit", RASH], "Missing option"),
    (["fit", RASH, "-o", "m", "--norm", "1"], "Invalid value for '--norm'"),
    (["fit", RASH, "-o", "m", "--nu", "0.99"], "nu is 0.99; for this data it must be in (0,"),
    (["fit", RASH, "-o", "m", "--method", "magic"], "there is no method 'magic'; choose one of"),
    (["predict", RASH, RASH], "rash.csv is not a model file of gordan; the model comes first"),
    (["verify", "junk.json", RASH], "junk.json: this is not a certificate"),
    (["play", RASH, "magic"], "there is no method 'magic'"),
    (["play", RASH, "smooth_perceptron", "--norm", "3"], "smooth_perceptron does not take --norm"),
    (["race", RASH, "--method", "perceptron"], "perceptron supports neither caps (nu) nor halves (a free intercept)"),
    (["demo", "--rounds", "0"], "Invalid value for '--rounds'"),
    (["convert", "--check", IRIS], "iris.csv is not a folder that `gordan convert` wrote"),
    (["convert", "--check", "."], ". is not a folder that `gordan convert` wrote"),
    (["convert", "--check", "nope"], "nope: No such file or directory"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), WRONG, ids=[" ".join(map(str, a[:1])) + str(k) for k, (a, _) in enumerate(WRONG)]
)
def test_wrong_use_exits_with_2_and_says_why(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bad_files(tmp_path)
    result = run(*arguments, terminal_width=200)
    assert result.exit_code == 2
    assert message in re.sub(r"\s*│?\n│?\s*", " ", result.stderr)
    assert "Traceback" not in result.output
    assert result.stdout == ""


WRITERS = [["separate", "--certificate"], ["fit", "-o"], ["play", "--rounds", 2, "--save"]]
# Each command that writes a file, the line of its answer that must not be lost, and a field of its JSON with the same.
LOST = {
    "separate": (["separate", IRIS, "--positive", "setosa", "--certificate"], "separable: the largest margin is", "status"),
    "not separable": (
        ["separate", IRIS, "--positive", "virginica", "--certificate"],
        "not separable: the weighted rows",
        "witness",
    ),
    "diagnose": (["diagnose", RASH, "--certificate"], "Quasi-complete separation (proved)", "kind"),
    "fit": (["fit", IRIS, "--positive", "setosa", "-o"], "solved: the largest margin is", "planes"),
    "fit three": (["fit", IRIS, "--nu", 0.6, "-o"], "virginica against versicolor:", "planes"),
    "play": (["play", IRIS, "--positive", "setosa", "--rounds", 2, "--save"], "stopped: round limit (2)", "columns"),
    "race": (["race", IRIS, "--positive", "setosa", "--rounds", 2, "-m", "nesterov", "--html"], "nesterov", "methods"),
    "demo": (["demo", "--rounds", 2, "--picture"], "Quasi-complete separation (proved)", "rash"),
}


@pytest.mark.parametrize(("arguments", "line", "field"), LOST.values(), ids=LOST)
def test_a_full_disk_does_not_cost_the_answer(arguments, line, field, tmp_path, monkeypatch):
    """The answer is printed, then the error with the name of the file, and the exit code is 2; nothing is left of the file."""
    for part, package in (("--html", "plotly"), ("--picture", "matplotlib")):
        if part in arguments:
            pytest.importorskip(package)

    def full(*_):
        raise OSError(28, "No space left on device")

    out = tmp_path / "out.png"
    monkeypatch.setattr(os, "fsync", full)
    result = run(*arguments, out)
    message = f"{out}: cannot be written: No space left on device"
    assert result.exit_code == 2
    assert line in result.stdout
    assert "written to" not in result.stdout
    assert "saved to" not in result.stdout
    assert result.stderr.endswith(f"gordan: {message}\n")
    found = answer(*arguments, out, code=2)
    assert found[field]
    assert found["error"] == message
    assert str(out) not in [value for name, value in found.items() if name != "error"]
    assert not list(tmp_path.iterdir())


def test_a_conversion_to_a_full_disk_names_the_folder(tmp_path):
    """Closing a file that could not be written fails once more; that error does not hide the name of the folder."""
    rows = "".join(f"{i},{i % 7},{i % 2}\n" for i in range(400))
    (tmp_path / "a.csv").write_text(f"a,b,y\n{rows}")
    program = "import resource, sys, gordan.cli as cli; sys.argv[0] = 'gordan'\n"
    program += "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); cli.main()"
    command = [sys.executable, "-c", program, "convert", "a.csv", "folder"]
    unmeasured = {
        name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")
    }  # its file would be too large
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=unmeasured)
    assert done.returncode == 2
    assert done.stderr.endswith("gordan: folder: cannot be written: File too large\n")


def test_a_full_disk_while_converting_is_reported_with_the_folder(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        result = run("convert", IRIS, tmp_path / "folder")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"gordan: {tmp_path / 'folder'}: cannot be written: No space left on device\n"
    assert answer("convert", IRIS, tmp_path / "folder")["n"] == 150


@pytest.mark.parametrize("arguments", WRITERS)
def test_links_and_pipes_are_written_to(arguments, tmp_path):
    """What is written in one step replaces files; neither a link nor a pipe is one."""
    asked = [*arguments, tmp_path / "plain", IRIS, "--positive", "setosa"]
    run(*asked)
    expected = (tmp_path / "plain").read_bytes()
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "target").write_text("old")
    (tmp_path / "link").symlink_to("far/target")
    os.mkfifo(tmp_path / "pipe")
    asked[len(arguments)] = tmp_path / "link"
    assert run(*asked).exit_code == 0
    assert (tmp_path / "link").is_symlink()
    read_from = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)  # a pipe holds 64 KiB: nobody needs to read meanwhile
    asked[len(arguments)] = tmp_path / "pipe"
    assert run(*asked).exit_code == 0
    assert (tmp_path / "pipe").is_fifo()
    piped = os.read(read_from, 1 << 20)
    os.close(read_from)
    if "play" not in arguments:  # a trace has its seconds in it
        assert piped == (tmp_path / "far" / "target").read_bytes() == expected
    assert len(piped) > 100
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["far", "link", "pipe", "plain", "target"]


def test_errors_as_json():
    result = run("separate", "missing.csv", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (2, {"error": "missing.csv: No such file or directory"})


def test_version_help_and_completion():
    assert run("--version").output.strip() == f"gordan {gordan.__version__}"
    for command in ("demo", "separate", "fit", "predict", "verify", "diagnose", "race", "play"):
        text = run(command, "--help").output
        assert f"gordan {command}" in text[text.index("Examples") :]
        assert command in run("--help").output
    completing = {"_GORDAN_COMPLETE": "complete_bash", "COMP_WORDS": "gordan play x.csv smooth_", "COMP_CWORD": "3"}
    shown = run(env=completing, prog_name="gordan").output.split()
    assert [word for word in shown if word.startswith("smooth_")] == ["smooth_perceptron", "smooth_p_norm_perceptron"]


def test_standard_input(tmp_path, table):
    """Every command that reads data takes it from a pipe as from a file, and leaves no copy of it."""
    model, proof = tmp_path / "m.gordan", tmp_path / "proof.json"
    run("fit", IRIS, "--positive", "setosa", "-o", model)
    run("separate", IRIS, "--positive", "setosa", "--certificate", proof)
    setosa = ("--positive", "setosa", "--json")
    for arguments in (
        ("separate", "-", *setosa),
        ("fit", "-", *setosa, "-o", model),
        ("diagnose", "-", *setosa),
        ("play", "-", *setosa, "--rounds", 3),
        ("race", "-", *setosa, "--rounds", 3, "-m", "nesterov"),
        ("verify", proof, "-", *setosa),
        ("predict", model, "-", *setosa),
    ):
        piped, plain = run(*arguments, input=IRIS.read_bytes()), run(*(IRIS if a == "-" else a for a in arguments))
        assert piped.exit_code == plain.exit_code == 0, piped.output
        answers = [json.loads(result.stdout) for result in (piped, plain)]
        drop_times(answers)
        assert answers[0] == answers[1]
    assert run("separate", "-", input="1 1:1\n0 1:2\n").exit_code == 0  # svmlight
    assert "standard input, line 2" in run("separate", "-", input="a,b,y\n1,x,0\n").stderr
    copies = tmp_path / "copies"
    copies.mkdir()
    with table.open() as stdin, program("separate", "-", stdin=stdin, env={**os.environ, "TMPDIR": str(copies)}) as process:
        assert "row 3  line 5" in process.communicate()[0]  # read a second time, for its lines
    assert not list(copies.iterdir())


def drop_times(content):
    """Leave out what differs from run to run."""
    if isinstance(content, dict):
        for name in ("seconds", "source"):
            content.pop(name, None)
    for each in content.values() if isinstance(content, dict) else content if isinstance(content, list) else ():
        drop_times(each)


@pytest.mark.parametrize("command", [None, "demo", "separate", "fit", "predict", "verify", "diagnose", "race", "play", "convert"])
def test_help_fits_a_terminal(command):
    """Paragraphs break where the terminal ends and nowhere else, examples do not break, and flags take no value."""
    shown = run(*([] if command is None else [command]), "--help", env={"COLUMNS": "80"}).output
    options, _, below = shown.partition("Examples")
    prose = [line.rstrip() for line in shown[: shown.index("╭")].splitlines()]
    for line, after in pairwise(prose):
        assert not line or not after or len(f"{line} {after.split()[0]}") > 79, after
    assert all(re.match(" (#|gordan) ", line) for line in below.splitlines() if line.strip())
    assert not re.search(r"--(json|version|check|scores|unlabelled|no-\w+) +[^A-Z\s]", options)


# ---- as a program of its own ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "code"), [("setosa", 0), ("virginica", 1)])
def test_heavy_packages_are_left_alone(kind, code):
    """Most of the time of a command on a small file would go to importing them: SciPy and numba take a second."""
    program = "import sys, gordan.cli as cli; sys.argv = ['gordan', 'separate', *sys.argv[1:]]\n"
    program += "heavy = ('numba', 'scipy', 'sklearn', 'matplotlib', 'plotly', 'pandas', 'rich.progress')\n"
    program += "try: cli.main()\nexcept SystemExit as end: print(end.code, [name for name in heavy if name in sys.modules])"
    command = [sys.executable, "-c", program, IRIS, "--positive", kind]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == f"{code} []"


def test_pipe_that_closes_early(tmp_path):
    np.savez(tmp_path / "many.npz", X=np.tile([[0.0], [2.0]], (100_000, 1)), y=np.tile([0, 1], 100_000))
    model = tmp_path / "m.gordan"
    assert run("fit", tmp_path / "many.npz", "-o", model, "--no-certificates").exit_code == 0
    with program("predict", model, tmp_path / "many.npz", stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        complaint = process.stderr.read()
    assert "Traceback" not in complaint
    assert "Error" not in complaint


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX has this signal")
@pytest.mark.parametrize(
    "arguments", [("separate", IRIS, "--positive", "setosa"), ("diagnose", IRIS, "--positive", "setosa", "--json")]
)
def test_nobody_reads_the_answer(arguments):
    """An exit code that is neither yes nor no."""
    read_from, write_to = os.pipe()
    os.close(read_from)
    command = [sys.executable, "-m", "gordan", *map(str, arguments)]
    done = subprocess.run(command, stdout=write_to, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write_to)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.skipif(sys.platform == "win32", reason="terminals and signals of POSIX")
def test_ctrl_c_in_a_long_fit(tmp_path):
    """The bar shows the bracket; Ctrl-C ends the run with the bracket so far, code 130 and no traceback."""
    X, w = np.random.default_rng(2).normal(size=(3000, 20)), np.arange(1.0, 21.0)
    signs = np.sign(X @ w)
    X += np.outer(signs, w) / 500
    np.savez(tmp_path / "long.npz", X=X, y=signs.astype(int))
    arguments = ("--method", "smooth_perceptron", "--tol", 1e-12, "--max-iter", 10**8)
    command = [sys.executable, "-m", "gordan", "fit", tmp_path / "long.npz", "-o", tmp_path / "long.gordan", *arguments]
    code, told, seen = signalled(command, signal.SIGINT, b"gap")
    assert code == 130
    assert b"margin" in seen
    assert "Traceback" not in told
    assert b"Traceback" not in seen
    lower, upper = map(float, re.search(r"interrupted\): the largest margin is between (\S+) and (\S+) \(proved", told).groups())
    model = Model.load(tmp_path / "long.gordan")
    reached = np.min(signs * (X @ model.coef[0] + model.intercept[0]))
    assert 0 < lower <= reached <= upper


@pytest.mark.parametrize(("encoding", "told"), [("ascii", "\\u2264"), ("latin-1", "\\u2264"), ("utf-8", "≤")])
def test_every_encoding(encoding, told):
    """What it does not have is written by its code: the demo prints ≈, ≤ and ∞, by both libraries that print."""
    variables = {**os.environ, "PYTHONIOENCODING": encoding}
    with program("demo", "--rounds", 5, "--no-picture", env=variables, encoding=encoding, errors="replace") as run:
        shown = run.communicate()[0]
    assert run.returncode == 0
    assert told in shown


def test_the_clock_goes_on_where_the_bar_is_full():
    watch = Watch("racing", tol=1e-4)
    watch._start()
    try:
        for what, gap in (("first", 1e-9), ("first", 1e-5), ("second", 0.5)):
            watch.about(what)
            watch.moment(gordan.Moment(1, 1.0, 1.0, 1 - gap, 1.0, passes=1.0, seconds=1.0))
            (task,) = watch._progress.tasks
            assert task.finished_time is None
            assert (gap > 1e-4) == (task.completed < 0.99)
    finally:
        watch.close()


def test_progress_fits_the_terminal():
    """The bracket is shown whatever the width; the rest as there is room."""
    what, state = "setosa against the rest", ("margin 0.817555 … 0.817556  gap 6.4e-08", "10001 passes", "6.62 MB/s")
    assert fit_to_width(what, state, 100) == (what, "  ".join(state))
    assert fit_to_width(what, state, 80) == (what, "  ".join(state[:2]))
    assert fit_to_width(what, state, 60) == ("", "  ".join(state[:2]))
    assert fit_to_width(what, state, 20) == ("", state[0])
    assert fit_to_width("reading a.csv", (), 5) == ("reading a.csv", "")


@pytest.mark.parametrize("module", ["typer", "numpy"])
@pytest.mark.parametrize("command", [["gordan"], ["-m", "gordan"]])
def test_ctrl_c_while_modules_are_imported(command, module, tmp_path):
    """It ends with the code of Ctrl-C, which to a shell is 130, and a line; NumPy is imported when it is needed."""
    pressed = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(9)"
    (tmp_path / f"{module}.py").write_text(pressed)
    (tmp_path / "gordan").write_text("import sys\nfrom gordan.cli import main\nsys.exit(main())\n")
    done = subprocess.run([sys.executable, *command, "demo"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode in (130, -signal.SIGINT), done.stdout, done.stderr) == (True, "", "gordan: interrupted\n")


def test_ctrl_c_before_anything_is_known(monkeypatch):
    def pressed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(gordan, "diagnose", pressed)
    result = run("diagnose", RASH)
    assert result.exit_code == 130
    assert "interrupted" in result.stderr


def test_ctrl_c_in_separate_keeps_the_verdict_so_far(monkeypatch):
    real = gordan.separate

    def pressed(*arguments, **options):
        verdict = real(*arguments, **options)
        try:  # as `separate` does, which keeps what it has
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return verdict

    monkeypatch.setattr(gordan, "separate", pressed)
    found = answer("separate", IRIS, "--positive", "setosa", code=130)
    assert found["interrupted"]
    assert found["status"] == "separable"


# ---- bugs ---------------------------------------------------------------------------------------------------------------


# What each command calls, and how to get there; each of them is made to raise.
INNER = {
    "separate": ("gordan.separate", ["separate", "two.csv"]),
    "fit": ("gordan.estimators.fitting.margin_of", ["fit", "two.csv", "-o", "new.gordan"]),
    "predict": ("gordan.cli.models.Model.scores", ["predict", "model.gordan", "two.csv"]),
    "verify": ("gordan.cli.proofs.verified_for", ["verify", "model.gordan", "two.csv"]),
    "diagnose": ("gordan.diagnose", ["diagnose", "two.csv"]),
    "race": ("gordan.report.race", ["race", "two.csv"]),
    "play": ("gordan.play", ["play", "two.csv"]),
    "convert": ("gordan.io.convert", ["convert", "two.csv", "folder"]),
    "convert --check": ("gordan.io.check", ["convert", "--check", "folder"]),
    "demo": ("gordan.separate", ["demo", "--no-picture"]),
}


@pytest.fixture
def bug(tmp_path, monkeypatch):
    """Makes what a command calls raise an exception; returns the arguments of the command."""

    def made(command: str, error: BaseException) -> list[object]:
        monkeypatch.chdir(tmp_path)
        write_csv(tmp_path / "two.csv", np.arange(8.0).reshape(4, 2), [0, 0, 1, 1])
        assert run("fit", "two.csv", "-o", "model.gordan").exit_code == 0
        assert run("convert", "two.csv", "folder").exit_code == 0
        place, arguments = INNER[command]

        def fails(*_, **__):
            raise error

        monkeypatch.setattr(place, fails)
        return arguments

    return made


BUGS = [TypeError("a\nb \x1b[31m"), KeyError("k"), EOFError(), RecursionError("deep"), AssertionError()]


@pytest.mark.parametrize(
    ("command", "error"), [*((command, BUGS[0]) for command in INNER), *((next(iter(INNER)), bug) for bug in BUGS[1:])], ids=repr
)
def test_a_bug_is_no_answer(command, error, bug):
    """Code 70, one line that asks for a report, and a traceback only if it is asked for."""
    arguments = bug(command, error)
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (70, "")
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"gordan: unexpected {type(error).__name__}")
    assert " ".join(str(error).split()[:1]) in result.stderr
    assert "report it, with what the same command prints with --debug" in result.stderr
    assert answers.CONTROL.findall(result.stderr) == []
    found = answer(*arguments, code=70)
    assert f"unexpected {type(error).__name__}" in found["error"]
    for debugged in (["--debug", *arguments], [*arguments, "--debug"]):
        result = run(*debugged)
        assert (result.exit_code, result.stderr.count("Traceback")) == (70, 1)
        assert "in fails" in result.stderr
    assert run(*arguments, env={"GORDAN_DEBUG": "1"}).stderr.count("Traceback") == 1
    assert "Traceback" not in run(*arguments, env={"GORDAN_DEBUG": "0"}).stderr


@pytest.mark.parametrize(("debug", "traces"), [({}, 0), ({"GORDAN_DEBUG": "1"}, 1)])
def test_a_bug_while_commands_are_imported(debug, traces, tmp_path):
    (tmp_path / "typer.py").write_text("raise RuntimeError('half installed')")
    done = subprocess.run(
        [sys.executable, "-m", "gordan", "demo"], cwd=tmp_path, capture_output=True, text=True, env={**os.environ, **debug}
    )
    assert (done.returncode, done.stdout, done.stderr.count("Traceback")) == (70, "", traces)
    assert "gordan: unexpected RuntimeError: half installed; this is a bug" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize(
    ("arguments", "code", "redirected"),
    [
        *((["separate", IRIS, "--positive", "setosa"], 0, where) for where in (">/dev/full", "2>/dev/full", ">&-", "2>&-")),
        *((["separate", IRIS], 2, where) for where in (">/dev/full", "2>&-")),
        (["separate", IRIS, "--positive", "setosa", "--json"], 0, ">/dev/full"),
        (["--help"], 0, ">/dev/full"),
    ],
)
def test_where_nothing_can_be_printed(arguments, code, redirected):
    """A stdout that is full is code 2, and a stream that is closed changes nothing: no traceback, and never a 1."""
    command = [sys.executable, "-m", "gordan", *map(str, arguments)]
    # buffered: what is left in the buffer must not fail once more at exit
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        ["sh", "-c", f'"$@" {redirected}', "sh", *command], capture_output=True, text=True, timeout=120, env=env
    )
    assert done.returncode == (2 if redirected == ">/dev/full" else code)
    assert "Traceback" not in done.stdout + done.stderr
    if redirected == ">/dev/full":
        assert ("has 3 classes" if code else "No space left on device") in done.stderr


def test_a_progress_line_that_fails_is_left_out(monkeypatch, capfd):
    watch = Watch("reading")
    monkeypatch.setattr(watch, "_start", lambda: 1 / 0)
    watch.visible = True
    monkeypatch.setattr("gordan.cli.progress.PATIENCE", 0.0)
    with watch:
        watch._timer.join(10)
        watch.about("separating")
    assert capfd.readouterr() == ("", "")


# ---- data larger than memory --------------------------------------------------------------------------------------------


def test_convert_tells_what_it_did(tmp_path):
    told = run("convert", IRIS, tmp_path / "iris").stdout
    assert told.startswith("converted: 150 rows, 4 columns, dense, ")
    assert run("convert", IRIS, tmp_path / "iris").stdout.startswith("already converted: 150 rows")
    checked = run("convert", "--check", tmp_path / "iris")
    assert checked.exit_code == 0
    assert "bytes, all checksums match" in checked.stdout
    (tmp_path / "iris/y.npy").unlink()
    assert run("convert", "--check", tmp_path / "iris").exit_code != 0
    (tmp_path / "iris/manifest.json").rename(tmp_path / "iris/journal.jsonl")
    unfinished = run("convert", "--check", tmp_path / "iris")
    assert (unfinished.exit_code, "is unfinished" in unfinished.stdout) == (1, True)


def test_too_little_memory_is_reported(monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(gordan, "separate", full)
    result = run("separate", IRIS, "--positive", "setosa")
    assert result.exit_code == 2
    assert "not enough memory" in result.stderr


def test_lines_fit_a_terminal(monkeypatch):
    """Broken between words, indented as they were; piped they stay whole."""
    text = "  rows 3 and 8 have the same features and different labels"
    assert answers.wrapped(text) == text
    monkeypatch.setattr("sys.stdout", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setenv("COLUMNS", "30")
    lines = answers.wrapped(text).split("\n")
    assert len(lines) > 1
    assert all(len(line) <= 30 and line.startswith("  ") for line in lines)
    assert " ".join(" ".join(lines).split()) == text.strip()


def test_convert_and_use_the_folder(tmp_path):
    lines = IRIS.read_text().splitlines()
    assert answer("convert", IRIS, tmp_path / "iris", "--label", "species")["n"] == len(lines) - 1
    assert answer("convert", IRIS, tmp_path / "iris", "--label", "species")["already"]
    assert answer("convert", "--check", tmp_path / "iris")["accepted"]
    margin = answer("separate", tmp_path / "iris", "--positive", "setosa", "--memory-limit", "100MB")["margin"]
    assert margin[0] <= SETOSA * (1 + 1e-5)
    assert margin[1] >= SETOSA * (1 - 1e-5)
    assert answer("fit", tmp_path / "iris", "-o", tmp_path / "model", "--positive", "setosa")["planes"][0]["status"] == "solved"
    answer("convert", RASH, tmp_path / "rash", "--kind", "csr")
    assert answer("diagnose", tmp_path / "rash")["columns"] == answer("diagnose", RASH)["columns"]  # by the names of the columns
    content = bytearray((tmp_path / "iris/X.npy").read_bytes())
    content[-3] ^= 1
    (tmp_path / "iris/X.npy").write_bytes(content)
    assert "checksum is wrong" in answer("convert", "--check", tmp_path / "iris", code=1)["reason"]
    assert "needs a folder" in run("convert", IRIS).output


def test_a_folder_of_parquet_files(tmp_path):
    pytest.importorskip("pyarrow")
    import pandas as pd

    frame = pd.read_csv(IRIS)
    for k in range(3):
        frame.iloc[50 * k : 50 * k + 50].to_parquet(tmp_path / f"{k}.parquet")
    found = answer("separate", tmp_path, "--label", "species", "--positive", "setosa")
    assert found["separable"]
    assert found["margin"][0] == pytest.approx(SETOSA, rel=1e-4)


@pytest.mark.parametrize(("text", "size"), [("1GB", 10**9), ("1.5GiB", 3 << 29), ("500m", 5 * 10**8), ("200000000", 2 * 10**8)])
def test_sizes_of_memory(text, size):
    assert parse_size(text) == size
    for wrong in ("much", "1XB", "-1GB", "1kB"):
        with pytest.raises(gordan.InputError, match="--memory-limit"):
            parse_size(wrong)


def test_compiling_is_reported(tmp_path):
    """Once on stderr, which need not be a terminal; in the log, where it is asked for; and on the line of a terminal as long as
    there is one."""
    code = """
import logging, sys
import numpy as np
if sys.argv[1:]:
    logging.basicConfig(level=logging.INFO)
from gordan.rows import kernels
for dtype in np.float32, np.float64:
    kernels._begin(np.ones((1, 5), dtype), np.ones((1, 2)))
"""
    for words, told in ([], "gordan is compiling its loops for this machine"), (["log"], "compiling _begin, which is done once"):
        folder = tmp_path / f"kernels{len(words)}"
        environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "NUMBA_DISABLE_JIT": "0"}
        command = [sys.executable, "-c", code, *words]
        runs = [subprocess.run(command, env=environment, capture_output=True, text=True).stderr for _ in range(2)]
        assert [run.count(told) for run in runs] == [1 + len(words), 0]
        assert words or runs[1] == ""
    watch, log = Watch("fit"), logging.getLogger("gordan")
    watch.visible = True
    with watch:
        log.info("compiling %s", "it")
        assert watch._state == ("compiling it",)
        for name, told in (("_begin", "compiling _begin, which is done once"), ("<lambda>", "compiling it")):
            watch.show_text("compiling it")
            function = SimpleNamespace(__module__="gordan.rows.kernels", __name__=name)
            _CompilationLog().on_start(SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)}))
            assert watch._state == (told,)
    log.info("compiling %s", "something else")
    assert watch._state == ("compiling it",)


def test_the_data_is_not_written_over(tmp_path):
    data = tmp_path / "iris.csv"
    data.write_text(IRIS.read_text())
    link = tmp_path / "link.csv"
    link.symlink_to(data)
    for command in (["fit", data, "-o", link], ["separate", data, "--positive", "setosa", "--certificate", data]):
        result = run(*command)
        assert result.exit_code == 2
        assert "is the input file" in result.stderr
    assert data.read_text() == IRIS.read_text()
    one = tmp_path / "one.gordan"
    result = run("fit", data, "-o", one, "--checkpoint", tmp_path / "." / "one.gordan")
    assert result.exit_code == 2
    assert "two files" in result.stderr
    assert not one.exists()


@pytest.mark.parametrize("arguments", [["--help"], ["race", RASH], ["separate", RASH]])
def test_whoever_stops_reading_gets_neither_yes_nor_no(arguments):
    """Exit code 1 means "no" elsewhere."""
    program = subprocess.Popen(
        [sys.executable, "-m", "gordan", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    program.stdout.close()
    program.stderr.read()
    program.stderr.close()
    assert program.wait() == 141


@pytest.mark.parametrize(("code", "raised"), [(130, KeyboardInterrupt), (75, Terminated)])
def test_what_fails_after_a_signal_is_no_bug(code, raised):
    """An import that Ctrl-C cuts leaves half a module behind."""

    def fails(error):
        with Interrupts() as interrupts:
            interrupts.code = code
            raise error

    with pytest.raises(raised):
        fails(AttributeError("module 'numba' has no attribute 'core'"))
    with pytest.raises(gordan.InputError, match="empty"):
        fails(gordan.InputError("the file is empty"))


def test_diagnose_names_nearly_dependent_columns_in_json(tmp_path):
    r = np.random.default_rng(0)
    X = r.standard_normal((60, 3))
    X[:, 2] = X[:, 0] / 3 + X[:, 1] / 7
    lines = ["a,b,c,y", *(",".join(map(repr, [*row, int(r.integers(0, 2))])) for row in X.tolist())]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    (near,) = answer("diagnose", tmp_path / "t.csv")["nearly_dependent"].items()
    assert {near[0], *near[1]} == {"a", "b", "c"}
