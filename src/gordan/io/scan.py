"""Scan long text files with compiled code. The module is imported when needed, because numba takes 0.5 s to import.

A scanner reads plain lines, as nearly all are, and stops before any other line. The caller parses that line in Python, which
either reads it or explains what is wrong with it, and then scans on. So a scanner never has to report an error.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gordan.compiling import compiled_exactly

POINT = ord(".")
TRUE, FALSE = (np.frombuffer(word, np.uint8) for word in (b"true", b"false"))
DONE, FULL, STOPPED = 0, 1, 2  # at the end of the block; no space for more rows; before a line that is not plain


# ---- numbers --------------------------------------------------------------------------------------------------------

MIN_EXPONENT, MAX_EXPONENT = -330, 308  # the exponents in the table of powers


def _powers_of_five() -> tuple[Any, Any]:
    """Return for each q the 128-bit integer T, as two words, and the exponent e with T 2^e <= 5^q < (T + 1) 2^e."""
    words, exponents = [], []
    for q in range(MIN_EXPONENT, MAX_EXPONENT + 1):
        if q >= 0:
            e = (5**q).bit_length() - 128
            T = 5**q >> e if e >= 0 else 5**q << -e
        else:
            e = -127 - (5**-q).bit_length()
            T = (1 << -e) // 5**-q
        words.append([T >> 64, T & (2**64 - 1)])
        exponents.append(e)
    return np.array(words, dtype=np.uint64), np.array(exponents, dtype=np.int64)


POWERS_OF_FIVE, EXPONENTS = _powers_of_five()
POWERS_OF_TEN = np.array([10.0**k for k in range(23)])  # exact
POWERS_OF_TWO = np.array([math.ldexp(1.0, e) for e in range(-1022, 972)])

U0, U1, U10, U32, U63 = (np.uint64(k) for k in (0, 1, 10, 32, 63))
LOW_HALF, ALL_ONES = np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFFFFFFFFFFFF)
MAX_EXACT = np.uint64(2**53)


@compiled_exactly
def _wide_product(a, b):
    """Return the 128-bit product of two 64-bit words as (high, low)."""
    a1, a0, b1, b0 = a >> U32, a & LOW_HALF, b >> U32, b & LOW_HALF
    low, middle, other = a0 * b0, a1 * b0, a0 * b1
    carry = (low >> U32) + (middle & LOW_HALF) + (other & LOW_HALF)
    return a1 * b1 + (middle >> U32) + (other >> U32) + (carry >> U32), (carry << U32) | (low & LOW_HALF)


@compiled_exactly
def _normalized(w):
    """Shift w, which is not 0, to the left until its top bit is set; return it with the number of bits."""
    shift = 0
    for step in (32, 16, 8, 4, 2, 1):
        if w >> np.uint64(64 - step) == U0:
            w <<= np.uint64(step)
            shift += step
    return w, shift


@compiled_exactly
def _top_bits(high, low):
    """Round the numbers in [M, M + 2), M = (high, low), to their top 53 bits.

    Returns whether all of them round to the same value, that value, and how many bits of `high` were rounded away.
    """
    below = U10 + (high >> U63)
    half = U1 << (below - U1)
    rest = high & ((half << U1) - U1)
    known = not ((rest == half and low == U0) or (rest == half - U1 and low == ALL_ONES))
    m = high >> below
    return known, m + U1 if rest >= half else m, below  # 2^53 at most, still exact


@compiled_exactly
def decimal_to_float(w, q):
    """Return (True, w 10^q rounded to the nearest float64), or (False, 0.0) if this arithmetic cannot decide.

    With w shifted to have its top bit set, w 5^q lies in [w T, w T + w) 2^e. Of the 192 bits of w T the upper 128 are kept as M,
    so the value is in [M, M + 2) in units of the last of them. The result takes the top 53 bits of M; the rest decides the
    rounding, unless it is so close to one half that the interval contains it. (The idea is that of Lemire, "Number parsing at a
    gigabyte per second", 2021; here undecided cases are left to Python.)
    """
    if w == U0:
        return True, 0.0
    if q == 0:
        return True, np.float64(w)  # the processor rounds to nearest
    if w <= MAX_EXACT and -22 <= q <= 22:  # both factors are exact, so there is one rounding
        return True, np.float64(w) * POWERS_OF_TEN[q] if q > 0 else np.float64(w) / POWERS_OF_TEN[-q]
    if q < MIN_EXPONENT or q > MAX_EXPONENT:
        return False, 0.0
    w, shift = _normalized(w)
    high, low = _wide_product(w, POWERS_OF_FIVE[q - MIN_EXPONENT, 0])
    more = _wide_product(w, POWERS_OF_FIVE[q - MIN_EXPONENT, 1])[0]
    low += more
    if low < more:
        high += U1
    known, m, below = _top_bits(high, low)
    exponent = np.int64(below) + 128 + EXPONENTS[q - MIN_EXPONENT] + q - shift
    if not known or exponent < -1022 or exponent > 970:  # subnormal or infinite, or close to it: left to Python
        return False, 0.0
    return True, np.float64(m) * POWERS_OF_TWO[exponent + 1022]


@compiled_exactly
def _sign(text, p):
    """Return whether there is a minus sign at text[p], and the position after the sign, if there is one."""
    c = text[p]
    return c == 45, p + 1 if c == 45 or c == 43 else p


@compiled_exactly
def _exponent(text, p):
    """Return (True, exponent, end) for one to five digits at text[p] with an optional sign, else False."""
    minus, p = _sign(text, p)
    c, e, places = text[p], 0, 0
    while 48 <= c <= 57 and places < 6:
        e = 10 * e + np.int64(c - 48)
        places += 1
        p += 1
        c = text[p]
    return 0 < places < 6, -e if minus else e, p


@compiled_exactly
def scan_number(text, p, point):
    """Return (True, value, end) for the number that starts at text[p], or (False, 0.0, p) if it is not plainly a number.

    `point` is the decimal mark. `text` must contain a character after the number that ends it, at least a newline, so that the
    scan stays inside it.
    """
    start = p
    negative, p = _sign(text, p)
    c = text[p]
    w, q, digits, kept, cut = U0, 0, 0, 0, False
    while 48 <= c <= 57:  # repeated after the point: one function for both, however written, costs a quarter of the speed
        digits += 1
        if kept < 19:
            w = w * np.uint64(10) + np.uint64(c - 48)
            if w != U0:
                kept += 1
        else:
            q += 1
            cut = True
        p += 1
        c = text[p]
    if c == point:
        p += 1
        c = text[p]
        while 48 <= c <= 57:
            digits += 1
            if kept < 19:
                w = w * np.uint64(10) + np.uint64(c - 48)
                if w != U0:
                    kept += 1
                q -= 1
            else:
                cut = True
            p += 1
            c = text[p]
    if digits == 0:
        return False, 0.0, start
    if c | 32 == 101:  # e E
        whole, e, p = _exponent(text, p + 1)
        if not whole:
            return False, 0.0, start
        q += e
    known, value = decimal_to_float(w, q)
    if cut and known:  # the value is between w and w + 1 in the 19th digit, which is enough if both round to the same float
        known, above = decimal_to_float(w + U1, q)
        known &= value == above
    if not known:
        return False, 0.0, start
    return True, -value if negative else value, p


# ---- labels ---------------------------------------------------------------------------------------------------------

MAX_LABELS = 64  # distinct labels in one call of a scanner


@compiled_exactly
def _label(text, start, end, line, labels, count):
    """Return the index of the label text[start:end] among the distinct labels, and their number, which it may increase.

    A label is stored as (start, end, line) of its first occurrence.
    """
    for k in range(count):
        if labels[k, 1] - labels[k, 0] == end - start:
            same = True
            for i in range(end - start):
                if text[labels[k, 0] + i] != text[start + i]:
                    same = False
                    break
            if same:
                return k, count
    labels[count, 0], labels[count, 1], labels[count, 2] = start, end, line
    return count, count + 1


# ---- lines ----------------------------------------------------------------------------------------------------------


@compiled_exactly
def _skip_blanks(text, p):
    """Return the position after the spaces and tabs at text[p]."""
    while text[p] == 32 or text[p] == 9:
        p += 1
    return p


@compiled_exactly
def _ends_line(c):
    """Return whether a line of svmlight, without its comment, ends at this character."""
    return c == 10 or c == 13 or c == 35


@compiled_exactly
def _next_line(text, p):
    """Return (True, start of the next line) if this line ends at text[p]."""
    if text[p] == 13:
        p += 1
    return text[p] == 10, p + 1


# ---- svmlight -------------------------------------------------------------------------------------------------------


@compiled_exactly
def _entries(text, p, most_index, indices, values, entries):
    """Read the entries from text[p] on: return (True, end of the line, number of entries), or False if one is not plain."""
    last = -1
    while True:
        p = _skip_blanks(text, p)
        c = text[p]
        if _ends_line(c):
            while text[p] != 10 and text[p] != 13:  # a comment
                p += 1
            return True, p, entries
        index, digits = 0, 0
        while 48 <= c <= 57 and digits < 11:
            index = 10 * index + np.int64(c - 48)
            digits += 1
            p += 1
            c = text[p]
        if digits == 0 or c != 58 or index <= last or index > most_index:
            return False, p, entries
        last = index
        plain, value, p = scan_number(text, p + 1, POINT)
        if not plain or text[p] > 32:  # control characters up to 32, but for blanks and line ends, stop the next iteration
            return False, p, entries
        indices[entries] = index
        values[entries] = value
        entries += 1


@compiled_exactly
def scan_svmlight(text, p, line, labelled, most_index, into):
    """Scan rows of svmlight text from byte p on; return (state, p, line, rows, entries, distinct labels).

    `into` are the arrays indices, values, ends, which, labels: row i has the entries up to ends[i], with indices as in the file,
    and the label labels[which[i]], which is (start, end, line).
    """
    indices, values, ends, which, labels = into
    rows, entries, size, distinct = 0, 0, len(text), 0
    while p < size:
        if rows == len(ends) or distinct == len(labels):
            return FULL, p, line, rows, entries, distinct
        start, first = p, entries
        p = label_at = _skip_blanks(text, p)
        blank = _ends_line(text[p])
        while labelled and text[p] > 32 and text[p] != 35 and text[p] != 58:
            p += 1
        label_to = p
        plain = blank or text[p] <= 32 or not labelled
        if plain:
            plain, p, entries = _entries(text, p, most_index, indices, values, entries)
        if plain:
            plain, p = _next_line(text, p)
        if not plain:
            return STOPPED, start, line, rows, first, distinct
        if not blank:
            which[rows], distinct = _label(text, label_at, label_to, line, labels, distinct)
            ends[rows] = entries
            rows += 1
        line += 1
    return DONE, p, line, rows, entries, distinct


# ---- tables ---------------------------------------------------------------------------------------------------------


@compiled_exactly
def _match_word(text, p, low):
    """Return whether text[p] starts the lower-case word `low`, whatever the case of the text, and where it ends."""
    for letter in low:
        if text[p] | 32 != letter:
            return False, p
        p += 1
    return True, p


@compiled_exactly
def _number_cell(text, p, point):
    """Return (True, value, end) for a number with optional spaces around it; true and false are 1 and 0."""
    while text[p] == 32:
        p += 1
    first = text[p] | 32
    if first == TRUE[0] or first == FALSE[0]:
        plain, p = _match_word(text, p, TRUE if first == TRUE[0] else FALSE)
        value = 1.0 if first == TRUE[0] else 0.0
    else:
        plain, value, p = scan_number(text, p, point)
    while plain and text[p] == 32:
        p += 1
    return plain, value, p


@compiled_exactly
def _end_of_text(text, p, delimiter, quoted):
    """Return where the text of a cell ends that starts at text[p]."""
    while text[p] != 34 and text[p] != 10 and text[p] != 13 and (quoted or text[p] != delimiter):
        p += 1
    return p


@compiled_exactly
def _table_row(text, p, delimiter, point, roles, x):
    """Read a row into x: return (True, end of the row, start and end of its label), or False if a cell is not plain."""
    label_at, label_to, last = p, p, len(roles) - 1
    for j in range(len(roles)):
        quoted = text[p] == 34
        if quoted:
            p += 1
        if roles[j] >= 0:
            plain, x[roles[j]], p = _number_cell(text, p, point if quoted or point != delimiter else 0)
        else:
            begin, p, plain = p, _end_of_text(text, p, delimiter, quoted), True
            if roles[j] == -1:
                label_at, label_to = begin, p
        if quoted:
            plain = plain and text[p] == 34
            p += 1
        if j < last:
            plain = plain and text[p] == delimiter
            p += 1
        if not plain:
            return False, p, label_at, label_to
    return True, p, label_at, label_to


@compiled_exactly
def scan_table(text, p, line, delimiter, point, roles, X, which, labels):
    """Scan rows of delimited text from byte p on; return (state, p, line, rows, distinct labels).

    Field j of a row goes to column roles[j] of X; -1 marks the label and -2 an unused field. Row i has the label
    labels[which[i]].
    """
    rows, size, distinct = 0, len(text), 0
    while p < size:
        if rows == len(X) or distinct == len(labels):
            return FULL, p, line, rows, distinct
        start = p
        plain, p, label_at, label_to = _table_row(text, p, delimiter, point, roles, X[rows])
        if plain:
            plain, p = _next_line(text, p)
        if not plain:
            return STOPPED, start, line, rows, distinct
        which[rows], distinct = _label(text, label_at, label_to, line, labels, distinct)
        rows += 1
        line += 1
    return DONE, p, line, rows, distinct
