"""One vocabulary: a parameter, an option or a field of JSON that has the same name means the same thing everywhere."""

from __future__ import annotations

import inspect
import json
import re
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import gordan
import gordan.io
import gordan.report
from gordan import datasets, methods
from gordan.cli.app import app
from gordan.cli.fields import FIELDS
from gordan.verdicts.loss import LossKeywords
from gordan.verdicts.margin import MarginKeywords
from gordan.verdicts.separate import SeparateKeywords

API = Path(__file__).parent.parent / "docs" / "api.md"
RASH = Path(gordan.__file__).parent / "data" / "rash.csv"
DATA = {"X", "y", "A", "certificate", "path", "source", "target", "self", "estimator", "trace", "race", "folder"}
# What `play` is about beside the rows, and what scikit-learn passes by position.
ALSO = {
    "play": {"method", "rounds"},
    "MaxMarginClassifier.fit": {"sample_weight"},
    "LinearClassifier.fit": {"sample_weight"},
    "LinearClassifier": {"loss", "C"},
    "verify": {"sample_weight"},
    "plot": {"ax"},
}

FUNCTIONS = {
    **{name: getattr(gordan, name) for name in gordan.__all__ if inspect.isfunction(getattr(gordan, name))},
    **{f"report.{name}": getattr(gordan.report, name) for name in ("race", "page_html")},
    **{f"io.{name}": getattr(gordan.io, name) for name in ("read", "convert", "check")},
    "MaxMarginClassifier": gordan.MaxMarginClassifier,
    "LinearClassifier": gordan.LinearClassifier,
}
METHODS = {
    f"{kind.__name__}.{name}": getattr(kind, name)
    for kind in (
        gordan.MaxMarginClassifier,
        gordan.LinearClassifier,
        gordan.BoundaryDisplay,
        gordan.ConvergenceDisplay,
        gordan.MarginDisplay,
        gordan.ProvedDisplay,
    )
    for name in ("fit", "predict", "decision_function", "save", "load", "from_estimator", "from_trace", "plot")
    if hasattr(kind, name)
}


def positive(value) -> bool:
    return isinstance(value, (int, float)) and value > 0


def nothing(value) -> bool:
    return value is None


# Of each shared parameter: which defaults it may have, and what its description must say.
VOCABULARY = {
    "intercept": (lambda value: value == "free", '"free".*"penalized".*"none"'),
    "norm": (lambda value: value == 2, "norm p of feature space, [12] ≤ p ≤ ∞"),
    "nu": (nothing, "None for the hard margin"),
    "tol": (positive, "relative width of the .*bracket|relative width of the certified interval|margin-below-tol"),
    "max_iter": (nothing, "rounds .*at most"),
    "rounds": (positive, "rounds to play at most"),
    "time_limit": (lambda value: value is None or positive(value), "seconds"),
    "callback": (nothing, "called with .*; returning True (ends|stops)"),
    "threads": (nothing, "threads a pass may use; all cores if None"),
    "device": (nothing, '"cuda" copies [AX] to the GPU once.*None leaves it where it is'),
    "random_state": (nothing, "order in which rows are visited"),
    "checkpoint": (nothing, "a file that the run is written to, every half minute"),
    "class_weight": (nothing, "weights"),
    "sample_weight": (nothing, "weights"),
    "label": (nothing, "the label column, by name or (by )?position"),
    "drop": (lambda value: value == (), "columns to leave out, by name or position"),
    "keep_index": (lambda value: value is False, "keep a column without a name.* that counts the rows"),
    "memory_limit": (nothing, "bytes that the process should stay below"),
}


def described(function) -> dict[str, str]:
    """What the docstring says of each parameter, in one line; empty if it has no list of them."""
    _, _, rest = inspect.cleandoc(function.__doc__).partition("Parameters\n----------\n")
    found: dict[str, str] = {}
    names: list[str] = []
    for line in re.split(r"\n\n\w+\n---", rest)[0].splitlines():
        if line and not line.startswith(" "):
            names = line.partition(" : ")[0].split(", ")
            found |= dict.fromkeys(names, "")
        for name in names if line.startswith(" ") else ():
            found[name] += " " + line.strip()
    return found


