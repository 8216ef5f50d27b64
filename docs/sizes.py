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
    """Return the number of annotated fields."""
    return sum(isinstance(line, ast.AnnAssign) and "ClassVar" not in ast.unparse(line.annotation) for line in owner.body)


def percentile(values: list[int], share: float) -> int:
    """Return the smallest value that at least this share does not exceed."""
    return sorted(values)[max(0, -int(-share * len(values) // 1) - 1)]


def tests(folder: Path) -> list[int]:
    """Return the number of files with tests and what they use, of their lines, and of lines of code."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))]
    return [len(texts), sum(text.count("\n") for text in texts), sum(map(code_lines, texts))]


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
    packages["tests"] = tests(folder / "tests")
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
