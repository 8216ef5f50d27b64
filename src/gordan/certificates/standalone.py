"""Check a certificate of gordan in exact arithmetic, with nothing but the Python standard library.

USAGE

    python check.py CERTIFICATE DATA [--label NAME_OR_POSITION] [--labels y.npy] [--positive CLASS]
                    [--drop COLUMN ...] [--weight COLUMN] [--weights w.npy] [--keep-index] [--missing drop]
                    [--sep CHARACTER] [--decimal CHARACTER] [--thousands CHARACTER] [--no-header]

`gordan checker > check.py` writes this file. It shares no code with gordan, so if you have read it, you need not trust anything
else. Its sections are: reading a certificate, the claim, kinds and fields, arithmetic, the data, files, the command line.

CERTIFICATE is a JSON file with one certificate or a list of them. DATA is - for standard input, or one of the following, also
compressed as .gz, .bz2 or .xz:

    CSV or TSV with a header    the label is the column given by --label, else the one that the certificate names if the file
                                has it, else the last column
    svmlight                    the label comes first in each line
    .npy                        the label is a column as in a table, or in another file given by --labels

If the certificate is about one class against the rest, --positive names that class, unless the certificate does. --drop leaves
out a column, by name or position, or by its index in svmlight. A nameless first column of a table that only counts the rows is
left out unless --keep-index is given. If the certificate names its columns and the file has further ones, these are left out.

A certificate of a loss with more than 100,000 sample weights holds only their hash. They are then read from the column that the
certificate or --weight names, or from the file given by --weights. If a class is set against several, and there are class
weights, each of them is the product of the sample weight, if there is one, and the weight of the row's own class.

The output says what the certificate claims, whether that is proved, and whether this is the data that the certificate was made
for. No check depends on the latter. The exit codes are those of `gordan verify`: 0 accepted; 1 rejected (the claim does not
follow, or the data has other classes); 2 a file cannot be read, a label is missing, or there are too many classes; 70 an error
in this file; 130 Ctrl-C. While Python itself starts and reads this file, about 0.1 s, Ctrl-C is answered by Python, by its exit
code 1: a rejection always prints a line that begins with "rejected:".

NUMBERS AND ROWS

Row i of the data is x_i in R^d with the label y_i = +1 (the second of `classes`) or -1 (the first). If the classes are -1 and 1
and the data has both, rows of label 0 are left out: they count in shape and row numbers, but no claim is about them. Rows that
the certificate drops by a rule are left out before anything is counted: "missing" drops rows with an empty cell, NA, NaN and
the like, "zero-weight" drops rows whose weight is zero, in the column that the certificate or --weight names. With --missing
drop the first rule applies to any certificate.

Every number in a file is a rational number, and all claims are decided for these. If only the sign of a sum of products or the
least of many such sums is needed, floats decide it as long as they differ by more than twice the largest possible rounding error
(Python's floats are IEEE doubles). Everything else is computed in fractions. In a certificate each number has only one valid
spelling, that of Python's float.hex and hex; any other is bad input.

MODELS

A certificate whose `model` is not logistic is about other rows a_i, which are made from the data. These are not multiplied by
labels, and there is no intercept beside the one that they contain. With z_i = (1, x_i), or x_i without intercept, each
observation gives in this order:

    multinomial   for its class c and every other class j, in the order of `classes`: z_i in the block of c, -z_i in that of j;
                  the first class, the reference, has no block
    ordinal       (-1 at the threshold below its class, x_i) unless it is in the first class, and (1 at the threshold above its
                  class, -x_i) unless it is in the last; the thresholds come before the columns
    poisson       z_i and -z_i if y_i > 0, and -z_i if y_i = 0

The log-likelihood of the model increases forever along w if and only if a_i.w >= 0 for all of these rows, and not 0 for all.

CLAIMS, AND WHY THEY FOLLOW

separator   w, b prove that a plane separates the classes:  y_i (x_i.w + b) > 0 for every i.  (Without intercept b is 0.)

witness     Rows and weights t_i > 0 prove that no plane does:  sum_i t_i y_i x_i = 0, and with an intercept sum_i t_i y_i = 0.
            For if w, b separated, then 0 < sum_i t_i y_i (x_i.w + b) = 0.

quasi-separation
            Integers w, b and integers t_i > 0 on some rows prove that some plane separates weakly, and that none has a row
            strictly on its side that this one has not.  With a_i = y_i (x_i, 1), or y_i x_i without intercept, and v = (w, b):
            a_i.v >= 0 for every i, a_i.v > 0 for some i and a_i.v = 0 for some i;  sum_i t_i a_i = 0;  and every a_i with
            a_i.v = 0 is a linear combination of those with a t_i.  For if a_i.u >= 0 for every i, then sum_i t_i a_i.u = 0, so
            a_i.u = 0 for the rows with a t_i, and hence for every row with a_i.v = 0.

overlap     Integers t_i > 0 on some rows prove that no plane separates even weakly:  sum_i t_i a_i = 0, and every row is a
            linear combination of those with a t_i.  So a_i.u >= 0 for every i only if a_i.u = 0 for every i.

verified-witness, verified-quasi-separation, verified-overlap
            The claims of witness, quasi-separation and overlap, from floats w, b and floats t_i > 0 with which the rows cancel
            up to rounding: exact positive weights exist near them.  `dependent` expresses some columns by the others, in integers
            that are checked: on the certificate's rows for a witness, on the rows with a_i.v = 0 (the certificate's rows among
            them) for quasi-separation, on all rows for overlap.  Let M have the a_i of the certificate's rows as columns, without
            these dependent entries.  If for some Q every row of |I - MQ| adds up to at most D < 1, every entry of |Mt| is at most
            R, and  sum_j |Q_ij| R / (1 - D) < t_i  for every i, then  x = t - Q (MQ)^-1 Mt  is positive and Mx = 0; and M has
            full rank, so that its columns span.  Q is found in floats, which need not be trusted; D and R are computed in
            integers.  The time for this grows with the cube of the number of columns.

bracket     lower <= g <= upper for the largest margin g (a separator may state this, too), where with 1/norm + 1/q = 1

                g = max over w != 0 of  min over p in P of  sum_i p_i a_i.w / |w|_q     (or 0, if that is negative)

    intercept none        a_i = y_i x_i,      P = {p >= 0, sum p = 1}
    intercept penalized   a_i = y_i (x_i, 1), P as before, and (w, b) in place of w
    intercept free        a_i = y_i x_i,      P = {p >= 0, the p of each class add up to 1/2}: b is chosen optimally
    nu                    in addition p_i <= c_i / (nu sum c), where c is `sample_weight`, or all ones
    sample_weight         without nu: p_i = 0 if c_i = 0
    robust                if E > 0: every x_i may be moved by d with |d|_s <= E, s = `robust_norm`, so that the sum loses E |w|_r,
                          1/s + 1/r = 1; then the upper bound is the distance of sum_i p_i a_i to {|d|_s <= E}

    lower   Every w != 0 gives the lower bound  min over P of sum_i p_i a_i.w / |w|_q.  The minimum puts the mass of a class (of
            all rows, unless the intercept is free) on its lowest scores: on the lowest alone, or with nu on as many as the caps
            require.
    upper   Every p in P gives the upper bound  |sum_i p_i a_i|_norm, by Hoelder's inequality.  The certificate has t_i > 0 for
            its rows and p = t / sum t, within each class if the intercept is free.  With nu, t_i <= c_i and sum t >= nu sum c
            (half of it in each class) are required, so that p is under its caps.

optimum     lower <= m <= upper for the least value m of a regularized loss  1/2|w|^2 + sum_i C_i l(z_i),  z_i = y_i (x_i.w + b),
            with C_i = C (sample weight x class weight), where a penalized b counts in the norm.  Every w, b gives an upper bound.
            l(z) = max over u of g(u) - u z, so that weights t_i = C_i u_i give the lower bound  sum_i C_i g(u_i) - 1/2|sum_i t_i
            a_i|^2  with a_i as for a bracket.  With a free intercept the t of both classes must have the same sum, and those of
            the heavier class are scaled down to it.  The weights follow from w, b, except for those that the certificate states.

    multinomial           1/2|W|^2 + sum_i C_i (log sum_c exp(s_ic) - s_iy),  s_i = x_i W + b, for all `classes`; `w` has the
            column of W of each class, with its b at the end.  Every q_i >= 0 of sum 1 gives the lower bound  sum_i C_i H(q_i) -
            1/2|V|^2,  V = sum_i C_i x_i (e_y - q_i)^T, where H is the entropy; with a free intercept sum_i C_i q_i = N is
            required, where N_c is the sum of the C_i of class c.  q_i is about softmax(s_i), mixed with one q for all rows if b
            is free.

NORMS

Square roots are avoided: L |w|_2 <= N is L^2 w.w <= N^2 for L, N >= 0. For another norm, |x|_s <= B means that the powers
(|x_j|/B)^s add up to at most 1. The sum is enclosed with 60 decimal digits, and computed exactly if these do not decide and all
terms are rational. Otherwise it is enclosed with up to 480 digits; a sum that is even closer to 1 is rejected, which happens to
none that was not constructed for it. A sum with an irrational term cannot be 1: such a term is c^(1/k) with the least possible
k, and the mean of its conjugates is 0; if the sum were 1, so would be the mean of its conjugates, which is the sum of the
rational terms alone.
"""

# ruff: noqa: E402
from __future__ import annotations

import os
import signal


def _interrupted(*_: object) -> None:
    """Exit at once when Ctrl-C is pressed."""
    os.write(2, b"\ninterrupted\n")
    os._exit(130)


if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _interrupted)  # before the other imports, which take most of the start

import argparse
import ast
import bz2
import copy
import csv
import decimal
import functools
import gzip
import hashlib
import io
import json
import lzma
import math
import operator
import re
import struct
import sys
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

# ---- constants and errors --------------------------------------------------------------------------------------------

FORMATS = ("gordan-certificate-1", "gordan-certificate-2")
Row = Mapping[int, Fraction]  # {column: value} for the nonzero entries of a row
CHUNK = 4096  # the number of rows that are hashed together
WIDEST = 10**4  # the largest number of columns for which a row is packed or unpacked at once
REMEMBERED = 10**6  # the largest number of cells for which rows are kept as fractions
BLANKS = " \t\r\n\v\f"  # the white space that may surround a cell
FORMULA_TERM = re.compile(r"[\[(:]|^Intercept$")  # in the names that formulas give to columns, as in town[T.B], log(x) and a:b
TRUTH = {"true": True, "1": True, "false": False, "0": False}
MISSING_TEXT = ("", "na", "n/a", "nan", "<na>", "null")
UNPACKED = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress}


class BadInput(ValueError):
    """The certificate or the data cannot be read."""


class Rejected(Exception):
    """The certificate does not prove its claim."""


# ---- reading a certificate -------------------------------------------------------------------------------------------


def read_certificate(text: str) -> Any:
    """Return the JSON object in a text, in which no name may occur twice and each number has only one spelling."""
    try:
        return json.loads(text, object_pairs_hook=_unique_names, parse_constant=_refuse_spelling, parse_int=_json_integer)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"this is not JSON: {error}") from None


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, in which names must be unique."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _refuse_spelling(text: str) -> Any:
    """Refuse a spelling that Python's json accepts as a number: NaN, Infinity or -0."""
    raise ValueError(f"{text} is not allowed as a number")


def _json_integer(text: str) -> int:
    """Return an integer in JSON, except for -0."""
    return int(text) if text != "-0" else int(_refuse_spelling(text))


def _list(value: Any, length: int | None = None) -> list[Any]:
    """Return a value that must be a list, of this length if one is given."""
    if type(value) is not list or length not in (None, len(value)):
        raise ValueError("a list is missing or of the wrong length")
    return value


def _text(value: Any) -> str:
    """Return a value that must be text."""
    if type(value) is not str:
        raise ValueError("expected text, found something else")
    return value


def _count(value: Any) -> int:
    """Return a value that must be a nonnegative integer."""
    if type(value) is not int or value < 0:
        raise ValueError("expected a count, found something else")
    return value


def _hex(value: Any) -> float:
    """Return a float, possibly infinite, that must be spelled as float.hex does."""
    number = float.fromhex(_text(value))
    if number.hex() != value or math.isnan(number):
        raise ValueError(f"{value[:40]!r} is not a number as float.hex writes it")
    return number


def _float(value: Any) -> Fraction:
    """Return a finite float as a fraction."""
    return Fraction(_hex(value))  # Fraction refuses infinity


def _integer(value: Any) -> Fraction:
    """Return an integer that must be spelled as hex() does."""
    number = int(_text(value), 16)
    if hex(number) != value:
        raise ValueError(f"{value[:40]!r} is not a whole number as hex() writes it")
    return Fraction(number)


def _float_or_inf(value: Any) -> Any:
    """Return a finite float as a fraction, or infinity."""
    return math.inf if value == "inf" else _float(value)


def _relation(value: Any) -> list[tuple[int, int]]:
    """Return pairs (column, factor) of columns whose multiples add up to 0."""
    pairs = [_list(pair, 2) for pair in _list(value)]
    return [(_count(column), int(_integer(factor))) for column, factor in pairs]


def _one_of(what: str, value: Any, known: Iterable[str]) -> str:
    """Return a value that must be one of the known words."""
    if value not in known:
        raise ValueError(f"unknown {what} {value!r}")
    return str(value)


def _model(value: Any) -> str:
    """Return a value that must be the name of a model."""
    return _one_of("model", value, ("logistic", "multinomial", "ordinal", "poisson"))


def _loss(value: Any) -> str:
    """Return a value that must be the name of a loss."""
    return _one_of("loss", value, ("hinge", "squared_hinge", "logistic", "multinomial"))


def _classes(values: list[Any], class_type: Any) -> list[Any]:
    """Return the classes, which must be distinct and of this type."""
    kind = {"str": str, "int": int, "bool": bool, "float": float}[_text(class_type)]
    labels = [_hex(v) if kind is float else v for v in values]
    if any(type(label) is not kind for label in labels) or len(set(labels)) < len(labels):
        raise ValueError(f"classes {labels[:10]}")
    return labels


def _about(value: Any) -> dict[str, Any]:
    """Return the description of where the certificate comes from. It may choose columns of a file, but no check depends on it."""
    texts = ("file", "label", "weight", "positive", "version", "statement")
    if type(value) is not dict or set(value) != {*texts, "size", "columns"}:
        raise ValueError("`about` has missing or unknown fields")
    columns = [] if value["columns"] is None else _list(value["columns"])
    for text in (*(value[name] for name in texts if value[name] is not None), *columns):
        _text(text)
    if value["size"] is not None:
        _count(value["size"])
    return value


def _coefficient_count(model: str, intercept: str, d: int, classes: int) -> int:
    """Return the number of coefficients that a model has for d columns and this number of classes."""
    block = d + (intercept != "none")
    return {"logistic": d, "multinomial": (classes - 1) * block, "ordinal": classes - 1 + d, "poisson": block}[model]


# ---- the claim -------------------------------------------------------------------------------------------------------


def check(
    certificate: dict[str, Any], X: Iterable[Any], y: Iterable[Any], progress: Any = None, weights: Iterable[Any] | None = None
) -> tuple[bool, str]:
    """Return whether the certificate proves its claim for rows X and labels y, and if not, why.

    The certificate is the JSON object; rows are sequences or {column: value}; `weights` are needed only if rows of weight zero
    are dropped, or if the certificate holds a hash of them. Raises BadInput for malformed input. `progress`, if given, is called
    with a text from time to time.
    """
    claim = Claim(certificate)
    claim.progress = progress or claim.progress
    return claim.decide(*claim.data(X, y, weights))


