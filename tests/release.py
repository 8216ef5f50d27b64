"""What is published, tried in empty environments before a release: `make release-check`, about ten minutes.

    python tests/release.py                              # everything
    python tests/release.py core data                    # the first and the third environment of ENVIRONMENTS
    python tests/release.py --python python3.13 core     # with another Python
    python tests/release.py --lowest                     # only prints the lowest versions in pyproject.toml, for pip's -c

sdist and wheel are built, the wheel both from the checkout and from the sdist, and looked into. Then the wheel is installed into
an environment of its own for each line of ENVIRONMENTS, and what is named there runs with nothing of the checkout on the path;
only the pages are read from there. A step that fails ends the whole.
"""

from __future__ import annotations

import argparse
import doctest
import hashlib
import importlib.util
import json
import os
import pkgutil
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
# Any other version would bring gigabytes of libraries for GPUs, where it comes from an index that has them.
TORCH = next(line for line in EXTRAS["test-gpu"] if line.startswith("torch=="))
# Name: extras, further packages, and what is done there (a function of this file, or a page).
ENVIRONMENTS = {
    "core": ((), (), ("alone", "demo", "doctests", "missing", "README.md")),
    "plot": (("plot",), (), ("plot", "doctests")),
    "data": (("data",), (), ("data",)),
    "report": (("report",), (), ("report", "doctests")),
    "dask": (("dask",), (), ("dask",)),
    "stats": (("stats",), (), ("stats",)),
    "gpu": (("gpu",), (TORCH,), ("gpu",)),
    "quick start": (("plot", "data"), (), ("docs/quickstart.md",)),
    "typed": ((), ("mypy",), ("typed",)),
}
# What a wheel must hold beside modules.
HELD = ("gordan/py.typed", "gordan/data/iris.csv", "gordan/data/rash.csv", "gordan/report/page.html", "gordan/report/page.css")
# Not imported where it is not installed: it is made of kernels.
NEEDS_TRITON = "gordan.rows.triton_kernels"
# Packages whose examples need an extra: the module that it brings.
NEEDS_EXTRA = {"gordan.plots": "matplotlib", "gordan.report": "plotly"}


# ---- files -------------------------------------------------------------------------------------------------------------


def lowest():
    """The lowest versions that the package and its extras allow, as constraints; of polars as well, whose frames it takes."""
    lines = [*PROJECT["dependencies"], *(line for name in ("plot", "data", "report", "dask") for line in EXTRAS[name])]
    lines += [line for line in EXTRAS["test"] if line.startswith("polars")]
    return [re.sub(r"\[.*\]", "", line).replace(">=", "==") for line in lines]


def built(folder):
    """The wheel. It is the same whether it is made from the checkout or from the sdist, and nothing is missing in either."""
    python = environment(folder / "build", ["build"])
    run([python, "-m", "build", "--outdir", folder / "dist", ROOT], folder)  # the wheel from the sdist
    run([python, "-m", "build", "--wheel", "--outdir", folder / "direct", ROOT], folder)
    (wheel,), (sdist,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    (direct,) = (folder / "direct").glob("*.whl")
    held, stem = contents(wheel), wheel.name.partition("-py3")[0]
    assert held == contents(direct), "the wheel from the sdist is another one than that from the checkout"
    tracked = run(["git", "ls-files", "src"], ROOT).split()
    missing = {name.removeprefix("src/") for name in tracked} - set(held)
    assert not missing, f"the wheel lacks {missing}"
    strange = {name for name in held if not name.startswith(("gordan/", f"{stem}.dist-info/"))}
    assert set(HELD) <= set(held), set(HELD) - set(held)
    assert not strange, strange
    assert f"{stem}.dist-info/licenses/LICENSE" in held
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "pyproject.toml", *tracked} <= names
    with zipfile.ZipFile(wheel) as archive:
        told = message_from_bytes(archive.read(f"{stem}.dist-info/METADATA"))
    facts = [told[name] for name in ("Version", "License-Expression", "License-File")]
    assert facts == [version(), "BSD-3-Clause", "LICENSE"], facts
    print(f"{sdist.name} {sdist.stat().st_size:,} bytes; {wheel.name} {wheel.stat().st_size:,} bytes, {len(held)} files")
    return wheel