@pytest.mark.parametrize("name", [*FUNCTIONS, *METHODS])
def test_what_follows_the_data_is_passed_by_name(name):
    allowed = DATA | ALSO.get(name, ALSO.get(name.rpartition(".")[2], set()))
    for parameter in inspect.signature({**FUNCTIONS, **METHODS}[name]).parameters.values():
        assert parameter.kind is parameter.KEYWORD_ONLY or parameter.name in allowed, parameter


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_are_described_each_once(name):
    parameters, told = inspect.signature(FUNCTIONS[name]).parameters, described(FUNCTIONS[name])
    assert not told or set(told) == set(parameters)
    for parameter in set(parameters) & set(VOCABULARY):
        default, sentence = VOCABULARY[parameter]
        assert default(parameters[parameter].default), (parameter, parameters[parameter].default)
        assert re.search(sentence, told[parameter], re.IGNORECASE), (parameter, told[parameter])


@pytest.mark.parametrize(
    ("function", "keywords"),
    [(gordan.separate, SeparateKeywords), (gordan.maximize_margin, MarginKeywords), (gordan.minimize_loss, LossKeywords)],
)
def test_overloads_list_the_keywords_of_the_function(function, keywords):
    parameters = inspect.signature(function).parameters.values()
    assert set(keywords.__annotations__) == {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}


def test_options_of_methods():
    for name in methods.names():
        for parameter in inspect.signature(methods.get(name).factory).parameters.values():
            assert parameter.kind is parameter.KEYWORD_ONLY
            assert parameter.name not in VOCABULARY, "a method's options are in the paper's letters"
            assert parameter.default is not parameter.empty


@pytest.mark.skipif(not API.exists(), reason="the pages are not here: run the suite in a checkout of the repository")
def test_the_page_says_what_the_names_mean():
    rows = [line.split("|")[1] for line in API.read_text().splitlines() if line.startswith("| `")]
    names = {name for row in rows for name in re.findall("`(.*?)`", row)}
    files = {
        "label",
        "drop",
        "keep_index",
        "memory_limit",
        "sample_weight",
        "class_weight",
        "rounds",
    }  # explained where there is more room
    assert set(VOCABULARY) - files <= names


# ---- the command line -------------------------------------------------------------------------------------------------

COMMANDS = typer.main.get_command(app).commands
CALLED = {
    "separate": (gordan.separate, gordan.io.read),
    "fit": (gordan.MaxMarginClassifier, gordan.maximize_margin, gordan.io.read),
    "predict": (gordan.io.read,),
    "verify": (gordan.verify, gordan.io.read),
    "checker": (),
    "diagnose": (gordan.diagnose, gordan.io.read),
    "race": (gordan.report.race, gordan.io.read),
    "play": (gordan.play, gordan.io.read),
    "convert": (gordan.io.convert, gordan.io.check),
    "demo": (gordan.play,),
}
# What only a program has: files to read and write, one class against the rest, a cluster to connect to, what to print.
OF_THE_PROGRAM = {"file", "model", "output", "html", "save", "picture", "positive", "cluster", "scores", "as_json", "check"}
OF_THE_PROGRAM |= {"no_picture", "no_certificates", "proba", "proved", "standardize"}
RENAMED = {
    ("separate", "certificate"): None,  # the file to write, where `verify` has the certificate
    ("diagnose", "certificate"): None,  # likewise
    ("fit", "certificate"): None,
    ("diagnose", "model"): None,  # the regression, where others name a model file
    ("fit", "loss"): None,  # of LinearClassifier, which it chooses
    ("fit", "C"): None,
    ("fit", "multi_class"): None,  # without a default, so that it is refused with --loss
    **{(name, "weight"): "sample_weight" for name in ("fit", "diagnose", "verify")},  # the column that has them
    ("diagnose", "order"): None,  # in Python that of a Categorical
    ("predict", "unlabelled"): "labelled",  # a flag
    ("race", "method"): "methods",  # once for each
    ("play", "form"): None,  # options of the method, which is named beside them
    ("play", "norm"): None,
    ("play", "intercept"): None,  # becomes halves, or a constant column
    ("demo", "rounds"): None,  # as many as make a picture
}
RENAMED |= {(name, "no_header"): "header" for name in COMMANDS}  # a flag


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_the_parameters_of_what_is_called(name):
    known = {p.name: p for function in reversed(CALLED[name]) for p in inspect.signature(function).parameters.values()}
    for option in COMMANDS[name].params:
        assert option.param_type_name == "argument" or f"--{option.name.replace('_', '-').removeprefix('as-')}" in option.opts
        parameter = RENAMED.get((name, option.name), option.name)
        if option.name in OF_THE_PROGRAM or parameter is None:
            assert option.name not in known or parameter is None
            continue
        assert parameter in known
        default = option.default.value if isinstance(option.default, Enum) else option.default
        default = () if default is None and option.multiple else default  # once for each
        if parameter == option.name and option.param_type_name == "option":
            assert default == known[parameter].default or (default == () and known[parameter].default is None)