def left_out_words(kept: int, missing: int, zero: int, unlabeled: int, column: str | None) -> str:
    """Return a phrase that counts the rows that a claim is not about; empty if it is about all. `column` has the weights."""
    of_zero = "of weight zero" + ("" if column is None else f" in column {column!r}")
    counts = {"with a missing value": missing, of_zero: zero, "with the label 0": unlabeled}
    parts = ", ".join(f"{count} {words}" for words, count in counts.items() if count)
    return f" (for {kept} of {kept + sum(counts.values())} rows; left out: {parts})" if parts else ""


def compare_weights(
    stored: Sequence[Any], given: Sequence[Any] | None, labels: Sequence[Any], column: str | None, only_zeros: bool
) -> tuple[str, str]:
    """Return how the weights in a certificate relate to those of the data, a key of `WEIGHTS`, and a sentence about it.

    `column` is the name of the column of the data that has the `given` weights, or should have them. A certificate holds the
    products of sample weights and class weights, so the quotient may differ between the `labels`. Without nu a margin depends
    only on which weights are zero (`only_zeros`).
    """
    place = "the weights of the data" if column is None else f"the column {column!r}"
    own, other = [float(weight) for weight in stored], [math.nan if weight is None else float(weight) for weight in given or ()]
    unknown = "its weights are the certificate's own, and were not compared with the data: "
    if given is None and column is not None:
        return "unknown", f"{unknown}no column {column!r} was read; --weight names another"
    if given is None:  # class weights alone?
        other = [1.0] * len(own)
    if only_zeros:
        own, other = ([weight if math.isnan(weight) else float(weight != 0) for weight in each] for each in (own, other))
    if len(own) != len(other) or len(own) != len(labels):
        return "other", f"it has weights for {len(own)} rows, and the data has {len(labels)}"
    if own == other and given is not None:
        return "same", f"its {'rows of weight zero' if only_zeros else 'weights'} are those of {place}"
    factors: dict[str, float] = {}
    wrong = []
    for i, (weight, of_data, label) in enumerate(zip(own, other, labels, strict=True)):
        factor = 1.0 if only_zeros or not of_data > 0 else factors.setdefault(str(label).strip(), weight / of_data)
        if not (of_data >= 0 and abs(weight - factor * of_data) <= 2.0**-50 * weight):  # the products are rounded
            wrong.append(i)
    if wrong and given is None:
        return "unknown", f"{unknown}name their column by --weight"
    if not wrong:
        words = _first_few([f"{factor:.6g} for {label}" for label, factor in sorted(factors.items())], show=printable)
        times = "are a factor for each class" if given is None else f"are those of {place} times a factor for each class"
        return "factors", f"its weights {times}, such as class weights: {words}"
    i = wrong[0]
    first = f"the weight of row {i} is {own[i]:.6g} in the certificate and {other[i]:.6g} in the data"
    if only_zeros:
        first = f"the weight of row {i} is zero only in the {'data' if own[i] else 'certificate'}"
    by_class = "" if only_zeros else ", not even up to a factor for each class"
    return "other", f"its weights are not those of {place}{by_class}: {len(wrong)} of {len(own)} differ, and {first}"


def with_class_weights(weights: Sequence[Any], factors: Sequence[Any] | None, classes: Sequence[Any], y: Sequence[Any]) -> Any:
    """Return the sample weights of a certificate times its class weights `factors`, if it has any, for labels of its classes."""
    if factors is None or len(weights) != len(y):
        return weights
    own = {label: float(factor) for label, factor in zip(classes, factors, strict=True)}
    return [float(weight) * own.get(label, 1.0) for weight, label in zip(weights, y, strict=True)]


OTHER_WEIGHTS = (
    "it was made for other sample weights; if a class is set against several, and there are class weights, these are products "
    "of both"
)
# What the last note says about the weights of data whose rows and labels match; nothing if the weights do, or if there are none.
WEIGHTS = {
    "": "",
    "same": "",
    "factors": "the weights match up to a factor for each class",
    "other": "the weights differ",
    "unknown": "the weights were not compared",
}


def same_data_words(same: bool | None, accepted: bool, weights: str = "", renamed: bool = False) -> str:
    """Return the last note: whether this is the data that a certificate was made for.

    `same` tells whether rows and labels match, and is None if the certificate does not say for which it was made. `weights` is
    as `compare_weights` returns it, and `renamed` tells whether names of columns differ.
    """
    own = ", with the weights of the certificate" if weights in ("other", "unknown") else ""
    if same is None:
        return "it does not say which data it was made for"
    if not same:
        return OTHER_DATA + (f", but the claim holds for it as well{own}" if accepted else "")
    differences = [words for words in (WEIGHTS[weights], "the names of the columns differ" if renamed else "") if words]
    if differences:
        return "; ".join(
            [f"the {'rows and labels' if WEIGHTS[weights] else 'values'} match the data it was made for", *differences]
        )
    return "everything that the claim depends on matches the data it was made for" if accepted else SAME_DATA