def contents(wheel):
    """Name and hash of every file in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def version():
    """What the source says."""
    return re.search(r'__version__ = "(.+)"', (ROOT / "src" / "gordan" / "__init__.py").read_text())[1]


# ---- environments ------------------------------------------------------------------------------------------------------


def environment(place, packages, python=None):
    """The Python of a new environment with these packages."""
    if python is None:
        venv.create(place, with_pip=True)
    else:
        run([python, "-m", "venv", place], place.parent)
    quick = ("--quiet", "--disable-pip-version-check", "--no-compile")  # few of the modules are ever imported
    run([place / "bin" / "python", "-m", "pip", "install", *quick, *packages], place.parent)
    return place / "bin" / "python"


def run(command, folder):
    """What it prints; an error with all of that if it fails. Nothing of this environment is passed on to it."""
    settings = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run([str(part) for part in command], cwd=folder, env=settings, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}\nexit code {done.returncode}")
    return done.stdout


def main():
    """Build, and go through the environments; or, with --inside, one step in one of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="environment", help=f"some of: {', '.join(ENVIRONMENTS)}")
    parser.add_argument("--python", help="the Python to make environments from")
    parser.add_argument("--lowest", action="store_true", help="print the lowest versions as constraints")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.lowest:
        print("\n".join(lowest()))
        return
    if options.inside:
        inside(options.inside)
        return
    with tempfile.TemporaryDirectory() as name:
        wheel = built(Path(name))
        for chosen in options.names or ENVIRONMENTS:
            extras, further, steps = ENVIRONMENTS[chosen]
            begin = time.perf_counter()
            place = Path(name) / chosen.replace(" ", "-")
            python = environment(place, [f"{wheel}[{','.join(extras)}]" if extras else wheel, *further], options.python)
            print(f"{chosen}: installed, {time.perf_counter() - begin:.0f} s", flush=True)
            for step in steps:
                begin = time.perf_counter()
                told = run([python, "-I", __file__, "--inside", step], place).strip()
                print(f"{chosen}: {step}, {time.perf_counter() - begin:.0f} s{told and f': {told}'}", flush=True)


# ---- what runs inside --------------------------------------------------------------------------------------------------


def inside(step):
    """One step, in the environment of the wheel."""
    import gordan

    assert Path(gordan.__file__).is_relative_to(sys.prefix), f"{gordan.__file__} is not the wheel's"
    assert gordan.__version__ == version()
    if step.endswith(".md"):
        page(ROOT / step)
    else:
        globals()[step]()


def gordan_command(*arguments, code=0):
    """What the program prints."""
    command = [str(Path(sys.prefix) / "bin" / "gordan"), *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == code, f"{command}: exit code {done.returncode}\n{done.stdout}"
    return done.stdout


def alone():
    """None of the extras is here."""
    brought = {re.split(r"[\[>=]", line)[0] for name in ("plot", "data", "gpu", "report", "dask") for line in EXTRAS[name]}
    listed = json.loads(
        subprocess.check_output([sys.executable, "-m", "pip", "list", "--format=json", "--disable-pip-version-check"])
    )
    assert not brought & {package["name"].lower() for package in listed}
    subprocess.run([sys.executable, "-m", "pip", "check", "--disable-pip-version-check"], check=True, stdout=subprocess.DEVNULL)
    print(f"{len(listed)} packages with pip")


def demo():
    """`gordan demo`, with and without --json."""
    assert "cancel exactly (proved)" in gordan_command("demo")
    told = json.loads(gordan_command("demo", "--json"))
    assert told["virginica"]["accepted"]
    assert told["picture"] is None  # there is no matplotlib


def doctests():
    """The examples in the docstrings of the wheel; those that need an extra run where it is installed."""
    import gordan

    os.environ["MPLBACKEND"] = "Agg"
    without = {package for package, module in NEEDS_EXTRA.items() if importlib.util.find_spec(module) is None}
    names = {module.name for module in pkgutil.walk_packages(gordan.__path__, "gordan.")} - {NEEDS_TRITON, "gordan.__main__"}
    names = {name for name in names if not name.startswith(tuple(without))}
    results = [doctest.testmod(importlib.import_module(name)) for name in ("gordan", *sorted(names))]
    attempted = sum(result.attempted for result in results)
    assert not sum(result.failed for result in results)
    assert attempted > 20
    print(f"{attempted} examples in {len(names) + 1} modules (not {', '.join(sorted({NEEDS_TRITON, *without}))})")


def page(path):
    """The sessions of a page show what comes out here."""
    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "pages.py")
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    os.environ["MPLBACKEND"] = "Agg"
    text = path.read_text()
    with pages.session(path) as (folder, namespace):
        again = pages.rerun(text, namespace, pages.shell_in(folder), terminal=False)
    different = pages.differences(text, again, route=True)
    assert not different, "\n".join(different)
    print(f"{text.count('>>> ')} examples, {len(re.findall('^[$] gordan', text, re.M))} commands")


def iris():
    """Iris, setosa against the others, and the file of all three."""
    from gordan import datasets

    X, y = datasets.iris("setosa")
    return X, y, Path(datasets.__file__).parent / "data" / "iris.csv"


