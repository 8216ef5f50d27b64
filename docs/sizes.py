"""Count the lines of the packages, and the sizes of functions and classes: the tables of decision 5.

python docs/sizes.py               # of this checkout, or of the one in the folder that is named
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

MOST_ARGUMENTS, MOST_FIELDS, LONG_FUNCTION, LONG_FILE = 8, 12, 40, 500
NOT_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
# What a test file is about, by the beginning of its name; a file belongs to the first group that fits.
TESTS = {
    "certificates and their checkers": "certificate problem margin_proofs verif exact bounds proof_reads standalone loss_bounds "
    "loss_certificates optima multinomial mutations changed_data floats",
    "rows": "rows accepted blocks block_ascent visiting cluster device memory blas",
    "files": "io dialects model_file trace_files checkpoint out_of_core",
    "games and methods": "geometry learners dynamics play equivalences theorems sequel matrix soak loss_games",
    "estimators": "estimator linear_classifier multilabel labels",
    "command line, reports and plots": "cli race plots pages",
    "input, signatures, the repository": "bad_ security signatures architecture paper_map release",
    "finders and verdicts": "",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_text(statement: ast.stmt) -> bool:
    """Return whether a statement is a docstring: of a module, class, function or attribute."""
    return (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)
    )


def code_lines(text: str) -> int:
    """Return the number of lines without docstrings, comments and blank lines."""
    owners = (node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Module, ast.ClassDef, Function)))
    found = (statement for owner in owners for statement in owner.body if is_text(statement))
    texts = {line for statement in found for line in range(statement.lineno, (statement.end_lineno or 0) + 1)}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {line for token in tokens if token.type not in NOT_CODE for line in range(token.start[0], token.end[0] + 1)}
    return len(lines - texts)


def body_lines(function: Function) -> int:
    """Return the number of lines of the body, without the docstring."""
    body = function.body[1:] if is_text(function.body[0]) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def arguments(function: Function) -> int:
    """Return the number of arguments besides self and cls."""
    names = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return len(names) - (bool(names) and names[0].arg in ("self", "cls"))


def fields(owner: ast.ClassDef) -> int:
    """Return the number of fields: those that are annotated, and attributes of self that `__init__` sets."""
    names = {ast.unparse(line.target) for line in owner.body if isinstance(line, ast.AnnAssign) and is_field(line)}
    inits = [line for line in owner.body if isinstance(line, Function) and line.name == "__init__"]
    for node in (node for init in inits for node in ast.walk(init)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            names.add(node.attr)
    return len(names)


def is_field(line: ast.AnnAssign) -> bool:
    """Return whether an annotated name of a class is a field of its instances."""
    return "ClassVar" not in ast.unparse(line.annotation)


def percentile(values: list[int], share: float) -> int:
    """Return the smallest value that at least this share does not exceed."""
    return sorted(values)[max(0, -int(-share * len(values) // 1) - 1)]


def tests(folder: Path) -> dict[str, list[int]]:
    """Return for each group of tests the number of files, of their lines, and of lines of code; also for what they share."""
    counts = {f"tests: {group}": [0, 0, 0] for group in (*TESTS, "what they share")}
    for path in sorted(folder.glob("*.py")):
        name, text = path.stem, path.read_text(encoding="utf-8")
        fits = (group for group, starts in TESTS.items() if name.removeprefix("test_").startswith((*starts.split(),) or ""))
        group = next(fits) if name.startswith("test_") else "what they share"
        added = 1, text.count("\n"), code_lines(text)
        counts[f"tests: {group}"] = [one + other for one, other in zip(counts[f"tests: {group}"], added, strict=True)]
    return {**counts, "tests together": [sum(column) for column in zip(*counts.values(), strict=True)]}


def report(folder: Path) -> Iterator[str]:
    """Yield the lines of the tables."""
    source = folder / "src" / "gordan"
    packages: dict[str, list[int]] = {}
    files, functions, wide, classes = [], [], [], []
    for path in sorted(source.rglob("*.py")):
        name, text = path.relative_to(source).as_posix(), path.read_text(encoding="utf-8")
        package = name.partition("/")[0] if "/" in name else "single modules"
        counts = packages.setdefault(package, [0, 0, 0])
        counts[:] = counts[0] + 1, counts[1] + text.count("\n"), counts[2] + code_lines(text)
        files.append((text.count("\n"), name))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, Function):
                functions.append((body_lines(node), f"{name}: {node.name}"))
                if arguments(node) > MOST_ARGUMENTS:
                    wide.append(f"{name}: {node.name}{' (decorated)' if node.decorator_list else ''}")
            if isinstance(node, ast.ClassDef) and fields(node) > MOST_FIELDS:
                classes.append(f"{name}: {node.name} ({fields(node)})")
    packages["together"] = [sum(counts[k] for counts in packages.values()) for k in range(3)]
    packages |= tests(folder / "tests")
    yield "| package | files | lines | lines of code |\n|---|---|---|---|"
    for package, counts in packages.items():
        yield f"| {package} | {' | '.join(f'{count:,}' for count in counts)} |"
    for what, sizes in (("files", files), ("functions", functions)):
        lines = [size for size, _ in sizes]
        middle, long = statistics.median(lines), percentile(lines, 0.95)
        yield f"\n{what}: {len(lines):,}, median {middle:g}, 95th percentile {long}; the longest:"
        yield from (f"  {size} {name}" for size, name in sorted(sizes, reverse=True)[:5])
    yield f"\nfiles above {LONG_FILE} lines: {sum(size > LONG_FILE for size, _ in files)}"
    yield f"functions above {LONG_FUNCTION} lines: {sum(size > LONG_FUNCTION for size, _ in functions)}"
    yield from (f"\nmore than {MOST_ARGUMENTS} arguments: {len(wide)}", *(f"  {name}" for name in wide))
    yield from (f"\nmore than {MOST_FIELDS} fields: {len(classes)}", *(f"  {name}" for name in classes))


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    print("\n".join(report(folder)))