class Claim:
    """A certificate that has been read strictly; `decide` tells whether it proves its claim for given data.

    Attributes have the names of the fields, or the letters that are used above: t for the weights and c for the sample weights.
    `several` tells whether it is about a multinomial loss, and `columns` is the number of coefficients of its model.
    """

    progress: Any = staticmethod(lambda words: None)
    left_out = (0, 0, 0)  # the arguments of `left_out_words` for the data that was read last
    kept: Sequence[int] = ()  # the rows of the data that was read last that no rule drops
    weights_reason = (
        "it is about sample weights that it does not hold: name their column by --weight, or their file by --weights; if a class "
        "is set against several, and there are class weights, these are products of both"
    )

    def __init__(self, content: dict[str, Any]) -> None:
        if not isinstance(content, dict) or content.get("format") not in FORMATS:
            raise BadInput(f"this is not a certificate of format {FORMATS[1]} or {FORMATS[0]}")
        try:
            self._set_fields(content)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise BadInput(f"the certificate is malformed: {error}") from None

    def _set_fields(self, content: dict[str, Any]) -> None:
        """Set the attributes from the JSON object; anything malformed raises a ValueError, KeyError or the like."""
        content = _in_second_format(content)
        self.kind, self.intercept, self.model = content["kind"], content["intercept"], _model(content["model"])
        self.several = content.get("loss") == "multinomial"
        n, d = (_count(size) for size in _list(content["shape"], 2))
        k = len(_list(content["classes"]))
        self.shape, self.columns = (n, d), _coefficient_count(self.model, self.intercept, d, k)
        sizes = self._named_lengths(k, len(_list(content["rows"])))
        given = {name: _read_field(name, content.get(name), self.kind, sizes) for name in FIELDS}
        self.w, self.b, self.rows, self.t = given["w"], given["b"] or Fraction(0), given["rows"], given["weights"]
        self.has_b, self.dependent = given["b"] is not None, given["dependent"]
        self.lower, self.upper, self.nu, self.c = (given[name] for name in ("lower", "upper", "nu", "sample_weight"))
        self.loss, self.C, self.class_weight = given["loss"], given["C"], given["class_weight"]
        self.weights_hash, self.data_hash = given["weights_hash"], given["data_hash"]
        self.noise, self.noise_norm = given["robust"] or Fraction(0), given["robust_norm"]
        self.states_bracket = self.lower is not None or self.upper is not None
        self.upper = None if self.upper == math.inf else self.upper
        self.norm = None if given["norm"] == math.inf else given["norm"]  # None is infinity
        self.class_type: str = content["class_type"]
        self.classes = _classes(given["classes"], self.class_type)
        self.about, self.dropped = given["about"] or {}, given["dropped"] or []
        if self.dropped not in ([], ["missing"], ["zero-weight"], ["missing", "zero-weight"]):
            raise ValueError(f"unknown rules for dropped rows: {self.dropped}")
        if self.model != "logistic":
            self._require_model_fields(given)

    def _named_lengths(self, k: int, rows: int) -> dict[str, int | None]:
        """Return the lengths of lists that FIELDS refers to by name, for k classes and this number of rows with weights."""
        if k < 2 or (k > 2 and not self.several and self.model not in SEVERAL_CLASSES):
            raise ValueError(f"it has {k} classes")
        plane = k * (self.shape[1] + (self.intercept != "none")) if self.several else self.columns
        return {"n": self.shape[0], "plane": plane, "rows": rows, "2": 2, "classes": k, "any": None}

    def _require_model_fields(self, given: Mapping[str, Any]) -> None:
        """Refuse fields that have no meaning for a model other than the logistic one."""
        stated = any(given[name] is not None for name in ("lower", "upper", "nu", "sample_weight"))
        if stated or self.kind in ("bracket", "optimum") or self.b != 0:
            raise ValueError("it states a margin, or has b, nu or sample weights, which its model does not have")
        if given["norm"] not in (None, 2):
            raise ValueError("it has a norm, which its model does not have")
        if self.model == "poisson" and (self.classes != [False, True] or self.class_type != "bool"):
            raise ValueError("the classes of a Poisson model are false and true")
        if self.model == "ordinal" and self.intercept != "free":
            raise ValueError("an ordinal model has thresholds, and its intercept is free")

    def statement(self) -> str:
        """Return the claim in words, with decimal numbers rounded so that it stays true."""
        kind = self.kind.removeprefix("verified-")
        if self.model != "logistic":
            name = {"ordinal": "n ordinal", "poisson": " Poisson"}.get(self.model, f" {self.model}")
            data = f"the data of a{name} regression" + (
                " (with no constant beside its columns)" if self.intercept == "none" else ""
            )
            partly = "" if self.model == "poisson" else ", but not completely"
            return {
                "separator": f"{data} is completely separated: its maximum-likelihood estimates do not exist",
                "quasi-separation": f"{data} is separated{partly}: its maximum-likelihood estimates do not exist",
                "overlap": f"{data} overlaps: its maximum-likelihood estimates exist",
            }.get(kind, f"{data} is not completely separated")
        interval = f"between {_rounded_decimals(self.lower, up=False)} and {_rounded_decimals(self.upper, up=True)}"
        intercept = {"none": " without intercept", "penalized": " with a penalized intercept"}.get(self.intercept, "")
        largest = "largest margin" + ("" if self.nu is None else f" (soft, nu = {float(self.nu):.6g})")
        if self.norm != 2:
            largest += f" in the {'inf' if self.norm is None else format(float(self.norm), 'g')}-norm"
        if self.kind == "bracket" and self.noise > 0:
            largest += f" under perturbations of size {float(self.noise):.6g} in the {float(self.noise_norm):g}-norm"
        origin, C = intercept if self.intercept == "none" else "", "?" if self.C is None else f"{float(self.C):.6g}"
        plane, rows = "plane through the origin" if origin else "plane", self._weight_words()
        loss = str(self.loss).replace("_", " ")
        return {
            "separator": "the data is separable"
            + (f", with a {largest}{intercept}{rows} {interval}" if self.states_bracket else origin),
            "bracket": f"the {largest}{intercept}{rows} is {interval}",
            "quasi-separation": f"the data is quasi-completely separated: some {plane} separates it weakly, and none strictly",
            "overlap": f"the data overlaps: no {plane} separates it, not even weakly",
            "optimum": f"the least value of the {loss} objective with C = {C}{intercept}{rows} is {interval}",
        }.get(kind, f"the data is not separable{origin}: {len(self.rows)} rows suffice to show it")

    def _weight_words(self) -> str:
        """Return a phrase that says that rows have weights and how many weights are 0; empty without weights."""
        if self.c is None and self.class_weight is None and self.weights_hash is None:
            return ""
        zeros = sum(not weight for weight in self.c or ())
        return " of weighted rows" + (f" ({zeros} of them of weight 0)" if zeros else "")

    # ---- the data that the claim is about ----------------------------------------------------------------------------

    def data(self, X: Iterable[Any], y: Iterable[Any], weights: Iterable[Any] | None = None) -> tuple[Rows, int, list[Any]]:
        """Return the data as it is checked: rows, number of columns and labels, without the rows that the certificate drops."""
        missing = zero = 0
        weights = None if weights is None else list(weights)
        if self.dropped:
            given = X if isinstance(X, NpyRows) else list(X)
            y = list(y)
            self.kept, missing, zero = _kept_rows(given, y, self.dropped, weights)
            X, y = [given[i] for i in self.kept], [y[i] for i in self.kept]
        rows, width = _rows(X, self.shape[1])
        self.kept = self.kept if self.dropped else range(len(rows))
        if self.weights_hash is not None and self.c is None and weights is not None:
            self._take_weights([weights[i] for i in self.kept if i < len(weights)], len(rows))
        y = _labels(y, len(rows), self.classes, self.model, self.several)
        unlabeled = sum(label == 0 for label in y) if self._leaves_out_label_zero(y) else 0
        self.left_out = missing, zero, unlabeled
        return rows, width, y

    def _take_weights(self, weights: list[Any], n: int) -> None:
        """Use these weights of n rows as sample weights if they have the hash that stands for those in the certificate."""
        if len(weights) != n:
            raise BadInput(f"there are {n} rows and {len(weights)} weights")
        try:
            mass = [*map(float, weights)]
            own = hashlib.sha256(struct.pack(f"<{n}d", *mass)).hexdigest() == self.weights_hash
            self.c = [*map(Fraction, mass)] if own and min(mass) >= 0 else None
        except (TypeError, ValueError, OverflowError) as error:
            raise BadInput(f"a weight is not a finite number: {error}") from None
        self.weights_reason = OTHER_WEIGHTS

    def _leaves_out_label_zero(self, y: Sequence[Any]) -> bool:
        """Return whether the claim is not about the rows of label 0."""
        return self.model == "logistic" and not self.several and _zero_is_left_out(y, self.classes)

    def hash_of(self, X: Rows, y: Sequence[Any]) -> str:
        """Return the hash by which gordan identifies this data.

        It is the SHA-256 of the SHA-256 of each chunk of 4,096 rows (see Rows.packed), then the shape, the classes in order, the
        intercept, the model unless it is logistic, and the labels.
        """
        whole, chunk = hashlib.sha256(), hashlib.sha256()
        for i in range(len(X)):
            if i and i % CHUNK == 0:
                whole.update(chunk.digest())
                chunk = hashlib.sha256()
                self.progress(f"comparing the data: row {i:,} of {len(X):,}")
            chunk.update(X.packed(i))
        whole.update(chunk.digest())
        classes, form, codes = self._hashed_labels(y)
        model = "" if self.model == "logistic" else f"{self.model};"
        whole.update(f"{len(X)},{self.shape[1]};{','.join(map(_class_text, classes))};{self.intercept};{model}".encode())
        whole.update(struct.pack(f"<{len(y)}{form}", *codes))
        return whole.hexdigest()

    def _hashed_labels(self, y: Sequence[Any]) -> tuple[Sequence[Any], str, list[int]]:
        """Return the classes that are hashed, the code of struct for labels, and the labels as numbers."""
        if self.model != "logistic":
            return self.classes, "i", self._class_numbers(y)
        leaves_out = _zero_is_left_out(y, self.classes)
        named = leaves_out or set(y) <= set(self.classes)
        classes = self.classes if named and not self.several else sorted(self.classes if named else set(y))
        place = {label: k for k, label in enumerate(classes)}
        if len(classes) > 2:
            return classes, "q", [place[v] for v in y]
        return classes, "b", [0 if leaves_out and v == 0 else 2 * place[v] - 1 for v in y]

    def _class_numbers(self, y: Sequence[Any]) -> list[int]:
        """Return the number of each row's class; for counts, 1 if they are positive and else 0."""
        place = {label: k for k, label in enumerate(self.classes)}
        return [int(v > 0) if self.model == "poisson" else place[v] for v in y]

    def _without_label_zero(self, X: Rows, y: Sequence[Any]) -> tuple[Claim, Rows, list[Any]]:
        """Return the claim and the data without the rows of label 0."""
        kept = [i for i, label in enumerate(y) if label != 0]
        place = {i: k for k, i in enumerate(kept)}
        _require(all(row in place for row in self.rows), "it names rows that are left out")
        inner = copy.copy(self)
        inner.shape, inner.rows = (len(kept), self.shape[1]), [place[row] for row in self.rows]
        inner.c = None if self.c is None else [self.c[i] for i in kept]
        known = {place[i]: X.exact[i] for i in X.other if i in place}
        return inner, Rows([X.given[i] for i in kept], known, X.width), [y[i] for i in kept]

    # ---- whether the claim is proved ---------------------------------------------------------------------------------

    def decide(self, X: Rows, width: int, y: Sequence[Any]) -> tuple[bool, str]:
        """Return whether the claim is proved for this data, and if not, why."""
        try:
            _require(width == self.shape[1], f"it is about {self.shape[1]} columns; the data has {width}")
            self._check_data(X, y)
        except Rejected as reason:
            return False, str(reason)
        return True, "accepted"

    def _check_data(self, X: Rows, y: Sequence[Any]) -> None:
        """Raise Rejected unless the claim is proved for these rows and labels."""
        n = self.shape[0]
        if self.several or self.model in SEVERAL_CLASSES:
            others = other_classes(self.classes, set(y))
            _require(not others, others)
        hint = "; are there rows of weight zero? Name their column by --weight" if "zero-weight" in self.dropped else ""
        _require(len(X) == n, f"it is about {n} rows; the data has {len(X)}{hint if len(X) > n else ''}")
        if self.model == "logistic":
            leaves_out = self._leaves_out_label_zero(y)
            known = leaves_out or (set(y) == set(self.classes) if self.several else set(y) <= set(self.classes))
            _require(known, f"its classes {self.classes} are not those of the data")
            claim, X, y = self._without_label_zero(X, y) if leaves_out else (self, X, y)
            return claim._check_rows(X, y if self.several else [1 if label == self.classes[1] else -1 for label in y])
        known = self.model == "poisson" or set(y) == set(self.classes)
        _require(known, f"its classes {self.classes[:10]} are not those of the data")
        made = ModelRows(self.model, self.intercept != "none", X, self._class_numbers(y), len(self.classes))
        inner = copy.copy(self)
        inner.model, inner.intercept, inner.shape = "logistic", "none", (len(made), self.columns)
        return inner._check_rows(made, [1] * len(made))

    def _check_rows(self, X: Sequence[Row], y: Sequence[Any]) -> None:
        """Raise Rejected unless the claim is proved for these rows, with signs y, or labels y of a multinomial loss."""
        distinct = len(set(self.rows)) == len(self.rows)
        _require(distinct and all(row < len(X) for row in self.rows), "its rows are not distinct rows of X")
        least = min(self.t, default=1)
        _require(least > 0 or (least == 0 and self.kind == "optimum"), "its weights are not positive")
        KINDS[self.kind][1](self, X, y)

    # ---- separator, bracket ------------------------------------------------------------------------------------------

    def _check_separator(self, X: Sequence[Row], y: Sequence[int]) -> None:
        """Require y_i (x_i.w + b) > 0 for every row, and the bracket if one is stated."""
        _require(self.w is not None, "it has no w")
        _require(self.intercept != "none" or self.b == 0, "it has b although there is no intercept")
        for i, (near, error) in enumerate(self._float_scores(X, y, self.b)):
            _require(near > error or self._score(X, y, i, self.b) > 0, f"row {_data_row(X, i)} is not on the right side")
        if self.states_bracket:
            self._check_bracket(X, y)

    def _check_bracket(self, X: Sequence[Row], y: Sequence[int]) -> None:
        """Require lower <= g <= upper for the largest margin g."""
        _require(self.norm is None or self.norm >= 1, "its norm is below 1")
        c = [Fraction(1)] * len(y) if self.c is None else self.c
        _require(all(weight >= 0 for weight in c), "a sample weight is negative")
        groups = [list(range(len(y)))]
        if self.intercept == "free":
            groups = [[i for i, sign in enumerate(y) if sign == s] for s in (1, -1)]
        needed = None  # the mass that each group must have, in units in which the caps are c
        if self.nu is not None:
            _require(0 < self.nu <= 1, "nu is not between 0 and 1")
            needed = self.nu * sum(c) / len(groups)
            _require(all(sum(c[i] for i in group) >= needed for group in groups), "nu is too large: no p is allowed")
        self._check_perturbations()
        if self.lower is not None and self.lower > 0:
            self._check_lower(X, y, c, groups, needed)
        if self.upper is not None:
            self._check_upper(X, y, c, groups, needed)

    def _check_perturbations(self) -> None:
        """Require perturbations for which the bounds are defined, or none."""
        unknown = "its perturbations are of an unknown norm or size"
        _require(self.noise_norm in (None, 1, 2, math.inf), unknown)  # None: a separator has no perturbations
        if self.noise != 0:
            _require(self.noise_norm is not None and self.noise >= Fraction(1, 2**900), unknown)
            plain = self.norm == 2 and self.nu is None and self.intercept != "penalized"
            _require(plain, "perturbations are only allowed with the 2-norm, without nu and without a penalized intercept")

    def _check_lower(self, X: Any, y: Any, c: list[Fraction], groups: list[list[int]], needed: Fraction | None) -> None:
        """Require that w proves the lower bound."""
        if self.w is None or self.lower is None:
            raise Rejected("it has no w for its lower bound")
        b = self._b_in_norm()
        weighted = [[i for i in group if c[i] > 0] for group in groups]
        if needed is None:
            lowest = self._lowest_scores(X, y, b, weighted)
        else:
            scores = self._scores(X, y, b)
            lowest = [_lowest_mean([(scores[i], c[i]) for i in group], needed) for group in weighted]
        least = _total(lowest) / len(groups)
        lower = self.lower
        if self.noise > 0 and self.noise_norm == 2:  # (lower + noise)|w| <= least
            lower += self.noise
        elif self.noise > 0:
            least -= self.noise * (max if self.noise_norm == 1 else sum)([abs(x) for x in self.w])
        proved = least > 0 and _bounds_norm(least / lower, [*self.w, b], self.norm, dual=True)
        _require(proved, f"w does not prove its lower bound {float(self.lower)!r}")

    def _check_upper(self, X: Any, y: Any, c: list[Fraction], groups: list[list[int]], needed: Fraction | None) -> None:
        """Require that the weights t prove the upper bound."""
        t = dict(zip(self.rows, self.t, strict=True))
        _require(all(c[i] > 0 for i in t), "it has weight on a row whose sample weight is zero")
        p: dict[int, Fraction] = {}
        for group in groups:
            inside = [i for i in group if i in t]
            mass = _total(t[i] for i in inside)
            _require(mass > 0, "its weights leave out a class")
            if needed is not None:
                _require(mass >= needed and all(t[i] <= c[i] for i in inside), "its weights are not within the caps of nu")
            p.update({i: t[i] / mass / len(groups) * y[i] for i in inside})
        u = self._weighted_sum(X, p)
        upper = self.upper or Fraction(0)
        stated = upper
        if self.noise > 0 and self.noise_norm == 2:  # the distance of u to a ball is |u| less its radius, or 0
            stated += self.noise
        elif self.noise > 0:
            u = _outside_ball(u, self.noise, self.noise_norm)
        _require(_bounds_norm(stated, u, self.norm, dual=False), f"p does not prove its upper bound {float(upper)!r}")

    def _lowest_scores(self, X: Sequence[Row], y: Sequence[int], b: Fraction, groups: list[list[int]]) -> list[Fraction]:
        """Return the lowest score of each group, exactly; floats tell which rows cannot have it."""
        found = []
        enclosed = [(near - error, near + error) for near, error in self._float_scores(X, y, b)]
        for group in groups:
            if not group:
                raise Rejected("no row of a class has weight")
            top = min(enclosed[i][1] for i in group)
            found.append(min(self._score(X, y, i, b) for i in group if not enclosed[i][0] > top))
        return found

    def _weighted_sum(self, X: Sequence[Row], p: Mapping[int, Fraction]) -> list[Fraction]:
        """Return sum_i p_i x_i, or sum_i p_i (x_i, 1) if the intercept is penalized; columns without any entry are left out."""
        total = [*_combination(X, p).values()]
        return [*total, _total(p.values())] if self.intercept == "penalized" else total

    def _b_in_norm(self) -> Fraction:
        """Return b if it counts in the norm, else 0."""
        return self.b if self.intercept == "penalized" else Fraction(0)

    # ---- witness, quasi-separation, overlap --------------------------------------------------------------------------

    def _check_witness(self, X: Sequence[Row], y: Sequence[int]) -> None:
        """Require that the weighted rows cancel, and with an intercept the weights of the classes as well."""
        _require(len(self.rows) > 0, "it has no rows")
        signed = {i: t * y[i] for i, t in zip(self.rows, self.t, strict=True)}
        for column, value in sorted(_combination(X, signed).items()):
            _require(value == 0, f"the weighted rows do not cancel in column {column}")
        _require(self.intercept == "none" or sum(signed.values()) == 0, "the weights of the two classes differ")

    def _check_quasi_separation(self, X: Sequence[Row], y: Sequence[int]) -> None:
        """Require a weak separator, and a witness whose rows span the rows on its plane."""
        on_plane = self._on_plane(X, y)
        self._check_witness(X, y)
        _require(self._spans(X, on_plane), "its rows do not span the rows on the plane of w")

    def _check_overlap(self, X: Sequence[Row], y: Sequence[int]) -> None:
        """Require that the rows of the certificate cancel and span all rows."""
        self._check_witness(X, y)
        _require(self._spans(X, range(len(X))), "its rows do not span all rows")

    def _on_plane(self, X: Sequence[Row], y: Sequence[int]) -> list[int]:
        """Return the rows on the plane of w; require that all others are strictly on their side, and that there are others."""
        _require(self.w is not None, "it has no w")
        _require(self.intercept != "none" or self.b == 0, "it has b although there is no intercept")
        enclosed = enumerate(self._float_scores(X, y, self.b))
        scores = [near if abs(near) > error else self._score(X, y, i, self.b) for i, (near, error) in enclosed]
        wrong = next((_data_row(X, i) for i, score in enumerate(scores) if score < 0), None)
        _require(wrong is None, f"row {wrong} is on the wrong side")
        _require(any(score > 0 for score in scores), "w separates nothing: every row is on its plane")
        return [i for i, score in enumerate(scores) if score == 0]

    def _spans(self, X: Sequence[Row], among: Iterable[int]) -> bool:
        """Return whether the rows of the certificate span the rows in `among`, by elimination; labels do not matter here."""
        echelon: dict[int, Row] = {}  # {column: a row whose first entry is a 1 in that column}
        for i in self.rows:
            rest = _reduced(self._with_constant(X[i]), echelon)
            if rest:
                first = min(rest)
                echelon[first] = {column: value / rest[first] for column, value in rest.items()}
        if len(echelon) == self.shape[1] + (self.intercept != "none"):
            return True
        return all(not _reduced(self._with_constant(X[i]), echelon) for i in among)

    def _with_constant(self, row: Row) -> Row:
        """Return (x_i, 1), or x_i without intercept."""
        return row if self.intercept == "none" else {**row, self.shape[1]: Fraction(1)}

    # ---- the same claims from float weights --------------------------------------------------------------------------

    def _check_verified_witness(self, X: Sequence[Row], y: Sequence[int]) -> None:
        """Require that the rows cancel with positive weights near those of the certificate."""
        self._check_cancellation(X, y, self.rows)

    def _check_verified_quasi_separation(self, X: Sequence[Row], y: Sequence[int]) -> None:
        """Require a weak separator, and a verified witness whose rows are on its plane and span the rows there."""
        on_plane = self._on_plane(X, y)
        _require(set(self.rows) <= set(on_plane), "one of its rows is not on the plane of w")
        self._check_cancellation(X, y, on_plane)

    def _check_verified_overlap(self, X: Sequence[Row], y: Sequence[int]) -> None:
        """Require the same as for a verified witness, and that its rows span all rows."""
        self._check_cancellation(X, y, range(len(X)))

    def _check_cancellation(self, X: Sequence[Row], y: Sequence[int], among: Iterable[int]) -> None:
        """Require that positive weights near t cancel the rows of the certificate, and that these span the rows in `among`."""
        columns = self.shape[1] + (self.intercept != "none")
        out = {relation[0][0] for relation in self.dependent if relation}
        _require(len(out) == len(self.dependent), "its dependent columns are not distinct")
        for relation in self.dependent:
            used = [column for column, _ in relation]
            plain = relation[0][1] != 0 and len(set(used)) == len(used) and max(used) < columns and not out & set(used[1:])
            _require(plain, "it does not express its dependent columns by the others")
            for i in among:
                row = self._with_constant(X[i])
                total = sum(row.get(j, 0) * m for j, m in relation)
                _require(total == 0, f"column {used[0]} is not the stated combination of other columns in row {i}")
        rows = [(y[i], self._with_constant(X[i])) for i in self.rows]
        # columns in which all rows of a witness are 0 cancel with any weights
        occupied = {j for _, row in rows for j, x in row.items() if x} if among is self.rows else {*range(columns)}
        kept = sorted(occupied - out)
        _require(len(rows) > len(kept), "it has too few rows")
        signed = [[sign * row.get(j, Fraction(0)) for j in kept] for sign, row in rows]
        _require(positive_solution(signed, self.t, self.progress), UNPROVED)

    # ---- optimum -----------------------------------------------------------------------------------------------------

    def _check_optimum(self, X: Sequence[Row], y: Sequence[Any]) -> None:
        """Require lower <= min 1/2|w|^2 + sum C_i l(z_i) <= upper, by w, b and the weights of rows that follow from them."""
        if self.w is None or self.loss is None or self.C is None:
            raise Rejected("it has no w, no loss or no C")
        _require(self.intercept != "none" or self.b == 0, "it has b although there is no intercept")
        _require(self.weights_hash is None or self.c is not None, self.weights_reason)
        if self.several:
            self._check_multinomial(X, self._class_numbers(y))
            return
        c, _ = self._row_constants([int(sign > 0) for sign in y])
        z = self._scores(X, y, self.b)
        if self.upper is not None:
            size = _total(v * v for v in [*self.w, self._b_in_norm()]) / 2
            value = size + _total(C * _loss_above(self.loss, score) for C, score in zip(c, z, strict=True) if C)
            _require(value <= self.upper, f"w does not prove its upper bound {float(self.upper)!r}")
        if self.lower is not None and self.lower > 0:
            found = self._dual_value(X, y, c, z)
            _require(found >= self.lower, f"w and the weights do not prove its lower bound {float(self.lower)!r}")

    def _row_constants(self, y: Sequence[int]) -> tuple[list[Fraction], list[Fraction]]:
        """Return C_i = C (s_i f) for each row, and the sum of these for each class.

        s_i is the sample weight and f the weight of the row's class, whose number is in y. The products are rounded to floats in
        this order, which is part of what the certificate means.
        """
        factors = [1.0] * len(self.classes) if self.class_weight is None else [float(factor) for factor in self.class_weight]
        sample = [1.0] * len(y) if self.c is None else [float(weight) for weight in self.c]
        c = [float(self.C) * (weight * factors[own]) for weight, own in zip(sample, y, strict=True)]
        _require(all(math.isfinite(value) for value in c), "C times a weight is not finite")
        _require(all(value >= 0 for value in c), "C, or C times a weight, is negative")
        exact = [Fraction(value) for value in c]
        masses = [_total(C for C, own in zip(exact, y, strict=True) if own == j) for j in range(len(factors))]
        _require(self.intercept != "free" or min(masses) > 0, "all rows of a class have weight zero")
        return exact, masses

    def _dual_value(self, X: Sequence[Row], y: Sequence[int], c: list[Fraction], z: list[Fraction]) -> Fraction:
        """Return the lower bound sum C_i g(t_i/C_i) - 1/2|sum t_i y_i x_i|^2 for weights t that are allowed."""
        t = self._dual_weights(c, z)
        if self.intercept == "free":  # the heavier class is scaled down, so that both have the same mass
            masses = {sign: _total(weight for weight, own in zip(t, y, strict=True) if own == sign) for sign in (1, -1)}
            least = min(masses.values())
            _require(least > 0, "a class has no weight")
            t = [weight * least / masses[sign] for weight, sign in zip(t, y, strict=True)]
        v = self._weighted_sum(X, {i: weight * y[i] for i, weight in enumerate(t) if weight})
        paid = _total(_conjugate_below(str(self.loss), weight, C) for weight, C in zip(t, c, strict=True) if weight)
        return paid - _total(value * value for value in v) / 2

    def _dual_weights(self, c: list[Fraction], z: list[Fraction]) -> list[Fraction]:
        """Return the weights t that follow from the scores z, or are stated: 0 if C_i = 0, and at most C_i.

        The squared hinge has no such upper limit.
        """
        t = [C * _dual_weight(str(self.loss), score) if C else C for C, score in zip(c, z, strict=True)]
        for i, weight in zip(self.rows, self.t, strict=True):
            t[i] = weight if c[i] else c[i]
        return t if self.loss == "squared_hinge" else [*map(min, t, c)]

    def _check_multinomial(self, X: Sequence[Row], y: Sequence[int]) -> None:
        """Require the interval of a multinomial loss; y has the number of each row's class."""
        _require(not self.has_b and not self.rows, "it has b beside w, or weights of rows")
        c, N = self._row_constants(y)
        rows, each = [*map(self._with_constant, X)], self.shape[1] + (self.intercept != "none")
        planes = [self.w[each * j : each * (j + 1)] for j in range(len(N))]
        kept = [i for i, C in enumerate(c) if C]
        s = {i: [_dot(rows[i], plane) for plane in planes] for i in kept}
        if self.upper is not None:
            counted = self.shape[1] if self.intercept == "free" else each
            size = _total(v * v for plane in planes for v in plane[:counted]) / 2
            value = size + _total(c[i] * _log_sum_above(s[i], y[i]) for i in kept)
            _require(value <= self.upper, f"w does not prove its upper bound {float(self.upper)!r}")
        if self.lower is not None and self.lower > 0:
            found = self._multinomial_dual_value(rows, y, c, N, {i: _softmax(s[i]) for i in kept})
            _require(found >= self.lower, f"w does not prove its lower bound {float(self.lower)!r}")

    def _multinomial_dual_value(
        self, rows: Sequence[Row], y: Sequence[int], c: list[Fraction], N: list[Fraction], q: Mapping[int, list[Fraction]]
    ) -> Fraction:
        """Return sum C_i H(q_i) - 1/2|V|^2 for the q of the rows with C_i > 0.

        With a free intercept every q_i is mixed with one q for all rows, so that sum C_i q_i = N. The entropy is concave, so that
        (1 - share) H(q_i) is a lower bound on that of the mixture.
        """
        share, mix = Fraction(0), [Fraction(0)] * len(N)  # the share of the common q, and that q times its share
        if self.intercept == "free":
            M = [_total(c[i] * own[j] for i, own in q.items()) for j in range(len(N))]
            share = max(Fraction(0), *(1 - own / mass for own, mass in zip(N, M, strict=True)))
            mix = [(own - (1 - share) * mass) / sum(N) for own, mass in zip(N, M, strict=True)]
        paid = (1 - share) * _total(c[i] * _entropy_below(own) for i, own in q.items())
        every, size = _combination(rows, dict(enumerate(c))), Fraction(0)
        for j, mixed in enumerate(mix):
            own = _combination(rows, {i: c[i] for i in q if y[i] == j})
            by_q = _combination(rows, {i: c[i] * q[i][j] for i in q})
            for column, total in every.items():
                v = own.get(column, 0) - (1 - share) * by_q.get(column, 0) - mixed * total
                size += v * v if column < self.shape[1] or self.intercept != "free" else 0
        return paid - size / 2

    # ---- scores ------------------------------------------------------------------------------------------------------

    def _score(self, X: Sequence[Row], y: Sequence[int], i: int, b: Fraction) -> Fraction:
        """Return y_i (x_i.w + b) exactly."""
        return y[i] * (_dot(X[i], self.w or []) + b)

    def _scores(self, X: Sequence[Row], y: Sequence[int], b: Fraction) -> list[Fraction]:
        """Return y_i (x_i.w + b) of every row exactly."""
        return [self._score(X, y, i, b) for i in range(len(y))]

    def _float_scores(self, X: Sequence[Row], y: Sequence[int], b: Fraction) -> Iterator[tuple[float, float]]:
        """Yield the score of each row in floats and a bound on its error, which is infinite if floats cannot be used.

        Each of the d products and of the additions has an error of at most 2^-53 times the sum of sizes, or 2^-1074. The bound
        is more than twice the error of d products and d additions.
        """
        try:
            w, shift = [float(v) for v in self.w or []], float(b)
            exact = all(map(operator.eq, w, self.w or [])) and shift == b
            size = math.fsum(map(abs, w))
        except OverflowError:
            exact = False
        if not (exact and isinstance(X, Rows)):
            yield from ((0.0, math.inf) for _ in y)
            return
        share, least = (len(w) + 10) * 2.0**-52, (len(w) + 10) * 1e-322
        for i, sign in enumerate(y):
            if i % 50_000 == 0:
                self.progress(f"row {i:,} of {len(y):,}")
            row = X.plain(i)
            try:
                near = sum(map(operator.mul, row, w)) + shift
                error = share * (max(max(row), -min(row)) * size + abs(shift)) + least
            except (OverflowError, ValueError):
                near, error = 0.0, math.inf
            if not (-1e300 < near < 1e300 and error < 1e300):  # something may have overflowed
                near, error = 0.0, math.inf
            elif abs(near) <= error:  # a sharper bound, which helps if columns have very different sizes
                error = share * (math.fsum(map(abs, map(operator.mul, row, w))) + abs(shift)) + least
            yield sign * near, error