def missing():
    """What is not installed is asked for by the name of its extra."""
    import gordan
    from gordan.io import read

    X, y, file = iris()
    model = gordan.MaxMarginClassifier().fit(X[:, :2], y)
    least = gordan.LinearClassifier().fit(X, y)
    trace = gordan.play(X * y[:, None], "smooth_perceptron", 3)
    Path("some.parquet").write_bytes(b"PAR1")
    calls = {
        "plot": [
            lambda: gordan.BoundaryDisplay.from_estimator(model, X[:, :2], y),
            lambda: gordan.MarginDisplay.from_estimator(model, X[:, :2], y),
            lambda: gordan.ConvergenceDisplay.from_trace(trace),
            lambda: gordan.ProvedDisplay.from_estimator(least, X, y),
        ],
        "data": [lambda: read("some.parquet"), trace.to_frame, gordan.diagnose(X, y).to_frame],
        "stats": [lambda: gordan.diagnose("y ~ x", data={"x": X[:, 0], "y": y})],
        "gpu": [lambda: gordan.separate(X, y, device="cuda"), lambda: gordan.maximize_margin(X, y, device="cuda")],
    }
    for extra, every in calls.items():
        for call in every:
            try:
                told = f"something came out: {call()!r}"
            except gordan.MissingExtra as error:
                told = str(error)
            assert f"pip install 'gordan[{extra}]'" in told, f"without the extra {extra}: {told}"
    commands = {
        "data": ("separate", "some.parquet"),
        "report": ("race", file, "--positive", "setosa", "--html", "page.html"),
        "dask": ("separate", file, "--positive", "setosa", "--cluster", "tcp://127.0.0.1:1"),
        "gpu": ("separate", file, "--positive", "setosa", "--device", "cuda"),
    }
    for extra, command in commands.items():
        told = gordan_command(*command, code=2)
        assert f"gordan[{extra}]" in told, told
        assert "Traceback" not in told
    print(", ".join(sorted({*calls, *commands})))


def plot():
    """Four pictures."""
    import matplotlib

    matplotlib.use("Agg")
    import gordan

    X, y, _ = iris()
    model = gordan.MaxMarginClassifier().fit(X[:, :2], y)
    trace = gordan.play(X * y[:, None], "smooth_perceptron", 30)
    least = gordan.LinearClassifier().fit(X, y)
    displays = [
        gordan.BoundaryDisplay.from_estimator(model, X[:, :2], y),
        gordan.MarginDisplay.from_estimator(model, X[:, :2], y),
        gordan.ConvergenceDisplay.from_trace(trace),
        gordan.ProvedDisplay.from_estimator(least, X, y),
    ]
    for display in displays:
        display.figure_.savefig("picture.png")
        assert Path("picture.png").stat().st_size > 5_000
    assert json.loads(gordan_command("demo", "--json"))["picture"] is not None


def data():
    """A data frame through a Parquet file: columns are named, and the verdict is that of the CSV."""
    import pandas

    import gordan

    _, _, file = iris()
    frame = pandas.read_csv(file)
    frame.to_parquet("iris.parquet")
    assert gordan_command("separate", "iris.parquet", "--positive", "setosa") == gordan_command(
        "separate", file, "--positive", "setosa"
    )
    gordan_command("convert", "iris.parquet", "folder")
    X = frame.iloc[:, :-1]
    assert [*gordan.diagnose(X, frame.iloc[:, -1] == "setosa").columns][: X.shape[1]] == [*X.columns]
    assert len(gordan.play(X.to_numpy(), "perceptron", 5).to_frame()) > 1


def stats():
    """A formula, and a model of statsmodels: both name the column that separates."""
    import pandas
    import statsmodels.api

    import gordan

    frame = pandas.read_csv(Path(gordan.__file__).parent / "data" / "rash.csv")
    found = gordan.diagnose("rash ~ age + C(new_soap)", data=frame)
    assert found.explanation == ("all 4 rows with new_soap = 1 have rash = yes",)
    X = statsmodels.api.add_constant(frame[["age", "new_soap"]])
    assert gordan.diagnose(statsmodels.api.Logit(frame.rash == "yes", X)).columns == {"const": 0, "age": 0, "new_soap": 1}


def report():
    """The page of a race."""
    gordan_command("race", iris()[2], "--positive", "setosa", "--rounds", 20, "--html", "page.html")
    assert Path("page.html").read_text().count("<script") >= 3


def dask():
    """Two workers, from Python and from the command line; the proof is checked here."""
    import dask.array
    from distributed import Client, LocalCluster

    import gordan

    X, y, file = iris()
    with LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        verdict = gordan.separate(dask.array.from_array(X, chunks=(50, -1)), y)
        certificate = verdict.certificate  # the hash of the data is computed where that is
        told = gordan_command("separate", file, "--positive", "setosa", "--cluster", cluster.scheduler_address)
        assert told.startswith("separable"), told
    assert gordan.verify(certificate, X, y)


def gpu():
    """Tensors of torch on the CPU; where there is no GPU, the message says so."""
    import torch

    import gordan

    X, y, _ = iris()
    verdict = gordan.separate(torch.tensor(X), torch.tensor(y))
    assert gordan.verify(verdict.certificate, X, y)
    assert gordan.maximize_margin(torch.tensor(X), y, device="cpu").status == "solved"
    if not torch.cuda.is_available():
        try:
            gordan.separate(X, y, device="cuda")
        except gordan.InputError as error:
            print(error)


def typed():
    """`py.typed` is honoured: the client passes mypy strict, and runs."""
    client = Path(__file__).with_name("client.py")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", client], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    subprocess.run([sys.executable, "-I", client], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    # everything inside runs in the folder of its environment: `-I` leaves out the folder of this file and PYTHONPATH
    main()
