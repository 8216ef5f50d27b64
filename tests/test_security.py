"""What docs/security.md says: nothing in a file is run or believed, text from files stays text, gordan opens no connection."""

from __future__ import annotations

import ast
import bz2
import gzip
import json
import lzma
import re
import subprocess
import sys
import types
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

import gordan
from gordan import datasets
from gordan.checkpoint import Checkpoint, _type, checkpointed
from gordan.cli import answers
from gordan.cli.app import app
from gordan.errors import InputError
from gordan.io import container, convert, read, text

SOURCE = Path(gordan.__file__).parent
X, Y = datasets.iris("setosa")
RAN = []


class Payload:
    """What a pickle would run."""

    def __reduce__(self):
        return RAN.append, ("a pickle",)


# ---- the source --------------------------------------------------------------------------------------------------------

# Modules that run code from files, start programs or open connections, and calls that do.
NO_IMPORT = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "subprocess", "socket", "http", "urllib", "requests", "runpy"}
NO_CALL = re.compile(r"eval|exec|compile|__import__|(joblib|torch|pandas)\.(load|read_pickle)|os\.(system|popen|exec.*|spawn.*)")
# Calls that unpickle unless they are told not to, in this version of NumPy or in an old one.
NUMPY_CALL = re.compile(r"(np|numpy)\.(load|lib\.format\.(read_array|open_memmap))")