def _require(truth: bool, reason: str) -> None:
    """Raise Rejected with this reason unless the condition is true."""
    if not truth:
        raise Rejected(reason)


def _rounded_decimals(value: Fraction | None, up: bool) -> str:
    """Return a bound in decimal digits, rounded up or down so that it stays true."""
    if value is None:
        return "infinity" if up else "0"
    rounding = decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR
    with _digits(50, rounding):
        exact = _decimal(value)
    return f"{float(decimal.Context(prec=8, rounding=rounding).plus(exact)):.8g}"


# ---- kinds and fields ------------------------------------------------------------------------------------------------

# For each kind: how its numbers are written, and the method that checks it.
KINDS: dict[str, tuple[Any, Any]] = {
    "separator": (_float, Claim._check_separator),
    "bracket": (_float, Claim._check_bracket),
    "witness": (_integer, Claim._check_witness),
    "quasi-separation": (_integer, Claim._check_quasi_separation),
    "overlap": (_integer, Claim._check_overlap),
    "verified-witness": (_float, Claim._check_verified_witness),
    "verified-quasi-separation": (_float, Claim._check_verified_quasi_separation),
    "verified-overlap": (_float, Claim._check_verified_overlap),
    "optimum": (_float, Claim._check_optimum),
}
_MARGINS = {"separator", "bracket"}
_INTERVALS = _MARGINS | {"optimum"}
_PLANES = _INTERVALS | {"quasi-separation", "verified-quasi-separation"}
# For each field: how a value is read (None: as the numbers of the kind), whether there is "one" value or a list of a length with
# this name, and which kinds have the field.
FIELDS: dict[str, tuple[Any, str, Any]] = {
    "kind": (_text, "one", KINDS),
    "intercept": (_text, "one", KINDS),
    "classes": (lambda label: label, "classes", KINDS),
    "shape": (_count, "2", KINDS),
    "w": (None, "plane", _PLANES),
    "b": (None, "one", _PLANES),
    "rows": (_count, "any", KINDS),
    "weights": (None, "rows", KINDS),
    "lower": (_float, "one", _INTERVALS),
    "upper": (_float_or_inf, "one", _INTERVALS),
    "norm": (_float_or_inf, "one", _MARGINS),
    "nu": (_float, "one", _MARGINS),
    "sample_weight": (_float, "n", _INTERVALS),
    "data_hash": (_text, "one", KINDS),
    "dependent": (_relation, "any", {"verified-witness", "verified-quasi-separation", "verified-overlap"}),
    "model": (_model, "one", KINDS),
    "about": (_about, "one", KINDS),
    "dropped": (_text, "any", KINDS),
    "loss": (_loss, "one", {"optimum"}),
    "C": (_float, "one", {"optimum"}),
    "class_weight": (_float, "classes", {"optimum"}),
    "weights_hash": (_text, "one", {"optimum"}),
    "robust": (_float, "one", {"bracket"}),
    "robust_norm": (_float_or_inf, "one", {"bracket"}),
}
MAY_BE_NULL = {"w", "b", "lower", "upper", "nu", "sample_weight", "data_hash", "about"}
MAY_BE_NULL |= {"loss", "C", "class_weight", "weights_hash"}
# In the first format every certificate has the fields of all its kinds. ADDED has the values of fields that were added later.
FIRST_KINDS = {"separator", "bracket", "witness", "quasi-separation", "overlap"}
TWO = "0x1.0000000000000p+1"
ADDED: dict[str, Any] = {"model": "logistic", "about": None, "dropped": [], "robust": "0x0.0p+0", "robust_norm": TWO}
FIRST_FIELDS = {name for name, (_, _, kinds) in FIELDS.items() if FIRST_KINDS & {*kinds}} - ADDED.keys()
SEVERAL_CLASSES = ("multinomial", "ordinal")


def _in_second_format(content: dict[str, Any]) -> dict[str, Any]:
    """Return the certificate in the second format; require the fields that its kind has, and no others."""
    first = content["format"] == FORMATS[0]
    kind, intercept = _text(content["kind"]), _text(content["intercept"])
    _one_of("kind", kind, FIRST_KINDS if first else KINDS)
    _one_of("intercept", intercept, ("free", "penalized", "none"))
    known = {name for name, (_, _, kinds) in FIELDS.items() if kind in kinds}
    wanted, found = {"format", "class_type"} | (FIRST_FIELDS if first else known), {*content}
    if found != wanted:
        raise ValueError(f"missing fields: {sorted(wanted - found)}; unknown fields: {sorted(found - wanted)}")
    return {name: value for name, value in ADDED.items() if name in known} | content


def _read_field(name: str, value: Any, kind: str, sizes: Mapping[str, int | None]) -> Any:
    """Return the value of a field of a certificate of this kind, or None if it has none."""
    read, many, kinds = FIELDS[name]
    if kind not in kinds:  # the first format writes every field
        if value not in (None, TWO if name == "norm" else None):
            raise ValueError(f"it has {name}, which its kind does not have")
        return None
    if value is None and name in MAY_BE_NULL:
        return None
    read = read or KINDS[kind][0]
    return read(value) if many == "one" else [read(item) for item in _list(value, sizes[many])]


# ---- arithmetic: sums and elimination --------------------------------------------------------------------------------


def _total(values: Iterable[Fraction]) -> Fraction:
    """Return the sum as a fraction, also if there are no values."""
    return sum(values, Fraction(0))


def _dot(row: Row, w: Sequence[Fraction]) -> Fraction:
    """Return x.w for a row x."""
    return _total(value * w[j] for j, value in row.items())


def _combination(X: Sequence[Row], p: Mapping[int, Fraction]) -> dict[int, Fraction]:
    """Return sum_i p_i x_i as {column: value}."""
    total: dict[int, Fraction] = {}
    for i, weight in p.items():
        for column, value in X[i].items():
            total[column] = total.get(column, Fraction(0)) + weight * value
    return total


def _reduced(row: Row, echelon: Mapping[int, Row]) -> dict[int, Fraction]:
    """Return what remains of a row after subtracting multiples of the echelon rows, so that their first columns become 0."""
    rest = dict(row)
    while True:
        first = min((column for column in rest if column in echelon), default=None)
        if first is None:
            return rest
        factor = rest[first]
        for column, value in echelon[first].items():
            new = rest.get(column, Fraction(0)) - factor * value
            if new:
                rest[column] = new
            else:
                rest.pop(column, None)


def _lowest_mean(scores: list[tuple[Fraction, Fraction]], mass: Fraction) -> Fraction:
    """Return the least mean of scores with this mass, for pairs (score, cap): the lowest scores are filled up to their caps."""
    if not scores:
        raise Rejected("no row of a class has weight")
    total, left = Fraction(0), mass
    for score, cap in sorted(scores):
        part = min(cap, left)
        total, left = total + part * score, left - part
    return total / mass


# ---- arithmetic: norms -----------------------------------------------------------------------------------------------

DOUBLINGS = 4  # how many precisions a norm is compared with a bound in, each twice the one before: 480 digits at most
LONGEST_POWER = 10**6  # the largest number of bits of a power that is computed as a fraction


def _bounds_norm(bound: Fraction, x: list[Fraction], norm: Fraction | None, dual: bool) -> bool:
    """Return whether bound >= |x|_norm, or bound >= |x|_q with 1/norm + 1/q = 1 if `dual`; a norm of None is infinity."""
    sizes = [abs(value) for value in x if value != 0]
    if not sizes or bound <= 0:
        return bound >= 0 and not sizes
    if norm is None or norm == 1:
        return bound >= (sum(sizes) if dual == (norm is None) else max(sizes))
    if norm == 2:
        return bound * bound >= sum(size * size for size in sizes)
    return _powers_at_most_one([size / bound for size in sizes], norm / (norm - 1) if dual else norm)


def _powers_at_most_one(shares: list[Fraction], power: Fraction) -> bool:
    """Return whether the powers of these positive numbers, with an exponent above 1, add up to at most 1."""
    if len(shares) == 1 or max(shares) >= 1:
        return len(shares) == 1 and shares[0] <= 1
    for k in range(DOUBLINGS):
        digits = (60 + len(str(int(power)))) << k
        with _digits(digits):
            exponent = _decimal(power)
            total = sum((_decimal(share) ** exponent for share in shares), decimal.Decimal(0))
            # Rounding r and s to this many digits changes r^s < 1 by a relative error of s units in the last place and by some
            # units of 1; r^s itself and the sums are rounded as well. Ten times that is more than enough.
            error = 10 * len(shares) * (exponent + 10) * decimal.Decimal(10) ** (1 - digits)
            if abs(total - 1) > error:
                return total < 1
        rational = _sum_of_powers(shares, power) if k == 0 else None
        if rational is not None:
            return rational <= 1
    return False


