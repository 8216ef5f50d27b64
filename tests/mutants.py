"""Mutation testing: `make mutants SHARD=certificates/bounds`. A mutant is one small change of a module; some test must notice it.

The changes are mutmut's. It leaves out what is decorated (properties) and constants, and starts pytest anew for each mutant. So
here one process collects the tests, runs them, notes which functions each one reaches, and for every mutant forks a child that
puts the changed code in place of the old one and runs the tests that reach it until one fails, or their time is spent.

Left out are texts for people (whatever stands in a `raise`, strings with a space in them), types, and changes that are none.
What was decided is kept in `.mutants/` by the code of the function and of its change, without comments and docstrings, and is not
tried again; survivors are, when the tests have changed.
"""

from __future__ import annotations

import argparse
import ast
import bisect
import difflib
import hashlib
import importlib
import inspect
import itertools
import json
import os
import random
import re
import resource
import signal
import sys
import threading
import time
import tomllib
import types
from collections import Counter, defaultdict
from pathlib import Path

import libcst as cst
import pytest
from mutmut.mutation.file_mutation import MutationVisitor, deep_replace
from mutmut.mutation.mutators import mutation_operators, operator_arg_removal, operator_string
from mutmut.mutation.pragma_handling import IgnoredCode

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "gordan"
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutants"]
# Seconds of tests that a mutant gets; one test may take a third of them, and its cases that are drawn a ninth.
BUDGET = 3.0
QUIET = ["-qq", "--tb=no", "--assert=plain", "-p", "no:faulthandler", "-p", "no:cacheprovider", "--hypothesis-profile=mutants"]
MESSAGE = re.compile(r"\s")
# Types, fields of dataclasses (of which __init__ is made), what NumPy warns of, copies where none is needed, guards of `zip`.
LEFT_OUT = re.compile(r"^(Literal\[|\w+: TypeAlias|(\w+: .* = )?field\(|np\.errstate\(|(copy|strict) ?= ?)")


# ---- what is changed ------------------------------------------------------------------------------------------------


def message(node):
    """Whether this is text for people."""
    if isinstance(node, cst.FormattedString):
        return any(isinstance(part, cst.FormattedStringText) and MESSAGE.search(part.value) for part in node.parts)
    return isinstance(node, cst.SimpleString | cst.ConcatenatedString) and bool(
        MESSAGE.search(cst.Module([]).code_for_node(node))
    )


def words(node):
    """Another word, for a string that is one."""
    return [] if message(node) else [*operator_string(node)][:1]


def arguments(node):
    """mutmut's change of arguments, but for messages and those that are left out."""
    left = {id(part.value) for part in node.args if message(part.value) or LEFT_OUT.search(cst.Module([]).code_for_node(part))}
    return [new for new in operator_arg_removal(node) if left <= {id(part.value) for part in new.args}]


OURS = {operator_string: words, operator_arg_removal: arguments}


class Changes(MutationVisitor):
    """mutmut's visitor, which also goes into what is decorated, but not into messages and types."""

    def __init__(self):
        super().__init__(
            [(kind, OURS.get(operator, operator)) for kind, operator in mutation_operators], IgnoredCode(*[set()] * 3)
        )

    def _skip_node_and_children(self, node):
        if isinstance(node, cst.FunctionDef):
            return False
        text = cst.Module([]).code_for_node(node) if isinstance(node, cst.Call | cst.Subscript | cst.Arg | cst.AnnAssign) else ""
        return (
            bool(LEFT_OUT.search(text)) or isinstance(node, cst.Raise) or message(node) or super()._skip_node_and_children(node)
        )


class Mutant:
    """A change in a function of a module, or in none: ""."""

    def __init__(self, module, name, texts, top, part, function, change):
        self.module, self.name, self.function, self._texts, self._top, self._change = module, name, function, texts, top, change
        before, after = module.code_for_node(part), module.code_for_node(self._changed(part))
        self.text = after
        trees = [ast.dump(plain_tree(text)) for text in (before, after)]
        self.changes = trees[0] != trees[1]  # 1e280 + 1 is 1e280
        self.key = hashlib.sha256("\n".join((name, *trees)).encode()).hexdigest()[:16]
        self.shown = "\n".join(
            line
            for line in difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
            if line[:2] not in ("--", "++", "@@")
        )

    def _changed(self, node):
        return deep_replace(node, self._change.original_node, self._change.mutated_node)

    def source(self):
        """The module with this change."""
        new = self.module.code_for_node(self._changed(self._top))
        return "".join(new if top is self._top else text for top, text in self._texts.items())