def strange(tree):
    """Imports and calls of a module that are none of those allowed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [str(node.module)]
            yield from (name for name in names if name.partition(".")[0] in NO_IMPORT)
        elif isinstance(node, ast.Call):
            called, options = ast.unparse(node.func), {word.arg: ast.unparse(word.value) for word in node.keywords}
            if NO_CALL.fullmatch(called) or (NUMPY_CALL.fullmatch(called) and options.get("allow_pickle") != "False"):
                yield called


def test_the_source_has_no_way_to_run_what_it_reads():
    found = {path: [*strange(ast.parse(path.read_text()))] for path in SOURCE.rglob("*.py")}
    assert {path.name: names for path, names in found.items() if names} == {}
    bad = "import pickle\nfrom urllib.request import urlopen\nnp.load(path)\nnp.load(path, allow_pickle=unsafe)\neval(text)"
    assert [*strange(ast.parse(bad))] == ["pickle", "urllib.request", "np.load", "np.load", "eval"]
    assert [*strange(ast.parse("np.load(path, mmap_mode='r', allow_pickle=False)"))] == []


# ---- files -------------------------------------------------------------------------------------------------------------


def test_pickles_in_arrays_are_not_run(tmp_path):
    objects = np.array([Payload(), 1], dtype=object)
    np.save(tmp_path / "x.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "x.npz", X=X[:2], y=objects)
    np.save(tmp_path / "X.npy", X[:2])
    convert(datasets_file(tmp_path), tmp_path / "folder")
    replaced_labels(tmp_path / "folder", (tmp_path / "x.npy").read_bytes())
    for path, options in (("x.npy", {}), ("x.npz", {}), ("folder", {}), ("X.npy", {"label": str(tmp_path / "x.npy")})):
        with pytest.raises(InputError, match=r"never unpickled|type \|O|shape"):
            read(tmp_path / path, **options)
    assert RAN == []


def datasets_file(folder):
    (folder / "some.csv").write_text("a,b,y\n1,2,no\n2,1,yes\n3,1,yes\n")
    return folder / "some.csv"


def replaced_labels(folder, content):
    (folder / "y.npy").write_bytes(content)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["y"]["bytes"] = len(content)
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: y.replace(b"(3,)", b"(9,)"), "9"),  # a header that says more than there is
        (lambda y: y.replace(b"(3,), }       ", b"(9999999999,),}"), "9999999999"),
        (lambda y: y[:-4] + b"\xff\xff\xff\x7f", "invalid Unicode"),
        (lambda y: b"PK\x05\x06" + bytes(len(y) - 4), "bad magic number"),
    ],
)
def test_labels_of_a_converted_folder_are_read_strictly(change, message, tmp_path):
    convert(datasets_file(tmp_path), tmp_path / "folder")
    assert read(tmp_path / "folder").y.tolist() == ["no", "yes", "yes"]
    replaced_labels(tmp_path / "folder", change((tmp_path / "folder" / "y.npy").read_bytes()))
    with pytest.raises(InputError, match=message):
        read(tmp_path / "folder")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_what_unpacks_to_more_than_the_limit_is_refused(pack, tmp_path):
    path = tmp_path / "bomb.csv"
    path.write_bytes(pack(b"a,y\n" + b"1,no\n2,yes\n" * 200_000))
    assert path.stat().st_size < 50_000
    with pytest.raises(InputError, match="half of the memory limit"):
        read(path, memory_limit=1_000_000)
    assert len(read(path, memory_limit=100_000_000).y) == 400_000


def test_arrays_that_unpack_to_more_than_the_limit_are_refused(tmp_path):
    np.savez_compressed(tmp_path / "bomb.npz", X=np.zeros((1000, 1000)), y=np.zeros(1000))
    with pytest.raises(InputError, match="half of the memory limit"):
        read(tmp_path / "bomb.npz", memory_limit=1_000_000)


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "MAX_LINE_BYTES", 1 << 24)
    (tmp_path / "bomb.svm.gz").write_bytes(gzip.compress(b"1 " * (1 << 25)))
    with pytest.raises(InputError, match="line 1: it has more than"):
        read(tmp_path / "bomb.svm.gz")


@checkpointed("test_security.loud")
class Loud(NamedTuple("Loud", [("a", int)])):
    """A type whose making would be noticed."""

    def __new__(cls, a):
        RAN.append("a tuple")
        return super().__new__(cls, a)


@checkpointed("test_security.louder")
@dataclass(frozen=True)
class Louder:
    """Another one."""

    a: int

    def __post_init__(self):
        RAN.append("a dataclass")


@pytest.mark.parametrize("kind", [Loud, Louder])
def test_a_checkpoint_makes_values_without_running_code(kind, tmp_path):
    path = tmp_path / "run"
    parts = {"run": {"type": f"test_security.{kind.__name__.lower()}", "parts": {"a": 3}}, "notes": None}
    container.save(path, {"format": "gordan-checkpoint-2", "problem": {}, "parts": parts}, {})
    found = Checkpoint(path).restored("run", kind)
    assert type(found) is kind
    assert found.a == 3
    assert RAN == []
    with pytest.raises(InputError, match=kind.__name__):
        Checkpoint(path).restored("run", int)


def test_a_checkpoint_imports_nothing(monkeypatch):
    module = types.ModuleType("trap")
    module.__getattr__ = lambda name: RAN.append(name)
    monkeypatch.setitem(sys.modules, "trap", module)
    for name in ("Anything", "trap.Anything"):
        with pytest.raises(ValueError, match=f"no type is registered as '{name}'"):
            _type(name, ["a"])
    assert RAN == []


# ---- what is shown -----------------------------------------------------------------------------------------------------

EVIL = "no\x1b]0;title\x07\x9b31m[/bold][link=x]:bomb:"


def test_names_and_labels_cannot_command_the_terminal(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(answers.typer, "echo", lambda text, **_: told.append(text))  # which drops some of it in a pipe
    monkeypatch.setattr(answers.typer, "style", lambda text, **_: text)  # the colours that are our own
    name = tmp_path / "a[b]\x1b[31m.csv"
    name.write_text(f"a\x1b[31m,b,y\n0,0,{EVIL}\n2,2,{EVIL}\n1,1,yes\n")
    for command in (
        ["separate"],
        ["diagnose"],
        ["race", "-m", "smooth_perceptron", "--rounds", "3"],
        ["separate", "--label", "1"],
    ):
        result = CliRunner().invoke(app, [*command, str(name)])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        told.append(result.output)
    text = "\n".join(told)
    assert answers.CONTROL.findall(text) == []
    assert r"\x1b]0;title\x07\x9b31m[/bold][link=x]:bomb:" in text
    assert r"a[b]\x1b[31m.csv" in text


def test_the_page_of_a_race_shows_names_as_text():
    pytest.importorskip("plotly", reason="the page needs plotly: pip install 'gordan[report]'")
    from gordan.report import page_html, race

    evil = '<img src=x onerror="alert(1)">@@DATA@@</script><script>alert(2)</script>'
    page = page_html(replace(race(X, Y, methods=["smooth_perceptron"], rounds=3), source=evil, told=evil))
    assert "<img" not in page.partition("<script>")[0]
    assert "alert(2)</script>" not in page
    assert "Content-Security-Policy" in page.partition("<style>")[0]


# ---- connections -------------------------------------------------------------------------------------------------------

QUIET = """
import sys, tempfile
events = []
watched = ("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "urllib.", "http.")
# what older versions of threadpoolctl and NumPy ask about libraries and the processor
asked = ("ldconfig", "lscpu")
own = lambda event, told: event == "subprocess.Popen" and str(told[0]).endswith(asked)
sys.addaudithook(lambda event, told: event.startswith(watched) and not own(event, told) and events.append(event))
import gordan
from gordan import datasets, io
X, y = datasets.iris("setosa")
verdict = gordan.separate(X, y)
gordan.verify(gordan.Certificate.from_json(verdict.certificate.to_json()), X, y)
gordan.diagnose(X, y)
gordan.maximize_margin(X, y)
with tempfile.TemporaryDirectory() as folder:
    open(f"{folder}/a.csv", "w").write("a,y\\n1,0\\n2,1\\n")
    io.read(f"{folder}/a.csv")
    io.convert(f"{folder}/a.csv", f"{folder}/b")
    io.read(f"{folder}/b")
print(events)
"""


def test_no_connection_and_no_other_program():
    done = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