def _sum_of_powers(shares: list[Fraction], power: Fraction) -> Fraction | None:
    """Return the sum of r^(a/b) for these 0 < r < 1, with power = a/b, as a fraction.

    None if an r is not the b-th power of a fraction, or if r^(a/b) has more than LONGEST_POWER bits.
    """
    total = Fraction(0)
    for share in shares:
        bits = share.denominator.bit_length()  # the denominator is at least 2, and so is its b-th root if it has one
        if power.denominator >= bits or power * bits > LONGEST_POWER:
            return None
        root = Fraction(_root(share.numerator, power.denominator), _root(share.denominator, power.denominator))
        if root**power.denominator != share:
            return None
        total += root**power.numerator
    return total


def _root(value: int, k: int) -> int:
    """Return the largest integer r with r^k <= value, by Newton's method from above."""
    r = 1 << -(-value.bit_length() // k)
    while True:
        closer = ((k - 1) * r + value // r ** (k - 1)) // k
        if closer >= r:
            return r
        r = closer


def _outside_ball(u: list[Fraction], noise: Fraction, norm: Any) -> list[Fraction]:
    """Return the sizes of u minus the nearest point whose norm, 1 or infinity, is at most `noise`."""
    sizes = [abs(x) for x in u]
    if norm == math.inf:
        return [max(size - noise, Fraction(0)) for size in sizes]
    level, total = Fraction(0), Fraction(0)  # the nearest point has what is above this level
    for k, size in enumerate(sorted(sizes, reverse=True), 1):
        total += size
        level = max(level, (total - noise) / k)
    return [min(size, level) for size in sizes]


def _digits(digits: int, rounding: str | None = None) -> Any:
    """Return a context in which decimal numbers have this many digits and exponents of any size."""
    return decimal.localcontext(decimal.Context(digits, rounding, decimal.MIN_EMIN, decimal.MAX_EMAX))


def _decimal(value: Fraction) -> decimal.Decimal:
    """Return a fraction as a decimal number, rounded as the context says."""
    return decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)


# ---- arithmetic: the theorem behind verified certificates ------------------------------------------------------------

UNPROVED = "its weights do not prove that its rows cancel with positive weights"
# The number of binary digits after the point with which M and Q are stored as integers, and the one that is tried next for
# matrices of at most this many entries: small entries beside large ones are lost with few digits.
FEW_DIGITS, MANY_DIGITS, FEW_ENTRIES = 70, 400, 1 << 12
# How much less the last row counts than the first when a basis is chosen: rows that cancel are equally large, and rounding
# should not decide between them. Small matrices are tried with the opposite preference, too.
PREFERENCE = 2.0**-6


def positive_solution(rows: list[list[Fraction]], t: list[Fraction], progress: Any = lambda words: None) -> bool:
    """Return whether the theorem of `verified-witness` proves that some x > 0 near t has sum_i x_i rows_i = 0."""
    if not rows[0]:
        return True
    r, k = len(rows[0]), len(rows)
    ways = [(digits, preference) for preference in (PREFERENCE, -PREFERENCE) for digits in (FEW_DIGITS, MANY_DIGITS)]
    for digits, preference in ways if r * k <= FEW_ENTRIES else ways[:1]:
        try:
            scaled = _scaled(rows, t, digits, preference)
        except OverflowError:
            return False
        sums = [sum(map(abs, column)) for column in zip(*scaled.N, strict=True)]
        heavy = sorted(range(k), key=lambda i: -sums[i])[: r + r // 4 + 8]  # usually enough for a basis, and faster than all
        if any(_theorem_holds(scaled, chosen, progress) for chosen in ([heavy, [*range(k)]] if len(heavy) < k else [heavy])):
            return True
    return False


class Scaled(NamedTuple):
    """The scaled rows as columns of M, in units of 2^-digits, and their weights p.

    N_ji is about M_ji near_i in floats, where near_i is p_i times a factor near 1 (see `PREFERENCE`), and R is the largest entry
    of |Mp|, exactly.
    """

    M: list[list[int]]
    N: list[list[float]]
    near: list[float]
    p: list[Fraction]
    R: Fraction
    digits: int


def _scaled(rows: list[list[Fraction]], t: list[Fraction], digits: int, preference: float) -> Scaled:
    """Return M_ji = a_ij 2^(-e_i - f_j) and p_i = s_i 2^e_i, for the integer rows a and their weights s.

    The e_i bring the rows to a size of about 1, and then the f_j bring the largest M_ji p_i of each column j to about 1.
    """
    a, s_whole, denominator = _in_integers(rows, t)
    e = [max(map(abs, row)).bit_length() for row in a]
    most = max(own + weight.bit_length() for own, weight in zip(e, s_whole, strict=True)) - denominator.bit_length()
    e = [own - most for own in e]
    p = [Fraction(weight, denominator) * _power(own) for weight, own in zip(s_whole, e, strict=True)]
    p_near = [*map(float, p)]
    sizes = [[_approximate(abs(v), -own) * near for v in row] for row, own, near in zip(a, e, p_near, strict=True)]
    f = [math.frexp(max(column))[1] for column in zip(*sizes, strict=True)]
    M = [[_shift(row[j], digits - own - high) for row, own in zip(a, e, strict=True)] for j, high in enumerate(f)]  # rounded
    p_near = [near * (1 - preference * i / len(p)) for i, near in enumerate(p_near)]
    N = [[math.ldexp(v * near, -digits) for v, near in zip(row, p_near, strict=True)] for row in M]
    rests = (sum(map(operator.mul, column, s_whole)) for column in zip(*a, strict=True))
    R = max(abs(rest) * _power(-high) for rest, high in zip(rests, f, strict=True)) / denominator
    return Scaled(M, N, p_near, p, R, digits)


def _in_integers(rows: list[list[Fraction]], t: list[Fraction]) -> tuple[list[list[int]], list[int], int]:
    """Return each row times the least number that makes it integer, the weights divided by these numbers, and a denominator.

    The weights are returned as numerators over that common denominator.
    """
    common = [math.lcm(*(value.denominator for value in row)) for row in rows]
    s = [weight / own for weight, own in zip(t, common, strict=True)]
    denominator = math.lcm(*(weight.denominator for weight in s))
    a = [[v.numerator * (own // v.denominator) for v in row] for row, own in zip(rows, common, strict=True)]
    return a, [weight.numerator * (denominator // weight.denominator) for weight in s], denominator


def _theorem_holds(scaled: Scaled, chosen: list[int], progress: Any) -> bool:
    """Return whether the theorem holds with a Q that is 0 except for a basis among the chosen columns of M."""
    found = _inverse([[row[i] for i in chosen] for row in scaled.N], progress)
    if found is None:
        return False
    basis, inverse = [chosen[i] for i in found[0]], found[1]  # the columns of N in `basis` times `inverse` are I, about
    p, near = [scaled.p[i] for i in basis], [scaled.near[i] for i in basis]
    try:
        Q = [[int(math.ldexp(value * own, scaled.digits)) for value in row] for own, row in zip(near, inverse, strict=True)]
    except OverflowError:
        return False
    sums = [sum(map(abs, row)) for row in Q]
    distance = _distance_from_identity([[row[i] for i in basis] for row in scaled.M], Q, 1 << 2 * scaled.digits, progress)
    # M_ji was rounded by less than a unit, which changes the sum of a row of |I - MQ| by less than the sum of all |Q_ij|
    D = Fraction(distance + sum(sums), 1 << 2 * scaled.digits)
    if D >= 1:
        return False
    factor = scaled.R / (1 - D) / (1 << scaled.digits)
    return all(total * factor < own for total, own in zip(sums, p, strict=True))


def _distance_from_identity(M: list[list[int]], Q: list[list[int]], one: int, progress: Any) -> int:
    """Return the largest sum of a row of |I - MQ|, in the units of MQ, in which `one` is 1.

    Each row of Q is packed into one large integer, with a slot for each entry, so that a row of MQ takes one product of integers
    for each row of Q.
    """
    r = len(M)
    largest = max(sum(map(abs, row)) for row in M) * max(max(map(abs, row)) for row in Q) + one
    size = largest.bit_length() // 8 + 1  # the bytes of a slot, which can hold twice the largest number
    packed, half = [_packed(row, 8 * size) for row in Q], 1 << (8 * size - 1)
    offset = _packed([half] * r, 8 * size)
    distance = 0
    for j, row in enumerate(M):
        if j % 50 == 0:
            progress(f"checking an inverse: {j} of {r} columns")
        product = (sum(map(operator.mul, row, packed)) + offset).to_bytes(size * r, "little")
        entries = [int.from_bytes(product[at : at + size], "little") - half for at in range(0, size * r, size)]
        entries[j] -= one
        distance = max(distance, sum(map(abs, entries)))
    return distance


def _inverse(N: list[list[float]], progress: Any) -> tuple[list[int], list[list[float]]] | None:
    """Return as many columns of N as it has rows, and the inverse of that square matrix, with one row for each column.

    By Gauss-Jordan elimination in place: row c is solved for the unused column of its largest entry. None if floats fail.
    """
    N, basis = [*N], []
    taken = [False] * len(N[0])
    for c in range(len(N)):
        if c % 50 == 0:
            progress(f"inverting a matrix: {c} of {len(N)} rows")
        free = [0.0 if used else abs(value) for used, value in zip(taken, N[c], strict=True)]
        i = max(range(len(free)), key=free.__getitem__)
        if not 0.0 < abs(N[c][i]) < math.inf:
            return None
        basis.append(i)
        taken[i] = True
        _eliminate(N, c, i)
    # N[c][basis[l]] is now the entry of the inverse for the column basis[c] and the row l
    inverse = [[row[i] for i in basis] for row in N]
    return (basis, inverse) if all(map(math.isfinite, (value for row in inverse for value in row))) else None


def _eliminate(N: list[list[float]], c: int, i: int) -> None:
    """Solve row c for column i, and substitute that into the other rows."""
    pivot, N[c][i] = N[c][i], 1.0
    N[c] = top = [value / pivot for value in N[c]]
    for other in range(len(N)):
        factor = N[other][i]
        if other != c and factor != 0.0:
            N[other][i] = 0.0
            N[other] = [a - factor * b for a, b in zip(N[other], top, strict=True)]


def _packed(values: list[int], bits: int) -> int:
    """Return the sum of values[l] 2^(bits l), by adding pairs of neighbours."""
    while len(values) > 1:
        pairs = zip(values[::2], [*values[1::2], 0], strict=False)
        values, bits = [low + (high << bits) for low, high in pairs], 2 * bits
    return values[0]


def _approximate(value: int, exponent: int) -> float:
    """Return value 2^exponent as a float, without its lowest bits if it has more than 60."""
    lost = max(value.bit_length() - 60, 0)
    return math.ldexp(value >> lost, lost + exponent)


def _shift(value: int, digits: int) -> int:
    """Return value 2^digits, rounded down to an integer."""
    return value << digits if digits >= 0 else value >> -digits


def _power(exponent: int) -> Fraction:
    """Return 2^exponent."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


# ---- arithmetic: losses ----------------------------------------------------------------------------------------------

DIGITS = 70  # digits of exp and ln; those of the decimal module are correctly rounded
SLACK = Fraction(1, 10**45)  # exceeds the relative error of what is computed from them
FAR, FARTHEST = 40, 2000  # beyond FAR e^-z replaces log(1 + e^-z) and 1/(1 + e^z); e^x is never computed below e^-FARTHEST
SMALL = Fraction(1, 10**20)  # below this q replaces -ln(1 - q), and x replaces log(1 + x)


def _loss_above(loss: str, z: Fraction) -> Fraction:
    """Return an upper bound on the loss at the score z.

    For large |z| it uses log(1 + x) <= x, whose relative error is at most x. Otherwise log(1 + x) is at least 1e-18, so that
    SLACK exceeds the relative error.
    """
    if loss == "logistic":
        small = _exp(-abs(z))
        return (max(-z, Fraction(0)) + (small if abs(z) > FAR else _log(1 + small))) * (1 + SLACK)
    short = max(1 - z, Fraction(0))
    return short if loss == "hinge" else short * short


def _dual_weight(loss: str, z: Fraction) -> Fraction:
    """Return a dual weight a for the score z: any a in the domain of g proves a bound; minus the slope of the loss is best."""
    if loss == "hinge":
        return Fraction(int(z < 1))
    if loss == "squared_hinge":
        return 2 * max(1 - z, Fraction(0))
    if abs(z) > FAR:
        return _exp(-z) if z > 0 else Fraction(1)
    return _rounded_down(1 / (1 + _exp(z)))


def _conjugate_below(loss: str, weight: Fraction, C: Fraction) -> Fraction:
    """Return a lower bound on C g(weight/C).

    For the logistic loss g is the entropy of (q, 1 - q), which is symmetric; and (1 - q)(-ln(1 - q)) >= (1 - q) q.
    """
    if loss == "hinge":
        return weight
    if loss == "squared_hinge":
        return weight - weight * weight / (4 * C)
    q = min(weight / C, 1 - weight / C)
    if q <= 0:
        return Fraction(0)
    other = q if q < SMALL else -_log(1 - q)
    return C * (-q * _log(q) + (1 - q) * other) * (1 - SLACK)


def _log_sum_above(s: Sequence[Fraction], own: int) -> Fraction:
    """Return an upper bound on log sum_c e^(s_c - s_own), as top - s_own + log(1 + the other terms relative to the top)."""
    top = max(s)
    rest = _total(_exp(value - top) for value in s) - 1
    return (top - s[own] + (rest if rest < SMALL else _log(1 + rest))) * (1 + SLACK)


def _softmax(s: Sequence[Fraction]) -> list[Fraction]:
    """Return numbers near e^(s_c) / sum e^s that add up to exactly 1; any such nonnegative numbers prove a bound."""
    top = s.index(max(s))
    e = [_exp(value - s[top]) for value in s]
    total = _total(e)
    q = [_rounded_down(value / total) for value in e]
    q[top] = 1 - _total(q[:top] + q[top + 1 :])
    return q


def _entropy_below(q: Sequence[Fraction]) -> Fraction:
    """Return a lower bound on -sum q ln q; for q near 1 it uses -ln(1 - x) >= x."""
    total = Fraction(0)
    for value in q:
        if value > 0:
            total += value * (1 - value if 1 - value < SMALL else -_log(value))
    return total * (1 - SLACK)


def _exp(x: Fraction) -> Fraction:
    """Return e^x with DIGITS digits, for x <= FAR; at least e^-FARTHEST."""
    with _digits(DIGITS):
        return Fraction(_decimal(max(x, Fraction(-FARTHEST))).exp())


def _log(x: Fraction) -> Fraction:
    """Return ln x with DIGITS digits."""
    with _digits(DIGITS):
        return Fraction(_decimal(x).ln())


def _rounded_down(value: Fraction) -> Fraction:
    """Return a binary fraction with 4 DIGITS significant bits or so that is not above the value."""
    digits = 4 * DIGITS + value.denominator.bit_length() - value.numerator.bit_length()
    return Fraction((value.numerator << digits) // value.denominator, 1 << digits)


# ---- the data --------------------------------------------------------------------------------------------------------


class Rows(Sequence[Row]):
    """Rows as fractions, converted when they are needed.

    `given` has the rows as they were passed, and `exact` rows that are known as fractions; small data is remembered there. Only
    rows that were not in `exact` at the start are sequences of Python's floats and integers (see `plain`).
    """

    def __init__(self, given: Sequence[Any], exact: dict[int, Row], width: int) -> None:
        self.given, self.exact, self.width, self.other = given, exact, width, frozenset(exact)
        self.remember = len(given) * width <= REMEMBERED
        self.packer = struct.Struct("<q" + "qd" * min(width, WIDEST))
        self.slots: list[Any] = [width, *(part for j in range(min(width, WIDEST)) for part in (j, 0.0))]

    def __len__(self) -> int:
        return len(self.given)

    def __getitem__(self, i: Any) -> Any:
        row = self.exact.get(i)
        if row is None:
            row = {j: value for j, value in enumerate(map(_as_fraction, self.given[i])) if value}
            if self.remember:
                self.exact[i] = row
        return row

    def plain(self, i: int) -> Sequence[Any]:
        """Return the floats and integers of a row as they were given, or an empty sequence if it consists of something else."""
        return () if i in self.other else self.given[i]

    def packed(self, i: int) -> bytes:
        """Return the bytes of a row that are hashed: the number of nonzero entries, then the column and the value of each."""
        row = self.plain(i)
        if len(row) == self.width <= WIDEST and 0 not in row:
            self.slots[2::2] = row
            return self.packer.pack(*self.slots)
        entries = [(j, float(value)) for j, value in sorted(self[i].items())]
        return struct.pack("<q" + "qd" * len(entries), len(entries), *(part for pair in entries for part in pair))


class ModelRows(Sequence[Row]):
    """The rows that a model makes from the data, as the beginning of this file defines them.

    `places` has for each of them the row of the data, followed by: the class of the row and another class (multinomial); the
    threshold and whether it is the one above (ordinal); the sign and 0 (poisson).
    """

    def __init__(self, model: str, constant: bool, X: Sequence[Row], y: Sequence[int], classes: int) -> None:
        self.X, self.constant, self.classes, self.model = X, constant, classes, model
        if model == "multinomial":
            self.places = [(i, c, j) for i, c in enumerate(y) for j in range(classes) if j != c]
        elif model == "ordinal":
            self.places = [
                (i, c - 1 + above, above) for i, c in enumerate(y) for above in (0, 1) if 0 <= c - 1 + above < classes - 1
            ]
        else:
            self.places = [(i, sign, 0) for i, c in enumerate(y) for sign in ((1, -1) if c else (-1,))]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, at: Any) -> Any:
        i, first, second = self.places[at]
        x = self.X[i]
        if self.model == "ordinal":
            sign = -1 if second else 1
            return {first: Fraction(-sign), **{self.classes - 1 + j: sign * value for j, value in x.items()}}
        z = {0: Fraction(1), **{j + 1: value for j, value in x.items()}} if self.constant else dict(x)
        if self.model == "poisson":
            return {j: first * value for j, value in z.items()}
        width = self.X.width + self.constant  # type: ignore[attr-defined]
        blocks = ((first, 1), (second, -1))
        return {(block - 1) * width + j: sign * value for block, sign in blocks if block for j, value in z.items()}


def _data_row(X: Sequence[Row], i: int) -> int:
    """Return the row of the data that row i of X comes from."""
    return X.places[i][0] if isinstance(X, ModelRows) else i


def _rows(X: Iterable[Any], d: int) -> tuple[Rows, int]:
    """Return the rows and the number of columns; rows as {column: value} have d columns, or more if an entry is beyond these."""
    given = X if isinstance(X, (list, tuple, NpyRows)) else list(X)
    exact: dict[int, Row] = {}
    lengths, last = set(), d - 1
    for i, row in enumerate(given):
        if type(row) in (list, tuple) and _has_finite_sum(row):
            lengths.add(len(row))
            continue
        j: Any = "?"
        try:
            entries = {}
            for j, value in row.items() if isinstance(row, Mapping) else enumerate(row):
                entries[operator.index(j)] = _as_fraction(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise BadInput(f"the entry of row {i} in column {j} is not a finite number: {error}") from None
        if min(entries, default=0) < 0:
            raise BadInput(f"row {i} has an entry in the column {min(entries)}")
        last = max([last, *entries])
        if not isinstance(row, Mapping):
            lengths.add(len(entries))
        exact[i] = {j: v for j, v in entries.items() if v}
    width = max(lengths, default=last + 1)
    if not given or width == 0:
        raise BadInput(f"the data has {len(given)} rows and {width} columns; at least one of each is needed")
    if min(lengths, default=width) != width:
        raise BadInput(f"some rows have {min(lengths)} entries and others {width}")
    return Rows(given, exact, width), width


def _has_finite_sum(row: Sequence[Any]) -> bool:
    """Return whether all entries are finite Python numbers, as far as their sum shows; False if it leaves doubt."""
    try:
        total = sum(row)
        return type(total) in (float, int) and math.isfinite(total)
    except (TypeError, OverflowError):
        return False


def _as_fraction(value: Any) -> Fraction:
    """Return an integer, a fraction or a float exactly, and text as the float that Python reads it as."""
    if isinstance(value, Fraction):
        return value
    try:
        return Fraction(operator.index(value))
    except TypeError:
        return Fraction(float(value))


def _labels(y: Iterable[Any], n: int, classes: list[Any], model: str = "logistic", several: bool = False) -> list[Any]:
    """Return the labels as a list, after checking them: one for each row, all text or all numbers, and of enough classes.

    There must be two classes, or at least two for a model or a loss of several classes. Labels that are all among `classes` will
    do as well, and so will 0 beside the classes -1 and 1. For a Poisson model the labels are counts.
    """
    labels = list(y)
    if len(labels) != n:
        raise BadInput(f"there are {n} rows and {len(labels)} labels")
    for i, label in enumerate(labels):
        if not _is_label(label):
            raise BadInput(f"the label of row {i} is {label!r}; every row needs a label, text or a number")
    if model == "poisson":
        if any(isinstance(label, str) or not 0 <= label < math.inf for label in labels):
            raise BadInput("counts must be nonnegative finite numbers")
        return labels
    if len({isinstance(label, str) for label in labels}) > 1:
        raise BadInput("the labels mix text and numbers")
    found = len(set(labels))
    if several or model in SEVERAL_CLASSES:
        enough = found >= 2
    else:
        enough = found == 2 or set(labels) <= set(classes) or _zero_is_left_out(labels, classes)
    if not enough:
        raise BadInput(
            f"the data has {found} class{'es' * (found > 1)}; "
            f"the certificate is about two, {classes[0]!r} and {classes[1]!r}: pass only their rows"
        )
    return labels


def other_classes(classes: Sequence[Any], found: Collection[Any]) -> str:
    """Return what to do about data that has all `classes` of a claim and others; empty if that is not the case."""
    others = sorted({*found} - {*classes}, key=str) if {*classes} <= {*found} else []
    if not others:
        return ""
    named = f"{', '.join(map(repr, others[:3]))}{', ...' if len(others) > 3 else ''}"
    return (
        f"it is about {len(classes)} classes only, and the data also has {named}: pass only their rows "
        "(a fit leaves out a class whose rows all have weight zero)"
    )


def _is_label(value: Any) -> bool:
    """Return whether a value can be a label: not None, NaN or a collection."""
    return value is not None and not isinstance(value, (list, tuple, dict, bytes)) and bool(value == value)


def _zero_is_left_out(y: Sequence[Any], classes: list[Any]) -> bool:
    """Return whether label 0 marks rows that are left out: the classes are -1 and 1, and y has both of them and 0."""
    return classes == [-1, 1] and set(y) == {-1, 0, 1}


def _kept_rows(
    X: Sequence[Any], y: Sequence[Any], dropped: Sequence[str], weights: Iterable[Any] | None
) -> tuple[list[int], int, int]:
    """Return which rows the rules leave, and how many rows were dropped for missing values and for weight zero."""
    if len(X) != len(y):
        raise BadInput(f"there are {len(X)} rows and {len(y)} labels")
    mass = [1.0] * len(y) if weights is None else list(weights)
    if len(mass) != len(y):
        raise BadInput(f"there are {len(X)} rows and {len(mass)} weights")
    kept = [*range(len(y))]
    if "missing" in dropped:
        cells = (row.values() if isinstance(row, Mapping) else row for row in X)
        kept = [i for i, own in enumerate(cells) if not any(map(_is_missing, [*own, y[i], mass[i]]))]
    complete = len(kept)
    if "zero-weight" in dropped:
        try:
            kept = [i for i in kept if _is_missing(mass[i]) or float(mass[i]) != 0]
        except (TypeError, ValueError) as error:
            raise BadInput(f"a weight is not a number: {error}") from None
    return kept, len(y) - complete, complete - len(kept)


def _is_missing(value: Any) -> bool:
    """Return whether a cell, a label or a weight is missing: None, NaN, an empty text, NA and the like."""
    if isinstance(value, str):
        return value.strip(BLANKS) == "None" or value.strip(BLANKS).lower() in MISSING_TEXT
    return value is None or (isinstance(value, float) and math.isnan(value))


def _class_text(label: Any) -> str:
    """Return a class as it is hashed: text as JSON, integers by their digits, other numbers as float.hex writes them."""
    if isinstance(label, str):
        return json.dumps(label)
    return str(int(label)) if math.isfinite(label) and label == int(label) else float(label).hex()


# ---- files -----------------------------------------------------------------------------------------------------------


def _read_text(path: Path) -> str:
    """Return the text of a file in UTF-8."""
    try:
        return _read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not text in UTF-8: {error}") from None


def _read_bytes(path: Path) -> bytes:
    """Return the content of a file, unpacked if it is compressed."""
    try:
        content = _standard_input() if path == Path("-") else path.read_bytes()
        return UNPACKED[path.suffix.lower()](content) if path.suffix.lower() in UNPACKED else content
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:  # ValueError: a name with a NUL in it
        raise BadInput(f"{path} cannot be read: {error}") from None


@functools.cache
def _standard_input() -> bytes:
    """Return the content of standard input, which is read once."""
    return sys.stdin.buffer.read()


def _suffix(path: Path) -> str:
    """Return the suffix of a file name, without that of a compressed file."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix in UNPACKED else suffix


def _suffix_by_content(path: Path) -> str:
    """Return the suffix that fits the content of a file whose name has no known one, judged by its first line."""
    content = _read_bytes(path)
    line = next((line for line in content[: 1 << 20].splitlines() if line.strip()), b"")
    if content[:6] == b"\x93NUMPY" or b":" in line.partition(b"#")[0]:
        return ".npy" if content[:6] == b"\x93NUMPY" else ".svm"
    return ".tsv" if b"\t" in line.strip() else ".csv" if any(mark in line for mark in b",;|") else ".svm"


SUFFIXES = (".csv", ".tsv", ".tab", ".npy", ".npz", ".parquet", ".pq", ".svm", ".svmlight", ".libsvm")


# ---- files: tables of text -------------------------------------------------------------------------------------------


class Style(NamedTuple):
    """How a table of text is written: separator (None: detected), decimal mark, thousands separator and whether it has a header.

    `missing` tells whether cells may be missing, in which case they are read as None.
    """

    sep: str | None = None
    decimal: str = "."
    thousands: str | None = None
    header: bool = True
    missing: bool = False


class Table(NamedTuple):
    """The content of a file: rows and labels, and, if the file has them, column names, weights and names of label and weights.

    `beside` are names of columns that are left out since the certificate does not name them, and `lines` are the lines on which
    the rows begin.
    """

    X: Any
    y: list[Any]
    names: list[str] | None = None
    weights: list[Any] | None = None
    beside: tuple[str, ...] = ()
    lines: Sequence[int] | None = None
    label: str | None = None
    weight: str | None = None


def read_table(
    path: Path,
    label: str | None,
    drop: Sequence[str] = (),
    keep_index: bool = False,
    weight: str | None = None,
    about: Mapping[str, Any] | None = None,
    style: Style | None = None,
) -> Table:
    """Read a CSV or TSV file; labels remain text.

    `about` is the description in a certificate: the columns of labels, weights and features that it names are used if the file
    has them and the arguments do not say otherwise.
    """
    about, style = about or {}, style or Style()
    header, body, numbers = _split_table(path, style)
    label = _stated_column(label, "label", about, header)
    at = position("-1" if label is None else label, len(header), header)
    asked = {position(column, len(header), header) for column in drop}
    taken = [*(about.get("columns") or []), header[at], *(header[j] for j in asked)]
    weight = weight if about.get("weight") in taken else _stated_column(weight, "weight", about, header)
    mass = None if weight is None else position(weight, len(header), header)
    others = set() if asked else _unnamed_columns(header, at, about) - {mass}
    gone = asked | others
    gone |= set() if mass is None else {mass}
    gone |= set() if keep_index or not style.header else index_columns(header, body, at, gone)
    _, labels = split_label(body, at, gone)
    kept, names = _drop_columns([[*range(len(header))], header], gone | {at})
    cells = Cells(path, header, body, numbers, _design_hint(about, header))
    weights = None if mass is None else [own for (own,) in cells.values([mass], style)]
    beside = tuple(header[j] for j in sorted(others) if header[j].strip())
    found = Table(cells.values(kept, style), labels, None, weights, beside, numbers)
    named = found._replace(names=names, label=header[at], weight=None if mass is None else header[mass])
    return named if style.header else found


class Cells(NamedTuple):
    """The cells of a table of text, the line on which each row begins, and a hint for the error about a cell without a number."""

    path: Path
    header: list[str]
    body: list[list[str]]
    lines: list[int]
    hint: str

    def values(self, columns: list[int], style: Style) -> list[list[Any]]:
        """Return the numbers in these columns; BadInput names the line and column of a cell that does not hold one."""
        rows = []
        for cells, line in zip(self.body, self.lines, strict=True):
            row: list[Any] = []
            try:
                row.extend(_number_in(cells[j], style) for j in columns)
            except BadInput as error:
                j = columns[len(row)]
                name = f" ({self.header[j]!r})" if self.header[j].strip() else ""
                hint = self.hint and f"; {self.hint}"
                raise BadInput(f"{self.path}, line {line}, column {j}{name}: {error}{hint}") from None
            rows.append(row)
        return rows


def _number_in(cell: str, style: Style) -> Any:
    """Return the number in a cell, or None if it is missing and may be."""
    if style.missing and _is_missing(cell):
        return None
    text = cell.strip(BLANKS)
    try:
        if text.lower() in ("true", "false"):
            return float(text.lower() == "true")
        if style.thousands is not None and style.thousands in text:
            whole, point, rest = text.partition(style.decimal)
            if not re.fullmatch(rf"[+-]?[0-9]{{1,3}}(?:{re.escape(style.thousands)}[0-9]{{3}})+", whole):
                raise ValueError
            text = whole.replace(style.thousands, "") + point + rest
        if style.decimal == ",":
            text = text.replace(".", "_").replace(",", ".")  # a point is not allowed then
        if "_" in text or not text.isascii():  # Python allows _ between digits, and digits of other scripts
            raise ValueError
        value = float(text)
        if math.isfinite(value):
            return value
    except ValueError:
        pass
    hint = "--missing drop leaves out such rows" if _is_missing(cell) else "see --decimal, --thousands and --sep"
    raise BadInput(f"the cell {cell[:40]!r} is not a finite number; {hint}")


def _stated_column(column: str | None, part: str, about: Mapping[str, Any], header: list[str]) -> str | None:
    """Return the column that was given, or else the one that the certificate names if the file has it."""
    stated = about.get(part)
    return stated if column is None and stated is not None and header.count(stated) == 1 else column


def _unnamed_columns(header: list[str], at: int, about: Mapping[str, Any]) -> set[int]:
    """Return the columns other than the label that the certificate does not name, if the file has all those that it names."""
    wanted = about.get("columns") or []
    known = 0 < len(wanted) < len(header) - 1 and all(header.count(name) == 1 for name in wanted)
    return {j for j, name in enumerate(header) if known and j != at and name not in wanted}


def _design_hint(about: Mapping[str, Any], names: Sequence[str] | None) -> str:
    """Return advice if the certificate names columns that a formula made and the file does not have, else ""."""
    stated = about.get("columns") or ()
    if not names or set(stated) <= set(names) or not any(map(FORMULA_TERM.search, stated)):
        return ""
    label = about.get("label") or "y"
    y = f"{label}=d.y" if label.isidentifier() else f"**{{{label!r}: d.y}}"
    return (
        "a formula made columns that the certificate names; ask for a file of these, which "
        f"d.X.assign({y}).to_csv('design.csv', index=False) writes for a diagnosis d"
    )


def _split_table(path: Path, style: Style) -> tuple[list[str], list[list[str]], list[int]]:
    """Return the column names (empty texts without a header), the cells, and the line on which each row begins.

    A first line such as `sep=;`, which spreadsheets write, is skipped; its separator is used unless --sep names another.
    """
    text = _read_text(path)
    named = re.match(r'"?sep=([^\r\n"])"?\r?\n', text, re.IGNORECASE)
    text = "\n" + text[named.end() :] if named else text  # an empty line keeps the line numbers
    lines, numbers, last = [], [], 0
    limit = csv.field_size_limit(2**31 - 1)  # a cell may be longer than the limit of the csv module
    try:
        mark = (
            style.sep
            or (named and named[1])
            or _detect_separator(text, "\t" if _suffix(path) in (".tsv", ".tab") else ",", style)
        )
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
        for line in reader:
            if line:
                lines.append(line)
                numbers.append(last + 1)
            last = reader.line_num
    except (csv.Error, TypeError, ValueError) as error:  # the last two are raised for an invalid separator
        raise BadInput(f"{path}: {error}") from None
    finally:
        csv.field_size_limit(limit)
    if not lines:
        raise BadInput(f"{path} is empty")
    first = 1 if style.header else 0
    header = lines[0] if style.header else [""] * len(lines[0])
    for line, number in zip(lines, numbers, strict=True):
        if len(line) != len(header):
            as_many = f"the {'header' if style.header else 'first line'} has {len(header)}"
            raise BadInput(f"{path}, line {number} has {len(line)} fields; {as_many}")
    return header, lines[first:], numbers[first:]


def _detect_separator(text: str, usual: str, style: Style) -> str:
    """Return the separator of columns, judged by the first two lines.

    A mark is possible if it splits both lines into the same number of cells, more than one. The usual one is preferred, unless it
    is a decimal mark or thousands separator; and commas give way to another mark whose cells have decimal commas.
    """
    lines = [line for line in text.splitlines()[:2] if line.strip()]
    marks = sorted((";", "\t", ",", "|"), key=lambda mark: (mark in (style.decimal, style.thousands), mark != usual))
    parts = {mark: _split_lines(lines, mark) for mark in marks}
    found = [mark for mark in marks if len({*map(len, parts[mark])}) == 1 < len(parts[mark][0])]
    best = found[0] if found else usual
    return next((mark for mark in found if best == "," != mark and _has_decimal_commas(parts[mark])), best)


def _split_lines(lines: list[str], mark: str) -> list[list[str]]:
    """Return the cells of these lines for this separator; an empty list if a cell would exceed the limit of the csv module."""
    try:
        return [*csv.reader(lines, delimiter=mark)]
    except csv.Error:
        return []


def _has_decimal_commas(lines: list[list[str]]) -> bool:
    """Return whether some cells have commas, and all of these are numbers with decimal commas."""
    cells = [cell.strip(BLANKS) for line in lines for cell in line if "," in cell]
    return bool(cells) and all(re.fullmatch(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?", cell, re.ASCII) for cell in cells)


def position(column: str, width: int, header: Sequence[str] = ()) -> int:
    """Return the position of the column of this name, or at this position (counted from 0, or backwards from -1)."""
    try:
        at = header.index(column) if column in header else int(column)
    except ValueError:
        at = width
    if not -width <= at < width:
        raise BadInput(f"there is no column {column}")
    return at % width


def index_columns(header: Sequence[str], body: list[Any], at: int, gone: set[int]) -> set[int]:
    """Return the nameless first columns that count the rows, as 0, 1, 2, ... or 1, 2, 3, ...; at least one feature remains."""
    found: set[int] = set()
    for j in (j for j in range(len(header)) if j not in gone):
        nameless = j != at and re.fullmatch(r"\s*|Unnamed: [0-9]+(\.[0-9]+)*", header[j])
        if not nameless or len(header) - len(gone) - len(found) <= 2:
            break
        try:
            cells = [float(row[j]) for row in body]
        except ValueError:
            break
        if cells not in ([float(i) for i in range(len(body))], [float(i + 1) for i in range(len(body))]):
            break
        found.add(j)
    return found


def split_label(rows: Any, at: int, gone: set[int]) -> tuple[Any, list[Any]]:
    """Return the rows without the label column and those that are left out, and the labels."""
    if at in gone:
        raise BadInput("the label column cannot be dropped")
    return _drop_columns(rows, gone | {at}), [row[at] for row in rows]


def _drop_columns(rows: Any, gone: set[int]) -> Any:
    """Return the rows without these columns."""
    kept = [j for j in range(len(rows[0]) if len(rows) else 0) if j not in gone]
    if isinstance(rows, NpyRows):
        return NpyRows(rows.content, rows.start, rows.n, rows.row, kept)
    return [[row[j] for j in kept] for row in rows]


# ---- files: svmlight -------------------------------------------------------------------------------------------------


def read_svmlight(path: Path, drop: Sequence[str] = ()) -> tuple[list[Any], list[str]]:
    """Return the rows of an svmlight file as {column: value}, and the labels as text.

    Indices start at 1, unless some index is 0. Columns after a dropped one move up.
    """
    rows, labels = [], []
    for number, line in enumerate(_read_text(path).encode().split(b"\n"), 1):  # bytes, so that only ASCII white space separates
        label, *entries = (field.decode() for field in line.split(b"#")[0].split() or [b""])
        if label:
            rows.append(_svmlight_row(label, entries, f"{path}, line {number}"))
            labels.append(label)
    if not any(rows):
        raise BadInput(f"{path} has no entries")
    try:
        gone = {int(column) for column in drop}
    except ValueError as error:
        raise BadInput(f"a column of svmlight is dropped by its index: {error}") from None
    return _close_gaps(rows, gone), labels


def _svmlight_row(label: str, entries: list[str], where: str) -> dict[int, float]:
    """Return {index: value} for the entries of a line."""
    pairs = [entry.split(":") for entry in entries if not entry.startswith("qid:")]
    try:
        row = {int(column): _number_in(value, Style()) for column, value in pairs}
        digits = all(column.isascii() and column.lstrip("-").isdigit() for column, _ in pairs)
        if not digits or any(map(str.isspace, label)):
            raise ValueError("an index has other characters than digits, or a label has white space")
    except ValueError as error:
        raise BadInput(f"{where}: {error}") from None
    if max([0, *map(abs, row)]) >= 2**62:
        raise BadInput(f"{where} has an index beyond 2**62")
    if len(row) != len(pairs):
        raise BadInput(f"{where} has the same index twice")
    return row


def _close_gaps(rows: list[dict[int, float]], gone: set[int]) -> list[dict[int, float]]:
    """Return rows by column, counted from 0 and without those that are left out, from rows by index."""
    first, used = 0 if any(0 in row for row in rows) else 1, {column for row in rows for column in row} - gone
    places = {column: column - first - sum(each < column for each in gone) for column in used}
    return [{places[column]: value for column, value in row.items() if column in places} for row in rows]


# ---- files: .npy -----------------------------------------------------------------------------------------------------


class NpyRows(Sequence[Sequence[Any]]):
    """The rows of a .npy file, each unpacked when it is needed; `kept` are the columns that count, all if None."""

    def __init__(self, content: bytes, start: int, n: int, row: struct.Struct, kept: Sequence[int] | None = None) -> None:
        self.content, self.start, self.n, self.row, self.kept = content, start, n, row, kept

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: Any) -> Any:
        if not 0 <= i < self.n:
            raise IndexError(i)
        row = self.row.unpack_from(self.content, self.start + i * self.row.size)
        return row if self.kept is None else tuple([row[j] for j in self.kept])


def read_npy(path: Path) -> Any:
    """Return the array in a .npy file of little-endian numbers, booleans or text, as a list of values or a sequence of rows."""
    content = _read_bytes(path)
    kind, shape, by_columns, start = _npy_header(content, path)
    cut_short = f"{path} is cut short: it does not hold an array of shape {shape}"
    code = _struct_code(kind)
    if len(shape) == 2 and code is not None and not by_columns and 0 < shape[1] <= WIDEST:
        row = struct.Struct(f"<{shape[1]}{code}")
        if len(content) < start + shape[0] * row.size:
            raise BadInput(cut_short)
        return NpyRows(content, start, shape[0], row)
    values = _npy_values(kind, math.prod(shape), content, start)
    if values is None:
        raise BadInput(f"{path}: this checker does not read arrays of type {str(kind)[:80]}")
    if len(values) != math.prod(shape):
        raise BadInput(cut_short)
    if len(shape) == 1:
        return values
    n, d = shape
    return [values[i::n] if by_columns else values[i * d : (i + 1) * d] for i in range(n)]


def _npy_header(content: bytes, path: Path) -> tuple[Any, tuple[int, ...], bool, int]:
    """Return NumPy's name of the type, the shape, whether the array is stored by columns, and where its values begin."""
    if content[:6] != b"\x93NUMPY" or len(content) < 12 or content[6] not in (1, 2, 3):
        raise BadInput(f"{path} is not a .npy file")
    start, size = (10, "<H") if content[6] == 1 else (12, "<I")
    end = start + struct.unpack_from(size, content, 8)[0]
    try:
        header = ast.literal_eval(content[start:end].decode("latin-1").strip())
        kind, shape, by_columns = (header[name] for name in ("descr", "shape", "fortran_order"))
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError) as error:
        raise BadInput(f"{path} has no header of a .npy file: {error}") from None
    if type(shape) is not tuple or type(by_columns) is not bool:
        raise BadInput(f"{path} has no header of a .npy file: its shape is {str(shape)[:80]}")
    if any(type(length) is not int or length < 0 for length in shape) or len(shape) not in (1, 2):
        raise BadInput(f"{path} does not hold an array of one or two dimensions, but of shape {str(shape)[:80]}")
    return kind, shape, by_columns, end


CODES = {"f2": "e", "f4": "f", "f8": "d", "b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q"}
CODES |= {"u1": "B", "u2": "H", "u4": "I", "u8": "Q"}


def _struct_code(kind: Any) -> str | None:
    """Return the code of struct for a type of little-endian numbers or booleans in NumPy; None for other types."""
    return CODES.get(kind[1:]) if type(kind) is str and kind[:1] in ("<", "|") else None


def _npy_values(kind: Any, count: int, content: bytes, start: int) -> list[Any] | None:
    """Return this number of values of a NumPy type, or fewer if the content ends before; None for unsupported types."""
    code = _struct_code(kind)
    if code is not None:
        size = struct.calcsize("<" + code)
        end = min(len(content), start + count * size)
        whole = end - (end - start) % size
        return [value for (value,) in struct.iter_unpack("<" + code, content[start:whole])]
    if type(kind) is not str or kind[:1] not in ("<", "|"):
        return None
    if kind[1:2] != "U" or not kind[2:].isdecimal() or not 0 < int(kind[2:]) < len(content):
        return None
    width = 4 * int(kind[2:])
    pieces = (content[i : i + width] for i in range(start, min(len(content), start + count * width), width))
    try:
        return [piece.decode("utf-32-le").rstrip("\0") for piece in pieces if len(piece) == width]
    except UnicodeDecodeError:
        return None


# ---- the command line ------------------------------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = argparse.ArgumentParser(
        description="Check a certificate of gordan against data, in exact arithmetic.",
        epilog="Exit codes: 0 accepted; 1 rejected; 2 a file or a label cannot be read, or there are too many classes.",
    )
    parser.add_argument("certificate", type=Path, help="the JSON file to check")
    parser.add_argument("data", type=Path, help="CSV or TSV with a header, svmlight, or .npy; also .gz, .bz2, .xz; or -")
    parser.add_argument(
        "--label", help="name or position (from 0) of the label column; default: as the certificate says, or the last"
    )
    parser.add_argument("--labels", type=Path, help="the labels, y.npy, if the data is X.npy without a label column")
    parser.add_argument("--positive", metavar="CLASS", help="this class against the rest, if the certificate is about that")
    parser.add_argument("--drop", metavar="COLUMN", action="append", default=[], help="leave this column out; repeatable")
    parser.add_argument("--sep", metavar="CHARACTER", help="column separator of a table; default: detected")
    parser.add_argument("--decimal", choices=[".", ","], default=".", help="the decimal mark of a table")
    parser.add_argument("--thousands", metavar="CHARACTER", help="thousands separator of a table")
    parser.add_argument("--no-header", action="store_true", help="the table has no header: its first line is data")
    parser.add_argument(
        "--missing", choices=["raise", "drop"], help="drop: leave out rows with a missing value, whatever the certificate says"
    )
    parser.add_argument("--weight", metavar="COLUMN", help="column of weights; default: as the certificate says")
    parser.add_argument("--weights", type=Path, help="the weights, w.npy, if they are not a column of the data")
    parser.add_argument("--keep-index", action="store_true", help="keep a nameless first column that counts the rows")
    options = parser.parse_args(arguments)
    _standard_input.cache_clear()
    try:
        accepted, lines = _check_files(options)
        _progress("")
        try:
            _print("\n".join(map(cut, lines)), sys.stdout)
        except OSError as error:  # avoid another error when Python exits
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if not isinstance(error, BrokenPipeError):  # else the reader has closed the pipe, as `head` does
                raise BadInput(f"the answer cannot be written to standard output: {error}") from None
        return 0 if accepted else 1
    except BadInput as error:
        _print(cut(f"bad input: {error}"), sys.stderr)
        return 2
    except KeyboardInterrupt:
        _print("interrupted", sys.stderr)
        return 130
    except Exception as error:
        _print(f"internal error in {Path(__file__).name}, please report it: {type(error).__name__}: {error}", sys.stderr)
        return 70


def _check_files(options: argparse.Namespace) -> tuple[bool, list[str]]:
    """Return whether the certificate, or each of several, is accepted, and the lines to print."""
    if options.certificate == Path("-"):
        raise BadInput("only the data may be standard input; pass the certificate as a file")
    content = _read_bytes(options.certificate)
    if content.startswith(b"\x89GORDAN\n"):
        raise BadInput(
            f"{options.certificate} is a model file of gordan, which `gordan verify` checks; for this checker "
            "`gordan fit --certificate proof.json` writes the certificates, and Python takes the first out of the model: "
            "from pathlib import Path; from gordan.io import Model; "
            f"Path('proof.json').write_text(Model.load({str(options.certificate)!r}).certificates[0])"
        )
    try:
        content = read_certificate(content.decode("utf-8"))
    except ValueError as error:
        raise BadInput(f"{options.certificate}: {error}; the certificate comes first, then the data") from None
    if not isinstance(content, list):
        return _check_claim(options, Claim(content), "")
    if not content:
        raise BadInput(f"{options.certificate} is not a certificate: the list is empty")
    checks = []
    for claim in map(Claim, content):
        pair = len(content) > 1 and claim.class_type != "bool" and claim.model == "logistic" and not claim.several
        checks.append(_check_claim(options, claim, f"{claim.classes[1]} against {claim.classes[0]}: " if pair else ""))
    return all(accepted for accepted, _ in checks), [line for _, lines in checks for line in lines]


def _check_claim(options: argparse.Namespace, claim: Claim, pair: str) -> tuple[bool, list[str]]:
    """Return what `_check_files` does, for one certificate.

    In a file of several certificates one about two classes that it names is about their rows alone; `pair` names them then.
    """
    if options.missing == "drop":
        claim.dropped = ["missing", *(rule for rule in claim.dropped if rule != "missing")]
    _progress(f"reading {options.data}")
    found = _with_weights(options, _read_data(options, claim))
    found = _rows_of_classes(found, claim) if pair else found
    labels = _labels_for(found, claim, options.positive)
    claim.progress = _progress
    data = claim.data(found.X, labels, found.weights)
    accepted, reason = claim.decide(*data)
    left_out = left_out_words(claim.shape[0] - claim.left_out[2], *claim.left_out, found.weight)
    stated = claim.statement() + left_out
    lines = [f"accepted: {pair}{stated}"] if accepted else [f"rejected: {pair}{reason}", f"  it claims that {stated}"]
    lines += _provenance(claim, found, data, options.positive, accepted)
    hint = "" if accepted else _design_hint(claim.about, found.names)
    lines += [f"  {hint}"] if hint else []
    return accepted, lines


def _read_data(options: argparse.Namespace, claim: Claim) -> Table:
    """Read the data in a file of any supported format."""
    suffix = _suffix(options.data)
    if suffix not in SUFFIXES:
        suffix = _suffix_by_content(options.data)
    if suffix in (".parquet", ".pq", ".npz"):
        raise BadInput(f"{options.data}: this checker does not read {suffix}; save it as CSV, svmlight or .npy")
    if suffix in (".csv", ".tsv", ".tab"):
        sep = "\t" if options.sep == "\\t" else options.sep
        if sep == "":
            raise BadInput("--sep is empty; pass the single character between columns")
        style = Style(sep, options.decimal, options.thousands, not options.no_header, "missing" in claim.dropped)
        return read_table(options.data, options.label, options.drop, options.keep_index, options.weight, claim.about, style)
    if suffix != ".npy":
        if options.weight is not None:
            raise BadInput("svmlight has no column of weights; leave out --weight, or pass --weights w.npy")
        return Table(*read_svmlight(options.data, options.drop))
    return _read_array(options, claim.shape[1])


def _with_weights(options: argparse.Namespace, table: Table) -> Table:
    """Return the table with the weights of --weights, if there are any."""
    if options.weights is None:
        return table
    if options.weight is not None:
        raise BadInput("--weight names a column and --weights a file; leave out one of them")
    if _suffix(options.weights) != ".npy":
        raise BadInput(f"{options.weights}: --weights takes a .npy file")
    weights = read_npy(options.weights)
    if not isinstance(weights, list) or len(weights) != len(table.y):
        raise BadInput(f"{options.weights} does not hold one weight for each of the {len(table.y)} rows")
    return table._replace(weights=weights, weight=None)


def _read_array(options: argparse.Namespace, d: int) -> Table:
    """Read an array in a .npy file with d feature columns; the labels are a column of it, or in another file."""
    X = read_npy(options.data)
    if not len(X) or not isinstance(X[0], (list, tuple)):
        raise BadInput(f"{options.data} is not a table: its array has {'one dimension' if len(X) else 'no rows'}")
    gone = {position(column, len(X[0])) for column in options.drop}
    mass = None
    if options.weight is not None:
        place = position(options.weight, len(X[0]))
        gone, mass = gone | {place}, [row[place] for row in X]
    if options.labels is None and len(X[0]) - len(gone) == d:
        raise BadInput(f"{options.data} has no column for the labels: add --labels y.npy")
    if options.labels is None:
        return Table(*split_label(X, position("-1" if options.label is None else options.label, len(X[0])), gone), None, mass)
    return Table(_drop_columns(X, gone) if gone else X, read_npy(options.labels), None, mass)


# ---- the command line: labels ----------------------------------------------------------------------------------------


def _labels_for(table: Table, claim: Claim, positive: str | None) -> list[Any]:
    """Return the labels of a file as values of the type that the labels of the certificate have.

    If the certificate is about one class against the rest, they are True for that class and else False.
    """
    labels = table.y
    if claim.model != "logistic" and positive is not None:
        raise BadInput(f"there is no class against the rest in its model, {claim.model}; leave out --positive")
    positive = _stated_class(labels, claim) if positive is None else positive
    if positive is not None and claim.class_type != "bool":
        raise BadInput("the certificate names its two classes; leave out --positive")
    kept = [i for i, label in enumerate(labels) if not (claim.dropped and _is_missing(label))]
    _require_labels(table, kept)
    found, own = [*labels], [labels[i] for i in kept]
    own = own if positive is None else one_against_the_rest(own, positive)
    truths = claim.class_type == "bool" and (
        claim.model == "logistic" or all(str(label).strip().lower() in TRUTH for label in own)
    )
    kind = claim.class_type if truths or (claim.class_type != "bool" and all(map(_is_number, own))) else "str"
    for i, label in zip(kept, own, strict=True):
        found[i] = _read_label(table, i, label, "count" if claim.model == "poisson" else kind)
    return found


def _rows_of_classes(table: Table, claim: Claim) -> Table:
    """Return the table with only the rows of the classes of a certificate; rows without a label remain."""
    numbers = claim.class_type != "str" and all(_is_number(label) or _is_missing(label) for label in table.y)
    own = [label if not numbers or _is_missing(label) else number(label) for label in table.y]
    kept = [i for i, label in enumerate(own) if label in claim.classes or _is_missing(label)]
    if not kept:
        raise BadInput(f"there are no rows of {claim.classes[0]!r} or {claim.classes[1]!r}, which the certificate is about")
    weights, lines = ([column[i] for i in kept] if column is not None else None for column in (table.weights, table.lines))
    return table._replace(X=[table.X[i] for i in kept], y=[table.y[i] for i in kept], weights=weights, lines=lines)


def _read_label(table: Table, i: int, label: Any, kind: str) -> Any:
    """Return the label of row i as a value of this type, or as a number for a count; BadInput names the place in the file."""
    try:
        return number(label) if kind == "count" else as_label(label, kind)
    except BadInput as error:
        raise BadInput(f"{_place(table, i)}: {error}") from None
    except ValueError:
        raise BadInput(f"{_place(table, i)}: the count {label!r} is not a number") from None


def _place(table: Table, i: int) -> str:
    """Return where row i is in the file: its line, or its number if lines are not known."""
    return f"row {i}" if table.lines is None else f"line {table.lines[i]}"


def _require_labels(table: Table, kept: Iterable[int]) -> None:
    """Raise BadInput if one of the rows that are kept has no label."""
    for i in kept:
        label = table.y[i]
        if isinstance(label, str) and label.strip().lower() in ("", "nan", "+nan", "-nan"):
            raise BadInput(f"{_place(table, i)}: the label is {label.strip() or 'empty'}; every row needs a label")


def _stated_class(labels: Sequence[Any], claim: Claim) -> Any:
    """Return the class that the certificate sets against the rest, if it names one.

    None if the labels are 0 and 1 and that class is neither: then 1 stands for it.
    """
    if claim.class_type != "bool" or claim.model != "logistic":
        return None
    stated, found = claim.about.get("positive"), {str(label).strip() for label in labels}
    return None if found == {"0", "1"} and stated not in found else stated


def _is_number(label: Any) -> bool:
    """Return whether a label is a number."""
    try:
        number(label)
    except ValueError:
        return False
    return True


def as_label(text: Any, kind: str) -> Any:
    """Return a label from a file as a value of the type that the labels of the certificate have."""
    if not isinstance(text, str) or kind == "str":
        return text
    if kind == "bool":
        if text.strip().lower() not in TRUTH:
            raise BadInput(f"the label {text!r} is neither true nor false; for one class against the rest: add --positive CLASS")
        return TRUTH[text.strip().lower()]
    return number(text)


def number(text: Any) -> Any:
    """Return the number in a text: an integer exactly, any other as a float."""
    try:
        return int(text) if isinstance(text, str) else text
    except ValueError:
        return float(text)


def one_against_the_rest(y: Sequence[Any], positive: str) -> list[bool]:
    """Return whether each label is the class of this name; labels that are all numbers are compared as numbers."""
    try:
        chosen = [number(label) == number(positive) for label in y]
    except ValueError:
        chosen = [str(label) == positive for label in y]
    if not any(chosen):
        raise BadInput(f"no row has the label {positive!r}")
    return chosen


# ---- the command line: what is printed beside the verdict ------------------------------------------------------------

BESIDE = "columns that it does not name are left out"
OTHER_DATA = "this is not the data that it was made for"
OTHER_ORDER = "the columns have the same names as those it was made for, but in another order"
LONGEST_LINE = 2000
SAME_DATA = "this is the data that it was made for"
NUMBERED = "the data does not name the class {!r}: its labels are 0 and 1, and 1 was taken for that class"


def _provenance(claim: Claim, found: Table, data: tuple[Rows, int, list[Any]], asked: str | None, accepted: bool) -> list[str]:
    """Return lines about where the certificate comes from and whether this is the data that it was made for.

    `data` is that of `Claim.data`, and `asked` is the class of --positive.
    """
    rules = {"missing": "with a missing value", "zero-weight": "of weight zero"}
    notes = _source_notes(claim)
    notes += [f"  rows {rules[rule]} are left out, and row numbers do not count them" for rule in claim.dropped]
    other_names = _name_notes(claim, found)
    weights, note = _compared_weights(claim, found, data[2])
    notes += [*other_names, *_numbered_note(claim, found, asked), *([f"  {note}"] if note else [])]
    notes += [f"  {BESIDE}: {_first_few(found.beside)}"] if found.beside else []
    rows, width, plain = data
    known = claim.model == "poisson" or set(plain) <= set(claim.classes) or _zero_is_left_out(plain, claim.classes)
    shape = known and (len(rows), width) == claim.shape
    same = None if claim.data_hash is None else shape and claim.hash_of(rows, plain) == claim.data_hash
    return [*notes, f"  {same_data_words(same, accepted, weights, bool(other_names))}"]


def _compared_weights(claim: Claim, found: Table, y: Sequence[Any]) -> tuple[str, str]:
    """Return what `compare_weights` does for the weights of a file; nothing if the claim does not depend on weights.

    y has the labels as the claim means them.
    """
    given = None if found.weights is None else [found.weights[i] for i in claim.kept]
    by_hash = claim.weights_hash is not None and claim.weights_reason != Claim.weights_reason
    if by_hash or (claim.c is None and (given is None or not claim.states_bracket or claim.weights_hash is not None)):
        return "", ""
    stored = with_class_weights([1.0] * claim.shape[0] if claim.c is None else claim.c, claim.class_weight, claim.classes, y)
    only_zeros = claim.kind != "optimum" and claim.nu is None
    column = found.weight if found.weights is not None else claim.about.get("weight")
    return compare_weights(stored, given, [found.y[i] for i in claim.kept], column, only_zeros)


def _name_notes(claim: Claim, found: Table) -> list[str]:
    """Return lines about columns and labels whose names differ from those in the certificate."""
    notes = _column_notes(found.names or [], claim.about.get("columns") or [])
    if found.label and claim.about.get("label") not in (None, "", found.label):
        pair = f"{found.label!r} in place of {claim.about['label']!r}"
        notes.append(f"  the label column has another name than the one it was made for: {pair}")
    return notes


def _numbered_note(claim: Claim, found: Table, asked: str | None) -> list[str]:
    """Return a line about the class of the certificate if the data has 0 and 1 in place of classes."""
    taken = asked is None and claim.class_type == "bool" and claim.model == "logistic"
    stated = claim.about.get("positive")
    return [f"  {NUMBERED.format(stated)}"] if taken and stated and _stated_class(found.y, claim) is None else []


def _column_notes(names: Sequence[str], stated: Sequence[str]) -> list[str]:
    """Return a line about columns whose names differ from those in the certificate; nothing if either has no names."""
    if not names or not stated or [*names] == [*stated]:
        return []
    if sorted(names) == sorted(stated):
        return [f"  {OTHER_ORDER}"]
    pairs = [f"{a!r} in place of {b!r}" for a, b in zip(names, stated, strict=False) if a != b] or ["their number differs"]
    more = ", ..." if len(pairs) > 4 else ""
    return [f"  the columns have other names than those it was made for: {', '.join(pairs[:4])}{more}"]


def _source_notes(claim: Claim) -> list[str]:
    """Return lines about the version that made the certificate and for what, about its classes, and about its own statement.

    The statement is shown only if it differs from the claim.
    """
    about = claim.about
    parts: dict[str, Any] = {
        "file": lambda name: f"the file {printable(name)}" + ("" if about["size"] is None else f" ({about['size']:,} bytes)"),
        "label": lambda name: f"the label column {name!r}",
        "weight": lambda name: f"the weights {name!r}",
        "positive": lambda name: f"the class {name!r} against the rest",
        "columns": lambda names: f"{len(names)} named column{'s' * (len(names) > 1)} ({_first_few(names)})",
    }
    source, notes = ", ".join(words(about[part]) for part, words in parts.items() if about.get(part)), []
    if source or about.get("version"):
        version = printable(about["version"] or "(unknown version)")
        notes.append(f"  the certificate says it was made by gordan {version}{' for ' if source else ''}{source}")
    if about.get("statement") not in (None, claim.statement()):
        notes.append(f"  its own statement reads differently, and was not checked: {about['statement']!r}")
    return notes + _class_notes(claim)


def _class_notes(claim: Claim) -> list[str]:
    """Return a line about the positive class or the order of the classes, unless the description already says it."""
    stated, classes = claim.about.get("positive"), claim.classes
    unchecked = f"  its description, which was not checked, names the class {stated!r}, but"
    if stated and (claim.model != "logistic" or claim.several):
        return [f"{unchecked} its claim is about all classes"]
    if stated and claim.class_type != "bool" and not any(one_against_the_rest([classes[1], stated], stated)[:1]):
        return [f"{unchecked} its positive class is {classes[1]!r}, the other one {classes[0]!r}"]
    if claim.model == "poisson" or stated:
        return []
    if claim.model == "ordinal":
        return [f"  the order of its classes is {_first_few(classes, ' < ')}"]
    if claim.several or claim.model == "multinomial":
        reference = "; the first is the reference" if claim.model == "multinomial" else ""
        return [f"  its classes are {_first_few(classes)}{reference}"]
    return [f"  the positive class is {classes[1]!r}, the other one {classes[0]!r}"]


def _first_few(values: Sequence[Any], mark: str = ", ", show: Any = repr) -> str:
    """Return the first few of the values as text."""
    return mark.join(map(show, values[:4])) + (mark + "..." if len(values) > 4 else "")


def printable(text: str) -> str:
    """Return text without control characters, which could move the cursor of a terminal or begin another line; it may be cut."""
    return cut(text if text.isprintable() else repr(text[: LONGEST_LINE // 2]), LONGEST_LINE // 4)


def cut(line: str, length: int = LONGEST_LINE) -> str:
    """Return a line, cut if it is longer than this: a certificate may hold texts of any length."""
    return line if len(line) <= length else f"{line[:length]}..."


def _progress(words: str) -> None:
    """Show what is being done, in one line of a terminal that is overwritten."""
    if sys.stderr.isatty():
        print(f"\r{words:<60}", end="\r", file=sys.stderr, flush=True)


def _print(text: str, file: Any) -> None:
    """Print a text, with escape codes for characters that the encoding of the file does not have."""
    encoding = getattr(file, "encoding", None) or "ascii"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=file, flush=True)


if __name__ == "__main__":
    sys.exit(main())