def test_an_option_that_several_commands_have_is_one():
    helps: dict[str, set[str]] = {}
    for command in COMMANDS.values():
        for option in command.params:
            helps.setdefault(option.name, set()).add(option.help)
    shared = ("label", "drop", "keep_index", "positive", "intercept", "device", "memory_limit", "cluster", "as_json")
    assert {name: len(helps[name]) for name in shared} == dict.fromkeys(shared, 1)


def fields(content, found: dict[str, set[str]]) -> dict[str, set[str]]:
    """The JSON types of the values of every field, by its name; those of tables by column are left out."""
    for name, value in content.items():
        kind = {bool: "boolean", int: "number", float: "number"}.get(type(value), type(value).__name__)
        found.setdefault(name, set()).update(set() if value is None else {kind})
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, dict) and name not in ("columns", "direction"):
                fields(part, found)
    return found


# Parts of an answer, and what an option adds to it, which the page has in the row of the command.
PARTS = {
    "separate": ["witness"],
    "fit": ["planes", "least losses"],
    "verify": ["checks"],
    "convert": ["convert --check"],
    "demo": ["methods"],
}
ALSO_TOLD = {"predict": {"scores", "probabilities", "classes", "same_prediction", "left_out"}, "fit": {"null"}, "demo": {"null"}}


@pytest.mark.skipif(not API.exists(), reason="the pages are not here: run the suite in a checkout of the repository")
@pytest.mark.parametrize("command", ["separate", "fit", "predict", "verify", "diagnose", "play", "convert", "demo"])
def test_the_page_lists_the_fields_of_json(command):
    """docs/cli.md has those that are declared, and no others."""
    page = API.with_name("cli.md").read_text(encoding="utf-8").partition("| command | fields |")[2]
    (row,) = re.findall(rf"^\| `{command}` \|(.*)\|$", page, flags=re.M)
    declared = " ".join(FIELDS[part] for part in [command, *PARTS.get(command, [])]).split()
    assert {*re.findall("`([a-z_]+)`", row)} == {*declared} | ALSO_TOLD.get(command, set())


def test_a_field_of_json_means_one_thing(tmp_path):
    X, y = datasets.iris("virginica")
    np.savez(tmp_path / "no.npz", X=X, y=y)
    asked = [
        ["demo", "--rounds", 3, "--no-picture"],
        ["separate", RASH, "--certificate", tmp_path / "proof.json"],
        ["separate", tmp_path / "no.npz"],
        ["verify", tmp_path / "proof.json", RASH],
        ["fit", RASH, "--nu", 0.3, "-o", tmp_path / "model"],
        ["predict", tmp_path / "model", RASH, "--scores"],
        ["diagnose", RASH],
        ["race", RASH, "--rounds", 3, "-m", "nesterov", "-m", "double_oracle"],
        ["play", RASH, "--rounds", 3],
        ["convert", RASH, tmp_path / "folder"],
        ["convert", "--check", tmp_path / "folder"],
        ["separate", tmp_path / "nowhere"],
    ]
    found: dict[str, set[str]] = {}
    for arguments in asked:
        fields(json.loads(CliRunner().invoke(app, [*map(str, arguments), "--json"]).stdout), found)
    assert {name: kinds for name, kinds in found.items() if len(kinds) > 1} == {}
    assert {"notices", "n", "d", "rows", "margin", "n_iter", "method", "guarantee", "witness", "seconds", "error"} <= set(found)
    attributes = {*dir(gordan.MarginResult), *gordan.MarginResult.__dataclass_fields__}
    assert {"status", "margin", "gap", "n_iter", "passes", "seconds", "witness", "w", "b"} <= attributes & set(found)
