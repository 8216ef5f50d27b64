"""The compiled scanners for long text files. Imported when one is first read, because numba takes 0.5 s to import.

A scanner takes the plain lines, as nearly all are, and stops before any other: the caller parses that line in Python, which reads
it or says what is wrong with it, and goes on behind it. So a scanner never has to explain anything, and decides nothing alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gordan.compiling import compiled_exactly

POINT = ord(".")
TRUE, FALSE = (np.frombuffer(word, np.uint8) for word in (b"true", b"false"))
DONE, FULL, STOPPED = 0, 1, 2  # at the end of the block; no room for more rows; before a line that is not plain


# ---- numbers --------------------------------------------------------------------------------------------------------

LEAST, MOST = -330, 308  # powers of ten in the table


def _powers_of_five() -> tuple[Any, Any]:
    """For each q the 128-bit integer T and the exponent e with T 2^e <= 5^q < (T + 1) 2^e, T as two words."""
    words, exponents = [], []
    for q in range(LEAST, MOST + 1):
        if q >= 0:
            e = (5**q).bit_length() - 128
            T = 5**q >> e if e >= 0 else 5**q << -e
        else:
            e = -127 - (5**-q).bit_length()
            T = (1 << -e) // 5**-q
        words.append([T >> 64, T & (2**64 - 1)])
        exponents.append(e)
    return np.array(words, dtype=np.uint64), np.array(exponents, dtype=np.int64)


FIVES, EXPONENTS = _powers_of_five()
TENS = np.array([10.0**k for k in range(23)])  # exact
TWOS = np.array([math.ldexp(1.0, e) for e in range(-1022, 972)])

U0, U1, U10, U32, U63 = (np.uint64(k) for k in (0, 1, 10, 32, 63))
LOW_HALF, ALL_ONES = np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFFFFFFFFFFFF)
EXACT = np.uint64(2**53)


@compiled_exactly
def _product(a, b):
    """The 128-bit product of two 64-bit words, as (high, low)."""
    a1, a0, b1, b0 = a >> U32, a & LOW_HALF, b >> U32, b & LOW_HALF
    low, middle, other = a0 * b0, a1 * b0, a0 * b1
    carry = (low >> U32) + (middle & LOW_HALF) + (other & LOW_HALF)
    return a1 * b1 + (middle >> U32) + (other >> U32) + (carry >> U32), (carry << U32) | (low & LOW_HALF)


@compiled_exactly
def _shifted(w):
    """w, which is not 0, with its top bit set, and by how many bits it was shifted for that."""
    shift = 0
    for step in (32, 16, 8, 4, 2, 1):
        if w >> np.uint64(64 - step) == U0:
            w <<= np.uint64(step)
            shift += step
    return w, shift


@compiled_exactly
def _top_bits(high, low):
    """(True, the top 53 bits of [M, M + 2) rounded to nearest, how many bits of `high` are rounded away), M = (high, low)."""
    below = U10 + (high >> U63)
    half = U1 << (below - U1)
    rest = high & ((half << U1) - U1)
    known = not ((rest == half and low == U0) or (rest == half - U1 and low == ALL_ONES))
    m = high >> below
    return known, m + U1 if rest >= half else m, below  # 2^53 at most, still exact


@compiled_exactly
def decimal_to_float(w, q):
    """(True, w 10^q rounded to the nearest float64), or (False, 0.0) where this cannot tell.

    With w shifted to have its top bit set, w 5^q lies in [w T, w T + w) 2^e. Of the 192 bits of w T the upper 128 are kept, M:
    the value is in [M, M + 2) in units of the last of them. The result takes the top 53 bits of M; the rest decides the
    rounding, unless it is so close to one half that the interval reaches across. (The idea is that of
    Lemire, "Number parsing at a gigabyte per second", 2021; here cases in doubt are left to Python.)
    """
    if w == U0:
        return True, 0.0
    if q == 0:
        return True, np.float64(w)  # the processor rounds to nearest
    if w <= EXACT and -22 <= q <= 22:  # both factors are exact, so one rounding
        return True, np.float64(w) * TENS[q] if q > 0 else np.float64(w) / TENS[-q]
    if q < LEAST or q > MOST:
        return False, 0.0
    w, shift = _shifted(w)
    high, low = _product(w, FIVES[q - LEAST, 0])
    more = _product(w, FIVES[q - LEAST, 1])[0]
    low += more
    if low < more:
        high += U1
    known, m, below = _top_bits(high, low)
    exponent = np.int64(below) + 128 + EXPONENTS[q - LEAST] + q - shift
    if not known or exponent < -1022 or exponent > 970:  # subnormal or infinite, or near: left to Python
        return False, 0.0
    return True, np.float64(m) * TWOS[exponent + 1022]


@compiled_exactly
def _sign(text, p):
    """Whether there is a minus at text[p], and what is behind it, or a plus."""
    c = text[p]
    return c == 45, p + 1 if c == 45 or c == 43 else p


@compiled_exactly
def _exponent(text, p):
    """(True, exponent, end) of the digits at text[p], with or without a sign; False for none, or six of them."""
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
    """(True, value, end) for the number that starts at text[p]; (False, 0.0, p) for anything that is not plainly one.

    `point` is the decimal mark. Something that ends a number (a newline at least) must follow in `text`, so that the scan stays
    inside it.
    """
    start = p
    negative, p = _sign(text, p)
    c = text[p]
    w, q, digits, kept, cut = U0, 0, 0, 0, False
    while 48 <= c <= 57:  # and again behind the point: one function for both, however it is written, costs a quarter of the speed
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
    if cut and known:  # between w and w + 1 in the 19th digit: fine where both round to the same
        known, above = decimal_to_float(w + U1, q)
        known &= value == above
    if not known:
        return False, 0.0, start
    return True, -value if negative else value, p


# ---- labels ---------------------------------------------------------------------------------------------------------

LABELS = 64  # distinct ones in one call of a scanner


@compiled_exactly
def _label(text, start, end, line, labels, count):
    """The number of the label text[start:end] among the `count` so far, each a (start, end, line of the first); and the count
    with it."""
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
def _blanks(text, p):
    """Where the spaces and tabs at text[p] end."""
    while text[p] == 32 or text[p] == 9:
        p += 1
    return p


@compiled_exactly
def _ends(c):
    """Whether a line of svmlight ends at this letter, but for a comment."""
    return c == 10 or c == 13 or c == 35


@compiled_exactly
def _next_line(text, p):
    """(True, where the next line starts) if this one ends at text[p]."""
    if text[p] == 13:
        p += 1
    return text[p] == 10, p + 1


# ---- svmlight -------------------------------------------------------------------------------------------------------


@compiled_exactly
def _entries(text, p, most_index, indices, values, entries):
    """The entries from text[p] on: (True, end of the line, how many there are now), or False if one is not plain."""
    last = -1
    while True:
        p = _blanks(text, p)
        c = text[p]
        if _ends(c):
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
        if not plain or text[p] > 32:  # of what is below, all but blanks and ends of lines is refused in the next turn
            return False, p, entries
        indices[entries] = index
        values[entries] = value
        entries += 1


@compiled_exactly
def scan_svmlight(text, p, line, labelled, most_index, into):
    """Rows of svmlight text from byte p on: (state, p, line, rows, entries, distinct labels).

    `into` are the arrays indices, values, ends, which, labels: row i has the entries up to ends[i], indices as written, and the
    label labels[which[i]], a (start, end, line).
    """
    indices, values, ends, which, labels = into
    rows, entries, size, distinct = 0, 0, len(text), 0
    while p < size:
        if rows == len(ends) or distinct == len(labels):
            return FULL, p, line, rows, entries, distinct
        start, first = p, entries
        p = label_at = _blanks(text, p)
        blank = _ends(text[p])
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
def _word(text, p, low):
    """Whether the letters at text[p] are those of `low`, which are small, in either case; and where they end."""
    for letter in low:
        if text[p] | 32 != letter:
            return False, p
        p += 1
    return True, p


@compiled_exactly
def _number_cell(text, p, point):
    """(True, value, end) for a number with spaces around it; true and false are 1 and 0."""
    while text[p] == 32:
        p += 1
    first = text[p] | 32
    if first == TRUE[0] or first == FALSE[0]:
        plain, p = _word(text, p, TRUE if first == TRUE[0] else FALSE)
        value = 1.0 if first == TRUE[0] else 0.0
    else:
        plain, value, p = scan_number(text, p, point)
    while plain and text[p] == 32:
        p += 1
    return plain, value, p


@compiled_exactly
def _end_of_text(text, p, delimiter, quoted):
    """Where the text of a cell ends that starts at text[p]."""
    while text[p] != 34 and text[p] != 10 and text[p] != 13 and (quoted or text[p] != delimiter):
        p += 1
    return p


@compiled_exactly
def _table_row(text, p, delimiter, point, roles, x):
    """The cells of a row into x: (True, end of the row, start and end of its label), or False if one is not plain."""
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
    """Rows of delimited text from byte p on: (state, p, line, rows, distinct labels).

    Field j of a row goes to column roles[j] of X; -1 is the label, -2 is not wanted. Row i has the label labels[which[i]].
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