def mutants(name):
    """All mutants of a module."""
    wrapper = cst.MetadataWrapper(cst.parse_module((SOURCE / f"{name}.py").read_text()))
    module, changes = wrapper.module, Changes()
    wrapper.visit(changes)
    texts = {top: module.code_for_node(top) for top in module.body}
    owner, names = {}, {}
    for top in module.body:
        inside = isinstance(top, cst.ClassDef)
        for part in top.body.body if inside else [top]:
            names[part] = (f"{top.name.value}." if inside else "") + part.name.value if isinstance(part, cst.FunctionDef) else ""
        owner |= dict.fromkeys(walk(top), top)
    found = {}
    for change in changes.mutations:
        top = owner[change.original_node]
        part = change.contained_by_top_level_function or top
        mutant = Mutant(module, name, texts, top, part, names.get(part, ""), change)
        if mutant.changes:
            found.setdefault(mutant.key, mutant)
    return [*found.values()]


def plain_tree(text):
    """The syntax tree without docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            del body[0]
    return tree


def sampled(every, size):
    """The mutants by module, or a random sample of this size: keys are hashes, and those that sort first are taken.

    A change of one function leaves the sample of the others as it was.
    """
    chosen = {*sorted(mutant.key for some in every.values() for mutant in some)[:size]}
    return {name: [mutant for mutant in some if mutant.key in chosen] for name, some in every.items()}


def walk(node):
    """The node and all below it."""
    yield node
    for child in node.children:
        yield from walk(child)


# ---- putting a change in place --------------------------------------------------------------------------------------


def plain(value):
    """The function of a method, property or static method, without what a decorator such as `ieee_floats` puts around it."""
    found = getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__func__", None) or value
    return inspect.unwrap(found) if isinstance(found, types.FunctionType) else found


def functions(scope):
    """The functions of a module by name, also those of its classes."""
    for value in vars(scope).values():
        if isinstance(value, type) and value.__module__ == scope.__name__:
            yield from functions(value)
        elif isinstance(plain(value), types.FunctionType):
            yield plain(value).__qualname__, plain(value)


def replaced(function, new):
    """Give a function the code and the defaults of another."""
    function.__defaults__, function.__kwdefaults__ = new.__defaults__, new.__kwdefaults__
    if not function.__closure__:  # what a dataclass makes has one
        function.__code__ = new.__code__


def put(module, mutant):
    """Put the change in place, in the module and wherever its constants have been imported."""
    flags = annotations.compiler_flag
    if mutant.function:
        scope = dict(vars(module))
        exec(compile(mutant.text, module.__file__, "exec", flags), scope)
        replaced(dict(functions(module))[mutant.function], plain(scope[mutant.function.rpartition(".")[2]]))
        return
    new = types.ModuleType(module.__name__)
    sys.modules[module.__name__] = new  # dataclasses look themselves up there
    exec(compile(mutant.source(), module.__file__, "exec", flags), new.__dict__)
    sys.modules[module.__name__] = module
    changed = dict(functions(new))
    for name, function in functions(module):  # whose defaults may be constants
        replaced(function, changed[name])
    for name, old in [*vars(module).items()]:
        constant = not isinstance(old, (types.ModuleType, types.FunctionType, type)) and not name.startswith("__")
        if constant and vars(new)[name] != old:
            for other in [*sys.modules.values()]:
                if getattr(other, "__name__", "").startswith("gordan") and vars(other).get(name) is old:
                    setattr(other, name, vars(new)[name])


# ---- running --------------------------------------------------------------------------------------------------------


class Shards:
    """A plugin of pytest that, in place of the tests, runs them for every mutant of some modules."""

    def __init__(self, names, options, out):
        self.jobs, self.again, self.sample, self.out = options.jobs, options.again, options.sample, out
        self.budget, self.failed, self.turn = options.seconds, False, {}
        self.modules = {name: importlib.import_module("gordan." + name.replace("/", ".")) for name in names}
        self.files = {module.__file__: name for name, module in self.modules.items()}
        assert {*self.files} == {str(SOURCE / f"{name}.py") for name in names}, "gordan is not the one of this folder"

    def say(self, text):
        print(text, file=self.out, flush=True)

    def pytest_runtest_logreport(self, report):
        self.failed |= report.failed

    def fails(self, item):
        """Run a test."""
        self.failed = False
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        return self.failed

    def pytest_runtestloop(self, session):
        """Look at the tests, then at one module after the other."""
        begin = time.time()
        reach = dict(self.drawn(session.items))
        seconds = dict(zip(reach, self.seconds(list(reach)), strict=True))
        slow = [item.nodeid for item in reach if seconds[item] > self.budget / 3]
        self.tests = {item: (found, seconds[item]) for item, found in reach.items() if seconds[item] <= self.budget / 3}
        asked = Counter()
        for item in sorted(self.tests, key=seconds.get):  # the quick ones first, and not one test with all its cases
            asked[test_of(item)] += 1
            self.turn[item] = seconds[item] * asked[test_of(item)]
        total = sum(seconds[item] for item in self.tests)
        self.say(f"{len(self.tests)} tests of {total:.1f} s, looked at in {time.time() - begin:.0f} s")
        self.say(f"too slow, left out: {', '.join(slow) or 'none'}")
        content = b"".join(path.read_bytes() for path in sorted({item.path for item in session.items}))
        self.digest = hashlib.sha256(content).hexdigest()[:16]
        every = sampled({name: mutants(name) for name in self.modules}, self.sample)
        for name in self.modules:
            self.decide(name, every[name])
        return True

    def drawn(self, items):
        """Of each test as many cases, in random order, as take a ninth of the budget, and the functions that each one reaches."""
        cases = defaultdict(list)
        for item in items:
            cases[test_of(item)].append(item)
        for some in cases.values():
            random.Random(0).shuffle(some)
            yield some[0], self.reached(some[0])  # this one may have to import and compile
            end = time.process_time() + self.budget / 9
            for item in some[1:]:
                if time.process_time() < end:
                    yield item, self.reached(item)

    def reached(self, item):
        """The functions that a test reaches."""
        found = set()

        def seen(frame, event, _):
            if event == "call" and frame.f_code.co_filename in self.files:
                found.add((self.files[frame.f_code.co_filename], frame.f_code.co_qualname.partition(".<locals>")[0]))

        threading.setprofile(seen)
        sys.setprofile(seen)
        failed = self.fails(item)
        sys.setprofile(None)
        threading.setprofile(None)
        assert not failed, f"{item.nodeid} fails without any change"
        return found

    def seconds(self, items):
        """What each test takes in a child: there they must pass as well."""
        file = kept(f"seconds.{os.getpid()}")
        pid = os.fork()
        if not pid:
            found = []
            for item in items:
                begin = time.process_time()
                if self.fails(item):
                    os._exit(1)
                found.append(time.process_time() - begin)
                file.write_text(json.dumps(found))
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        found = json.loads(file.read_text())
        file.unlink()
        assert code == 0, f"{items[len(found)].nodeid} fails in a child without any change"
        return found

    def decide(self, name, every):
        """Run those mutants of one module that are not settled."""
        used = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        file, kills, running, done, begin = kept(name), defaultdict(Counter), {}, 0, time.time()
        known = read(file)
        settled = {key for key, one in known.items() if one["killed"] or (one["tests"] == self.digest and not self.again)}
        left = sorted((mutant for mutant in every if mutant.key not in settled), key=lambda mutant: mutant.key in known)
        self.say(f"{name}: {len(left)} mutants to decide")
        while left or running:
            while left and len(running) < self.jobs:
                mutant = left.pop(0)
                order = self.order(mutant, kills)
                running[self.start(mutant, order)] = mutant, order
            pid, status = os.wait()
            mutant, order = running.pop(pid)
            # a child exits with 0 if all is well, with 1 if the source cannot be run, with 2 if a test fails, and says which; or
            # it ends by a signal: out of time or memory, but for the alarm, which says nothing of the mutant
            code = os.waitstatus_to_exitcode(status)
            if code == -signal.SIGALRM:
                self.say(f"undecided in {mutant.function}:\n{mutant.shown}")
                continue
            killer = {0: None, 1: "import"}.get(code, "time")
            if code == 2:
                killer = order[int(kept("by").with_suffix(f".{pid}").read_text())].nodeid
                kills[mutant.function][killer] += 1
            kept("by").with_suffix(f".{pid}").unlink(missing_ok=True)
            record = {"key": mutant.key, "function": mutant.function, "killed": code != 0, "by": killer, "tests": self.digest}
            with file.open("a") as out:
                out.write(json.dumps(record | {"shown": mutant.shown}) + "\n")
            done += 1
            if code == 0 or done % 100 == 0:
                change = f"; survives in {mutant.function or 'no function'}:\n{mutant.shown}" if code == 0 else ""
                self.say(f"{done} of {done + len(left) + len(running)} in {time.time() - begin:.0f} s{change}")
        used = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - used
        self.say(f"{name}: {done} decided in {time.time() - begin:.0f} s, {used:.0f} s of a processor")

    def order(self, mutant, kills):
        """The tests that reach the function, those that caught others before first, as many as the budget has time for."""
        own, of_all = kills[mutant.function], sum(kills.values(), Counter())
        place = mutant.name, mutant.function
        reaching = [item for item, (found, _) in self.tests.items() if place in found or not mutant.function]
        reaching.sort(key=lambda item: (-own[item.nodeid], -of_all[item.nodeid], self.turn[item]))
        spent = list(itertools.accumulate(self.tests[item][1] for item in reaching))
        return reaching[: bisect.bisect(spent, self.budget)]

    def start(self, mutant, order):
        """Fork a child that runs these tests with the mutant in place."""
        pid = os.fork()
        if pid:
            return pid
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(60 + 30 * int(self.budget))
            resource.setrlimit(resource.RLIMIT_CPU, (5 + 4 * int(self.budget), 9 + 4 * int(self.budget)))
            resource.setrlimit(resource.RLIMIT_AS, (24 << 30, 24 << 30))
            put(self.modules[mutant.name], mutant)
        except BaseException:
            os._exit(1)
        for k, item in enumerate(order):
            try:
                failed = self.fails(item)
            except BaseException:
                failed = True
            if failed:
                kept("by").with_suffix(f".{os.getpid()}").write_text(str(k))
                os._exit(2)
        os._exit(0)


def test_of(item):
    """The test that this is a case of."""
    return item.nodeid.partition("[")[0]


def kept(name):
    """Where it is written what was decided of a module."""
    return ROOT / ".mutants" / f"{name.replace('/', '.')}.jsonl"


def read(file):
    """What was decided, by key; the last word counts."""
    return {one["key"]: one for one in map(json.loads, file.read_text().splitlines())} if file.exists() else {}


def tell(names, survivors):
    """The table, and the survivors."""
    print(f"{'module':<28}{'mutants':>8}{'decided':>8}{'killed':>8}{'survive':>8}")
    for name in names:
        every, known = mutants(name), read(kept(name))
        found = [known[m.key] for m in every if m.key in known]
        killed = sum(one["killed"] for one in found)
        print(f"{name:<28}{len(every):>8}{len(found):>8}{killed:>8}{len(found) - killed:>8}  {killed / max(1, len(found)):.1%}")
        for one in found if survivors else ():
            if not one["killed"]:
                print(f"  {one['function']}\n{one['shown']}")


def main():
    """Run the shards, those of a package in one process, and report."""
    packages = CONFIG["packages"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shard", nargs="*", help="modules, or how their names begin: certificates, geometry/sets")
    parser.add_argument("--jobs", type=int, default=1 + (os.cpu_count() or 1))
    parser.add_argument("--sample", type=int, help="decide only a random sample of so many mutants in each package of modules")
    parser.add_argument("--seconds", type=float, default=BUDGET, help="processor time of the tests that a mutant gets")
    parser.add_argument("--again", action="store_true", help="try survivors again, although the tests are the same")
    parser.add_argument("--table", action="store_true", help="run nothing; say what was decided")
    parser.add_argument("--survivors", action="store_true", help="show what survived, too")
    options = parser.parse_args()
    asked = [
        [name for name in package["modules"] if not options.shard or name.startswith(tuple(options.shard))]
        for package in packages
    ]
    kept("").parent.mkdir(exist_ok=True)
    for names, package in zip(asked, packages, strict=True):
        pid = 0 if options.table or not names else os.fork()
        if pid and os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
            sys.exit(f"{', '.join(names)}: the tests could not be run")
        if names and not options.table and not pid:
            out = os.fdopen(os.dup(1), "w")
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os._exit(int(pytest.main([*QUIET, *package["tests"]], plugins=[Shards(names, options, out)])))
    tell([name for names in asked for name in names], options.survivors)


if __name__ == "__main__":
    main()
