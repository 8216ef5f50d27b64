"""Tables of text as people have them: semicolons, decimal commas, missing cells, no header, words for numbers."""

from __future__ import annotations

import json
import re
import zipfile

import numpy as np
import pandas
import pytest
from commands import run

import gordan
from gordan.certificates import standalone
from gordan.io import convert, read
from gordan.io.delimited import with_separator
from gordan.io.lines import lines_of
from gordan.io.table import Dialect, Request

GERMAN = """;Größe;Gewicht;Raucher;Klasse
1;1,80;80,5;True;krank
2;1,65;;False;gesund
3;1.234,5;71,25;FALSE;gesund
4;-0,5;1e1;true;krank
"""


def written(folder, text, name="a.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_german_table(tmp_path):
    path = written(tmp_path, GERMAN)
    table = read(path, decimal=",", thousands=".", missing="drop")
    assert table.names == ("Größe", "Gewicht", "Raucher")
    np.testing.assert_array_equal(table.X, [[1.8, 80.5, 1], [1234.5, 71.25, 0], [-0.5, 10, 1]])
    assert table.y.tolist() == ["krank", "gesund", "krank"]
    assert table.left_out == (1,)
    told = " ".join(table.notices)
    assert "separated by semicolons" in told
    assert "counts the rows" in told
    assert "left out 1 of 4 rows of a.csv for missing cells (Gewicht: 1): line 3" in told
    assert lines_of(path, [0, 2, 3], table.dialect) == {0: 2, 2: 4, 3: 5}


@pytest.mark.parametrize("long", [False, True])
def test_the_scanner_and_python_read_the_same(tmp_path, long):
    """A file beyond a megabyte goes through the compiled scanner, but for lines that are not plain."""
    r = np.random.default_rng(0)
    X = np.round(r.standard_normal((40_000 if long else 50, 4)), 6)
    flags = r.integers(0, 2, len(X)).astype(bool)
    lines = [
        ";".join([*(f"{x:.6f}".replace(".", ",") for x in row), str(flag), "ab"[flag]])
        for row, flag in zip(X.tolist(), flags.tolist(), strict=True)
    ]
    gone = [3, 17, len(lines) - 2]
    for i in gone:
        lines[i] = lines[i].replace(lines[i].split(";")[1], "NA", 1)
    path = written(tmp_path, "a;b;c;d;e;y\n" + "\n".join(lines) + "\n")
    table = read(path, decimal=",", missing="drop")
    kept = np.setdiff1d(np.arange(len(X)), gone)
    np.testing.assert_array_equal(table.X, np.column_stack([X, flags])[kept])
    assert table.y.tolist() == ["ab"[flag] for flag in flags[kept].tolist()]
    assert table.left_out == tuple(gone)


def test_no_header(tmp_path):
    path = written(tmp_path, "1,2,a\n3,4,b\n")
    table = read(path, header=False)
    assert (table.names, table.X.tolist(), table.y.tolist()) == (None, [[1, 2], [3, 4]], ["a", "b"])
    assert read(path, header=False, label=2, drop=[0]).X.tolist() == [[2], [4]]
    assert lines_of(path, [0, 1], table.dialect) == {0: 1, 1: 2}
    with pytest.raises(gordan.InputError, match="--no-header"):
        read(written(tmp_path, "1,2,0\n3,4,1\n"))


@pytest.mark.parametrize(("mark", "told"), [("|", "vertical bars"), ("\t", "tabs"), (";", "semicolons")])
def test_separators_are_recognised(tmp_path, mark, told):
    table = read(written(tmp_path, "a,b,y\n1,2,0\n3,4,1\n".replace(",", mark)))
    assert table.X.tolist() == [[1, 2], [3, 4]]
    assert told in table.notices[0]


def test_lines_that_end_in_cr(tmp_path):
    table = read(written(tmp_path, "a,b,y\r1,2,0\r3,4,1\r"))
    assert (table.X.tolist(), table.y.tolist()) == ([[1, 2], [3, 4]], [0, 1])


def test_converted_tables_are_the_same(tmp_path):
    options = {"decimal": ",", "thousands": ".", "missing": "drop"}
    path = written(tmp_path, GERMAN)
    done = convert(path, tmp_path / "folder", **options)
    table, other = read(path, **options), read(tmp_path / "folder")
    np.testing.assert_array_equal(np.asarray(other.X), table.X)
    assert (other.names, other.y.tolist()) == (table.names, table.y.tolist())
    assert any("semicolons" in notice for notice in done.notices)
    with pytest.raises(gordan.InputError, match="other data or other columns"):
        convert(path, tmp_path / "folder", decimal=",", thousands=".")


CELLS = {
    "1,5": ({"decimal": ","}, 1.5),
    "1.5": ({"decimal": ","}, None),
    "1.234.567,5": ({"decimal": ",", "thousands": "."}, 1234567.5),
    "12.34,5": ({"decimal": ",", "thousands": "."}, None),
    "1,234": ({"thousands": ","}, 1234.0),
    "1,23": ({"thousands": ","}, None),
    "-1'000": ({"thousands": "'"}, -1000.0),
    " TRUE ": ({}, 1.0),
    "false": ({}, 0.0),
    "1_000": ({}, None),
    "truly": ({}, None),
}


@pytest.mark.parametrize("cell", CELLS)
def test_numbers(cell):
    options, value = CELLS[cell]
    assert Dialect(**options).value(cell) == value


BAD = [
    ({"sep": ";;"}, "single character"),
    ({"sep": "1"}, "single character"),
    ({"sep": '"'}, "single character"),
    ({"decimal": ";"}, "'.' or ','"),
    ({"thousands": "."}, "pass --decimal , as well"),
    ({"decimal": ",", "thousands": ","}, "decimal and thousands must differ"),
    ({"decimal": ","}, "cannot be decimal marks"),
    ({"missing": "ignore"}, "choose one of 'raise', 'drop'"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_what_cannot_be_told_apart_is_refused(tmp_path, options, message):
    with pytest.raises(gordan.InputError, match=message):
        read(written(tmp_path, "a,b,y\n1,2,0\n3,4,1\n"), **options)


WITHOUT_A_HEADER = {
    "decimal commas": ("1,5;2,5;a\n2,5;3,5;b\n", {"decimal": ","}),
    "one line": ("1,5;2,5;a\n", {"decimal": ","}),
    "groups": ("1,5;2,5;a\n2.000,5;3,5;b\n", {"decimal": ",", "thousands": "."}),
    "commas that group": ("1.5;2.5;a\n2,000;3,000;b\n", {"thousands": ","}),
}


@pytest.mark.parametrize("case", WITHOUT_A_HEADER)
def test_semicolons_are_recognised_without_a_header(tmp_path, case):
    text, options = WITHOUT_A_HEADER[case]
    table = read(written(tmp_path, text), header=False, **options)
    assert table.X[0].tolist() == [1.5, 2.5]
    assert table.y[0] == "a"


IN_QUOTES = {
    "semicolons": ('a;b;y\n"1,5";"2,5";u\n"2,5";3;v\n', {}, [[1.5, 2.5], [2.5, 3]]),
    "commas": ('a,b,y\n"1,5","2,5",u\n"2,5",3,v\n', {}, [[1.5, 2.5], [2.5, 3]]),
    "not in the first row": ('a,b,y\n1,2,u\n"2,5",3,v\n', {"sep": ","}, [[1, 2], [2.5, 3]]),
}


@pytest.mark.parametrize("case", IN_QUOTES)
def test_decimal_commas_in_quotes(tmp_path, case):
    """Read by Python, and beyond a megabyte by the scanner: a comma without quotes is between columns in both."""
    text, options, expected = IN_QUOTES[case]
    path = written(tmp_path, text)
    assert read(path, decimal=",", **options).X.tolist() == expected
    header, *rows = text.splitlines(keepends=True)
    long = written(tmp_path, header + "".join(rows) * 50_000, "long.csv")
    table = read(long, decimal=",", **options)
    np.testing.assert_array_equal(table.X, expected * 50_000)
    if "," in header:
        with pytest.raises(gordan.InputError, match=r"line 100002: it has 4 fields, .*; decimal commas must be in quotes here"):
            read(written(tmp_path, header + "".join(rows) * 50_000 + "1,5,2,u\n", "long.csv"), decimal=",", **options)
    found, *_ = standalone._split_table(path, standalone.Style(decimal=",", **options))
    assert found == ["a", "b", "y"]


def test_a_first_line_for_spreadsheets(tmp_path):
    path = written(tmp_path, "\ufeffsep=;\r\n;a;y\r\n1;1,5;u\r\n2;2,5;v\r\n")
    table = read(path, decimal=",")
    assert (table.names, table.X.tolist(), table.y.tolist()) == (("a",), [[1.5], [2.5]], ["u", "v"])
    assert "counts the rows" in table.notices[1]
    assert lines_of(path, [0, 1], table.dialect) == {0: 3, 1: 4}
    assert standalone.read_table(path, None, style=standalone.Style(decimal=","))[:2] == ([[1.5], [2.5]], ["u", "v"])
    convert(path, tmp_path / "folder", decimal=",")
    assert read(tmp_path / "folder").X.tolist() == [[1.5], [2.5]]
    with pytest.raises(gordan.InputError, match=r"line 3, column 1 .'a'.: the cell is '1,5', .*pass --decimal ,"):
        read(path)


MARKS = {
    "1,5;2,5;a\n2,5;3,5;b\n": ";",
    "a;b,c;d\n1;2,3;4\n": ",",
    "1,5;a\n2,5;b\n": ";",
    "1;2,x;a\n3;4,y;b\n": ",",
    '"a;b","c;d",y\n1,2,0\n': ",",
    "\ta\ty\n0\t1\tu\n": "\t",
    "a,b\n1,2\n": ",",
}


@pytest.mark.parametrize("text", MARKS)
def test_what_is_between_columns_is_reported_by_both_readers(tmp_path, text):
    found, _ = with_separator(written(tmp_path, text), "csv", Request())
    assert found.dialect.sep == standalone._detect_separator(text, ",", standalone.Style()) == MARKS[text]


HEADERS = {
    "5.1,3.5,y\n4.9,3.0,v\n": True,
    "0,1,y\n4.9,3.0,v\n": False,
    "1,2,y\n4.9,3.0,v\n": False,
    "a,3.5,y\n4.9,3.0,v\n": False,
    ",".join(map(str, range(1100, 1120, 2))) + ",y\n" + "1," * 10 + "u\n": False,
}


@pytest.mark.parametrize("text", HEADERS)
def test_a_header_that_looks_like_a_row(tmp_path, text):
    notices = read(written(tmp_path, text)).notices
    assert ["line 1 of a.csv is read as the header" in notice for notice in notices] == [True] * HEADERS[text]


def test_groups_of_digits_in_quotes(tmp_path):
    """As spreadsheets write them: commas in the cells, and between them."""
    assert read(written(tmp_path, 'a,b,y\n"1,234.5",2,0\n"12,000",3,1\n'), thousands=",").X.tolist() == [[1234.5, 2], [12000, 3]]


def test_none_is_a_word_and_a_missing_value_only_as_python_writes_it(tmp_path):
    table = read(written(tmp_path, "a,y\n1,none\n2,mild\n3,None\n4,NULL\n"), missing="drop")
    assert (table.y.tolist(), table.left_out) == (["none", "mild"], (2, 3))


REFUSED = {
    "1.234": ({"decimal": ","}, "is '1.234', which is not a number; pass --decimal , --thousands . (in Python"),
    "1.2345,5": ({"decimal": ",", "thousands": "."}, "is '1.2345,5', which is not a number; if it is the label"),
    "-1.202,90": ({}, "pass --decimal , --thousands . (in Python decimal=',', thousands='.')"),
    "1,234": ({}, "pass --decimal , (in Python decimal=',') or --thousands , (in Python thousands=',')"),
    "1,234.5": ({}, "which is not a number; pass --thousands , (in Python thousands=',')"),
    "1e999": ({}, "is 1e999, which is not finite"),
}


@pytest.mark.parametrize("cell", REFUSED)
def test_what_is_wrong_with_a_cell(tmp_path, cell):
    options, told = REFUSED[cell]
    with pytest.raises(gordan.InputError) as refused:
        read(written(tmp_path, f"a;b;y\n{cell};2;0\n2;1;1\n"), **options)
    assert told in str(refused.value)


HINTS = {
    "decimal commas": ("a;b;y\n1,5;2;0\n2,5;1;1\n", "--decimal ,"),
    "an empty cell": ("a,b,y\n1,,0\n2,1,1\n", "--missing drop"),
    "NA": ("a,b,y\n1,NA,0\n2,1,1\n", "--missing drop"),
    "text": ("a,b,y\n1,x,0\n2,1,1\n", "--drop b"),
    "a percent sign": ("a,b,y\n1,5%,0\n2,1,1\n", "it looks like a number with a percent sign: write the number alone"),
    "money": ("a,b,y\n1,€ 5,0\n2,1,1\n", "it looks like an amount of money: write the number alone"),
    "a date": ("a,b,y\n1,2024-01-02,0\n2,1,1\n", "it looks like a date: make it a number, such as days since"),
    "a date with points": ("a;b;y\n1;2.1.2024;0\n2;1;1\n", "it looks like a date: "),
    "a spreadsheet's error": ("a,b,y\n1,#DIV/0!,0\n2,1,1\n", "it looks like a spreadsheet error: replace it by the number"),
}


@pytest.mark.parametrize("case", HINTS)
def test_messages_name_the_option(tmp_path, case):
    text, hint = HINTS[case]
    with pytest.raises(gordan.InputError) as refused:
        read(written(tmp_path, text))
    assert hint in str(refused.value)
    assert ("get_dummies" in str(refused.value)) == (case == "text")


def test_the_line_that_makes_numbers_of_text_runs(tmp_path, monkeypatch):
    """What the message about a column of text shows, on a table with marks of its own and missing cells."""
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, ";Gewicht;raucht;krank\n0;80,5;ja;1\n1;60;nein;0\n2;;nein;1\n3;70,5;nein;0\n")
    options = {"decimal": ",", "missing": "drop"}
    with pytest.raises(gordan.InputError) as refused:
        read(path, **options)
    line = re.search(r"in Python: (pandas\..*), and name the label with --label krank; --drop raucht", str(refused.value))[1]
    exec(line, {"pandas": pandas})
    table = read(tmp_path / "numbers.csv", label="krank")
    assert table.names == ("Gewicht", "raucht_nein")
    np.testing.assert_array_equal(table.X, [[80.5, 0], [60, 1], [70.5, 1]])


def test_the_line_that_makes_numbers_of_text_leaves_out_empty_cells(tmp_path, monkeypatch):
    """Where `get_dummies` finds an empty cell, it would make it the first level."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(gordan.InputError) as refused:
        read(written(tmp_path, "age,job,y\n30,cook,0\n40,,1\n50,pilot,1\n", "tj.csv"), label="y")
    exec(re.search(r"in Python: (pandas\..*), and name the label with --label y; --drop job", str(refused.value))[1])
    np.testing.assert_array_equal(read(tmp_path / "numbers.csv", label="y").X, [[30, 0], [50, 1]])


def test_new_files_with_categories(tmp_path, monkeypatch):
    """A model of 0/1 columns and a file with the category: the message says how to make these, and the line runs."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "age,Filiale_Ost,Filiale_Süd,y\n30,0,0,a\n40,1,0,b\n50,0,1,b\n20,0,0,a\n", "fit.csv")
    assert run("fit", "fit.csv", "-o", "m.gordan").exit_code == 0
    written(tmp_path, "age;Filiale\n50;Süd\n20;\n21;Nord\n", "new.csv")
    told = run("predict", "m.gordan", "new.csv").stderr
    assert "has no column named 'Filiale_Ost', but 'Filiale': if that is a category, it needs the 0/1 columns" in told
    assert "did you mean" not in told
    exec(re.search(r"In Python: (pandas\..*), where a level", told.replace("\n", " "))[1], {"pandas": pandas, "gordan": gordan})
    table = read(tmp_path / "numbers.csv", labelled=False)
    assert table.names == ("age", "Filiale_Ost", "Filiale_Süd")
    np.testing.assert_array_equal(table.X, [[50, 0, 1], [21, 0, 0]])
    assert run("predict", "m.gordan", "numbers.csv").stdout.split() == ["b", "a"]
    written(tmp_path, "Filiale\nOst\n", "new.csv")  # age would become 0
    assert run("predict", "m.gordan", "new.csv", "--unlabelled").stderr.strip().endswith("new.csv has no column named 'age'")
    written(tmp_path, "agee,Filiale_Ost,Filiale_Süd\n30,0,0\n", "new.csv")
    assert "did you mean 'agee'?" in run("predict", "m.gordan", "new.csv").stderr


def test_equal_names_are_reported_and_no_model_is_fitted(tmp_path):
    """Which predict, by name, would refuse."""
    path = written(tmp_path, "a,a,b,y\n1,2,1,u\n2,1,3,v\n")
    warning = "has 2 columns named 'a'; rename all but one, because predict finds columns by name"
    done = run("separate", path)
    assert done.exit_code == 0
    assert warning in done.stderr
    for options in ((), ("--loss", "hinge"), ("--standardize",)):
        done = run("fit", path, "-o", tmp_path / "m.gordan", *options)
        assert done.exit_code == 2
        assert done.stderr.count(warning) == 1
        assert not (tmp_path / "m.gordan").exists()


def test_a_list_of_columns_to_drop(tmp_path):
    done = run("separate", written(tmp_path, "a,b,c,y\n1,2,3,u\n2,1,3,v\n"), "--drop", "a,b")
    assert "has no column named 'a,b'; name one column at a time: --drop a --drop b, in Python drop=['a', 'b']" in done.stderr


def test_other_formats_are_called_what_they_are(tmp_path):
    with zipfile.ZipFile(tmp_path / "book.xlsx", "w") as book:
        book.writestr("xl/workbook.xml", "<workbook/>")
    for name in ("book.xlsx", "renamed.csv"):
        (tmp_path / name).write_bytes((tmp_path / "book.xlsx").read_bytes())
        with pytest.raises(gordan.InputError, match="spreadsheet workbook"):
            read(tmp_path / name)
    for name in ("a.json", "b.csv"):
        with pytest.raises(gordan.InputError, match="is JSON"):
            read(written(tmp_path, json.dumps([{"a": 1}]), name))
    gordan.LinearClassifier().fit([[0.0], [1.0]], [0, 1]).save(tmp_path / "m.gordan")
    with pytest.raises(gordan.InputError, match=r"is a model or a checkpoint of gordan; pass data here"):
        read(tmp_path / "m.gordan")
    (tmp_path / "t.feather").write_bytes(b"ARROW1\0\0")
    with pytest.raises(gordan.InputError, match=r"read_feather\('t.feather'\).to_parquet\('t-table.parquet'\)"):
        read(tmp_path / "t.feather")
    np.save(tmp_path / "X.npy", np.ones((3, 2)))
    with pytest.raises(gordan.InputError, match="not a text table"):
        read(tmp_path / "X.npy", missing="drop")


def test_a_name_that_is_nearly_one(tmp_path):
    path = written(tmp_path, "weight,height,class\n1,2,sick\n3,4,well\n")
    with pytest.raises(gordan.InputError, match="did you mean 'weight'"):
        read(path, drop=["wieght"])
    for arguments, near in ((["--label", "clas"], "'class'"), (["--positive", "sik"], "'sick'")):
        done = run("separate", path, *arguments)
        assert done.exit_code == 2
        assert f"did you mean {near}?" in done.stderr
    with pytest.raises(gordan.InputError, match="did you mean 'smooth_perceptron'"):
        gordan.play([[1.0], [-1.0]], "smoth_perceptron")


def test_the_options_of_commands(tmp_path):
    path = written(tmp_path, GERMAN)
    options = ["--decimal", ",", "--thousands", ".", "--missing", "drop"]
    done = run("separate", path, *options, "--json")
    answer = json.loads(done.stdout)
    assert (done.exit_code, answer["status"]) == (0, "separable")
    assert any("1 of 4 rows" in notice for notice in answer["notices"])
    model = tmp_path / "model.gordan"
    assert run("fit", path, "-o", model, *options).exit_code == 0
    predicted = run("predict", model, path, *options)
    assert predicted.exit_code == 0
    assert predicted.stdout.split()[:3] == ["krank", "gesund", "krank"]


def test_standard_input_that_is_empty():
    done = run("separate", "-", input="")
    assert done.exit_code == 2
    assert "standard input is empty" in done.stderr


MODULE = """
from gordan import methods

@methods.register("long_steps", reference="this test", forms=("published",))
def long_steps(*, form="published"):
    return methods.smooth_perceptron(form=form, eta=0.5)
"""


def test_methods_of_a_module_reach_the_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, "a,b,y\n1,2,0\n3,4,1\n0,1,0\n5,3,1\n")
    done = run("play", path, "--import", "no_such_module_of_methods")
    assert done.exit_code == 2
    assert "cannot be imported" in done.stderr
    written(tmp_path, "1 / 0\n", "a_module_with_an_error.py")
    for name, told in (("a_module_with_an_error", "ZeroDivisionError"), ("a_module_with_an_error.py", "without .py")):
        done = run("play", path, "--import", name)
        assert done.exit_code == 2
        assert told in " ".join(done.stderr.replace("│", " ").split())
    written(tmp_path, MODULE, "a_module_of_methods.py")
    monkeypatch.setattr(gordan.methods.registry, "_entries", {**gordan.methods.registry._entries})
    imported = "--import", "a_module_of_methods"
    assert run("play", path, "long_steps", "--rounds", 3, *imported).stdout.startswith("long_steps, published form; theorem: ")
    names = "-m", "long_steps", "-m", "smooth_perceptron"
    race = json.loads(run("race", path, *names, "--rounds", 3, "--json", *imported).stdout)
    assert [each["method"] for each in race["methods"]] == ["long_steps", "smooth_perceptron"]
    assert run("fit", path, "-o", tmp_path / "m.gordan", "--method", "long_steps", *imported).exit_code == 0


def test_progress_for_a_log(monkeypatch, capsys):
    """Each line has the seconds, what is being done, and how it stands."""
    import gordan.cli.progress as progress

    ticks = iter([False, False, True])
    monkeypatch.setattr(progress.ProgressSetting, "mode", progress.ProgressMode.LOG)
    watch = progress.Watch("reading a.csv")
    watch._over.wait = lambda seconds: next(ticks)
    watch.show_text("37 % read")
    watch._write_lines()
    assert capsys.readouterr().err == "0 s: reading a.csv  37 % read\n" * 2


def test_labels_in_place_of_the_method():
    with pytest.raises(gordan.InputError, match=r"pass y\[:, None\] \* X"):
        gordan.play([[1.0], [2.0]], np.array([1, -1]))


@pytest.mark.parametrize(
    ("text", "options", "hint"),
    [
        ("a;y\n1,5;u\n2;v\n", {}, "; pass --decimal , (in Python"),
        ("a;y\n7.630,1;u\n2;v\n", {"decimal": ","}, "pass --decimal , --thousands ."),
        ("a;y\n7.630;u\n2;v\n", {"decimal": ","}, "is '7.630', which is not a number; pass --decimal , --thousands ."),
        ('a,y\n"1,234",u\n2,v\n', {}, "or --thousands , (in Python"),
    ],
)
def test_how_to_read_numbers_with_other_marks_is_reported(tmp_path, text, options, hint):
    with pytest.raises(gordan.InputError) as told:
        read(written(tmp_path, text), **options)
    assert hint in str(told.value)
    right = {"decimal": ",", "thousands": "."} if ";" in text else {"thousands": ","}
    assert read(written(tmp_path, text), **right).X[0, 0] in (1.5, 7630.1, 7630.0, 1234.0)


def test_how_to_convert_latin_1_is_reported_and_a_mark_of_utf_8_is_skipped(tmp_path):
    with pytest.raises(
        gordan.InputError, match=r"line 1: this is not UTF-8 text; .* iconv -f WINDOWS-1252 -t UTF-8 a\.csv > utf8-a\.csv"
    ):
        read(written(tmp_path, GERMAN.encode("latin-1")))
    table = read(written(tmp_path, b"\xef\xbb\xbf" + GERMAN.encode()), decimal=",", thousands=".", missing="drop")
    assert table.names == ("Größe", "Gewicht", "Raucher")
    assert "counts the rows" in " ".join(table.notices)
