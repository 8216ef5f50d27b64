"""Rows in torch tensors against the same rows in memory, and the Triton kernels in their interpreter against a slow twin.

Everything here runs on the CPU: torch operations as they are, kernels one program at a time in Python, so that problems for them
are small. What is summed in float32 is held to what its rounding allows, the rest to float64.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import oracle
import pytest
from catalogue import every_method, supports
from loss_problems import FAMILIES, KINDS
from modes import CAN_BE_SET, MODES, REASON, mode
from passes import Kept, log_total, passes_agree
from problems import separable
from scipy.sparse import csr_array
from scipy.special import logsumexp, softmax

import gordan
from gordan import InputError, rows
from gordan.certificates.matrix import Products
from gordan.certificates.problem import Problem
from gordan.geometry import Simplex
from gordan.solve import nearest_points, proximal

torch = pytest.importorskip("torch", reason="torch is missing: pip install 'gordan[gpu]'")

import device_problems  # noqa: E402

from gordan.rows import accept, device, storage  # noqa: E402
from gordan.rows.blocks import Blocks  # noqa: E402
from gordan.rows.device import Device  # noqa: E402
from gordan.rows.memory import Dense  # noqa: E402
from gordan.rows.reads import DenseBlock  # noqa: E402
from gordan.rows.tensors import TensorBlock, device_is_ieee, exact, placed  # noqa: E402

torch.set_num_threads(1)  # threads that wait for each other on busy cores cost more than they bring

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
# one row, one column, rows that fill no tile, several blocks; the interpreter takes its time, so fewer for the kernels
SHAPES = [("torch", shape) for shape in ((1, 1), (6, 1), (5, 3), (33, 16), (131, 50), (19, 300), (9000, 40))]
SHAPES += [("kernels", shape) for shape in ((1, 1), (131, 20), (11, 300))]


@pytest.fixture(autouse=True)
def _small_tensors_stay(monkeypatch):
    """Tensors stay tensors, however small."""
    monkeypatch.setattr(device, "MIN_ENTRIES", 0)


@pytest.fixture(scope="module")
def interpreter():
    """The kernels, to be run by Triton's interpreter (conftest turns it on)."""
    pytest.importorskip("triton", reason="triton is missing: pip install 'gordan[test-gpu]'")
    from gordan.rows import triton_kernels

    return triton_kernels


@pytest.fixture(params=["torch", "kernels"])
def fused(request):
    """Whether passes are kernels."""
    if request.param == "kernels":
        request.getfixturevalue("interpreter")
    return request.param == "kernels"


@pytest.fixture(params=SHAPES, ids=lambda case: f"{case[0]}-{case[1][0]}x{case[1][1]}")
def case(request):
    """Whether passes are kernels, and a shape."""
    way, shape = request.param
    if way == "kernels":
        request.getfixturevalue("interpreter")
    return way == "kernels", shape


def problem(n, d, dtype, seed=0):
    """A tensor, its values in float64, signs, halves, v and log p_0."""
    rng = np.random.default_rng(seed)
    X = torch.from_numpy(rng.standard_normal((n, d))).to(dtype)
    signs = np.where(np.arange(n) % 3 == 1, -1, 1)
    halves = (np.arange(n) % 4 > 1).astype(np.int8)
    return X, X.double().numpy(), signs, halves, rng.standard_normal(d + 1) / np.sqrt(d), rng.standard_normal(n)


def rows_of(X, signs, fused, *, sums=None, scale=0.37, resident=False):
    """Rows with a constant column over a tensor, through kernels or torch operations."""
    storage = Device(X, sums=sums, fused=fused)
    return rows.Rows(storage, signs.astype(np.int8), constant=True, scale=scale, resident=resident)


def digits(made):
    """Rounding of a score, and of a term of the combination."""
    tiny = {"float64": 2.0**-53, "float32": 2.0**-24}
    score = tiny[made.storage.sums]
    return 40 * score, 40 * (score if made.dtype == np.float64 else max(score, 2.0**-22))


# ---- every operation ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("start", "split"), [("uniform", "whole"), ("log p0", "whole"), ("log p0", "halves")])
def test_softmin(case, dtype, start, split):
    fused, shape = case
    X, exact, signs, halves, v, log_p0 = problem(*shape, dtype)
    if shape[0] < 3:
        split = "whole"  # one row has no halves
    made = rows_of(X, signs, fused)
    A = 0.37 * signs[:, None] * np.column_stack((exact, np.ones(len(exact))))
    got = made.softmin(v, log_p0 if start == "log p0" else None, halves if split == "halves" else None)
    s = A @ v
    z = (log_p0 if start == "log p0" else 0.0) - s
    groups = [halves == 0, halves == 1] if split == "halves" else [np.ones(len(s), bool)]
    p = np.zeros(len(s))
    for group in groups:
        p[group] = softmax(z[group]) / len(groups)
    score, term = digits(made)
    size = np.abs(A) @ np.abs(v)
    assert got.scores.dtype == got.combination.dtype == np.float64
    assert (np.abs(got.scores - s) <= score * size).all()
    assert np.abs(np.subtract(got.lowest, [s[group].min() for group in groups])).max() <= score * size.max()
    assert np.abs(np.subtract(log_total(got), [logsumexp(z[group]) for group in groups])).max() <= score * (1 + size.max())
    assert (np.abs(got.combination - A.T @ p) <= term * (1 + size.max()) * (np.abs(A).T @ p)).all()
    assert made.passes == 1


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_other_operations(case, dtype):
    fused, shape = case
    X, exact, signs, _, w, p = problem(*shape, dtype, seed=1)
    made = rows_of(X, signs, fused)
    A = 0.37 * signs[:, None] * np.column_stack((exact, np.ones(len(exact))))
    score, _ = digits(made)
    size = np.abs(A) @ np.abs(w)
    scores, combination = made.scores(w), made.combine(p)
    assert (np.abs(scores - A @ w) <= score * size).all()
    assert (np.abs(combination - A.T @ p) <= score * np.abs(A).T @ np.abs(p)).all()
    assert abs(scores @ p - w @ combination) <= score * (size @ np.abs(p))
    for norm in (1.0, 2.0, 3.0, np.inf):
        assert made.radius(norm) == pytest.approx(np.linalg.norm(A, ord=norm, axis=1).max(), rel=1e-13)
    i, s = made.lowest(w, 4)
    assert np.array_equal(i, np.argsort(scores, kind="stable")[:4])
    assert np.array_equal(s, scores[i])
    some = np.array([len(A) - 1, 0, len(A) // 2, 0])
    taken = made.take(some)
    assert (taken.n, taken.d, taken.in_memory) == (4, made.d, True)
    assert np.abs(taken.scores(w) - A[some] @ w).max() <= 1e-13 * size.max()
    assert np.abs(made.gram(some) - A[some] @ A[some].T).max() <= 1e-13 * (A**2).sum(axis=1).max()
    W, P = np.stack((w, -w, w**2), 1), np.stack((p, p**2), 1)
    passes_agree(made, A, W, P, rtol=score, narrow=1e-13 if dtype == torch.float64 else 1e-5)


@pytest.mark.parametrize("k", [1, 3, 4, 5, 9])
def test_ties_go_to_the_earlier_row(k):
    X = torch.tensor([2.0, 1, 0, 1, 0, 1, 0, 2, 1])[:, None]
    i, s = rows.of(X).lowest(np.ones(1), k)
    assert i.tolist() == [2, 4, 6, 1, 3, 5, 8, 0, 7][:k]
    assert s.tolist() == X[i, 0].tolist()


def test_both_ways_agree_and_repeat(interpreter):
    """Kernels and torch operations give the same numbers; either gives the same bits twice."""
    X, _, signs, halves, v, log_p0 = problem(300, 20, torch.float32)
    kernels, plain = rows_of(X, signs, True), rows_of(X, signs, False)
    for made in (kernels, plain):
        once, again = made.softmin(v, log_p0, halves), made.softmin(v, log_p0, halves)
        assert all(np.array_equal(x, y) for x, y in zip(once, again, strict=True))
    assert np.abs(kernels.softmin(v).combination - plain.softmin(v).combination).max() < 1e-6
    assert np.abs(kernels.softmin(v).scores - plain.softmin(v).scores).max() < 1e-14


@pytest.mark.parametrize("d", [1, 15, 16, 50, 100, 128, 300, 512, 784, 1000, 1024, 3000, 4096, 16384])
@pytest.mark.parametrize(("size", "wide"), [(2, False), (2, True), (4, False), (4, True), (8, True)])
def test_plans_cover_the_rows(interpreter, d, size, wide):
    """Tiles hold whole rows, have sizes that Triton takes, and leave less than half of their columns idle, beyond d = 16."""
    plan = interpreter.plan(d, size, wide)
    for power in (plan.rows, plan.columns, plan.warps):
        assert power & (power - 1) == 0
    assert d <= plan.columns * plan.chunks < max(2 * d, 17)
    assert plan.chunks <= 8
    assert plan.rows * plan.columns * plan.chunks <= 64 * 32 * plan.warps


COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from gordan.rows import triton_kernels as kernels

def compiled(kernel, warps, types, **constants):
    source = ASTSource(kernel, types | dict.fromkeys(constants, "constexpr"), constexprs=constants)
    assert triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps, "enable_fp_fusion": True})

for entry, size, wide, narrow, groups in (("fp32", 4, "fp64", "*fp32", 2), ("bf16", 2, "fp32", "*fp32", 1)):
    cut = kernels.plan(48, size, wide == "fp64")
    wide = "*" + wide
    shape = {"ROWS": cut.rows, "COLUMNS": cut.columns, "CHUNKS": cut.chunks, "EVEN": cut.columns * cut.chunks == 48, "STAGES": 3}
    types = {"X": "*" + entry, "stride": "i32", "v": wide, "signs": "*i8", "log_p0": wide, "order": "*i32", "ends": "*i64"}
    types |= {"scores": wide, "tally": wide, "acc": narrow, "n": "i32", "d": "i32", "programs": "i32"}
    compiled(kernels.softmin, cut.warps, types, **shape, GROUPS=groups, UNIFORM=False, NARROW=True)
    types = {"X": "*" + entry, "stride": "i32", "q": wide, "acc": wide, "n": "i32", "d": "i32", "programs": "i32"}
    compiled(kernels.combine, cut.warps, types, **shape)
    types = {"tally": wide, "acc": narrow, "out": "*fp64", "parts": "i32", "d": "i32"}
    compiled(kernels.merge, 4, types, EVERY=1024, PARTS=128, COLUMNS=16, WEIGHED=groups == 2)
"""


def test_kernels_compile_for_a_gpu(tmp_path):
    """The interpreter takes Python that the compiler does not; compiling needs no GPU."""
    pytest.importorskip("triton", reason="triton is missing: pip install 'gordan[test-gpu]'")
    source = str(Path(gordan.__file__).parents[1])
    environment = os.environ | {"TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path), "PYTHONPATH": source}
    (tmp_path / "compile.py").write_text(COMPILE)
    done = subprocess.run([sys.executable, str(tmp_path / "compile.py")], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


# ---- hard numbers ---------------------------------------------------------------------------------------------------


def test_rows_of_weight_zero_are_left_out(fused):
    X, _, signs, halves, v, log_p0 = problem(200, 5, torch.float64)
    gone = np.arange(200) % 2 == 0
    X[gone, 0] -= 1e4
    for split in (None, halves):
        got = rows_of(X, signs, fused).softmin(v, np.where(gone, -np.inf, log_p0), split)
        left = rows_of(X[~gone], signs[~gone], fused).softmin(v, log_p0[~gone], None if split is None else split[~gone])
        assert np.allclose(got.combination, left.combination, rtol=1e-12, atol=1e-12)
        assert np.allclose(log_total(got), log_total(left), rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_scores_of_any_size(fused, dtype):
    """A sharp softmin: exponents of size 10⁵, of which one or two rows survive."""
    s = torch.tensor([3.0e5, -1.0e5, 7.0, -1.0e5, 0.0], dtype=dtype)
    got = Device(s[:, None], fused=fused)
    soft = rows.Rows(got, np.ones(5, np.int8)).softmin(np.ones(1))
    lowest = float(s[1])
    assert soft.lowest[0] == lowest
    assert soft.combination[0] == pytest.approx(lowest, rel=1e-7)
    assert log_total(soft)[0] == pytest.approx(-lowest + np.log(2), rel=1e-7)


def test_rows_of_enormous_norm(fused):
    """v = w/R is near the least float32; the power of two that `_unit` takes out keeps its digits."""
    X = torch.tensor([[1.0, 2.0], [-0.5, 1.0]]).to(torch.bfloat16) * 2.0**120
    made = rows.Rows(Device(X, fused=fused), np.ones(2, np.int8), scale=2.0**-121)
    got = made.softmin(np.array([1 / 3, 0.7]))
    A = X.double().numpy() * 2.0**-121
    assert np.allclose(got.scores, A @ [1 / 3, 0.7], rtol=1e-6)
    assert np.allclose(got.combination, A.T @ softmax(-A @ [1 / 3, 0.7]), rtol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("resident", [False, True])
def test_not_finite(fused, value, resident):
    X = torch.ones((40, 3))
    X[17, 2] = value
    made = rows_of(X, np.ones(40), fused, resident=resident)
    calls = [
        lambda: made.softmin(np.ones(4)),
        lambda: made.softmin(-np.ones(4)),
        lambda: made.scores(np.ones(4)),
        lambda: made.lowest(np.ones(4), 2),
        lambda: made.combine(np.ones(40)),
        made.radius,
    ]
    for call in calls:
        with pytest.raises(InputError, match=r"X\[17, 2\] is -?(nan|inf)"):
            call()


@pytest.mark.parametrize("sign", [1, -1])
def test_overflow_is_reported(fused, sign):
    """A score of +inf has weight zero; it must not pass for a row that does not matter."""
    X = sign * torch.tensor([[3e38, 3e38], [1.0, 1.0]])
    made = rows.Rows(Device(X, sums="float32", fused=fused), np.ones(2, np.int8))
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(InputError, match="overflows float32"):
        made.softmin(np.ones(2))


# ---- vectors that stay on the device --------------------------------------------------------------------------------


def test_resident_rows(fused):
    X, _, signs, halves, v, log_p0 = problem(60, 7, torch.float32)
    here, there = rows_of(X, signs, fused), rows_of(X, signs, fused, resident=True)
    placed, split = there.place(log_p0), there.split(halves)
    one, other = here.softmin(v, log_p0, halves), there.softmin(v, placed, split)
    assert isinstance(other.scores, torch.Tensor)
    assert np.array_equal(one.scores, other.scores.numpy())
    assert np.array_equal(one.combination, other.combination)
    assert np.allclose(log_total(one), log_total(other), rtol=1e-6)
    assert isinstance(there.scores(v), torch.Tensor)
    assert np.array_equal(here.combine(log_p0), there.combine(placed))
    assert there.scaled(2.0).resident
    with pytest.raises(InputError, match=r"60 rows; its shape is \(59,\)"):
        there.softmin(v, placed[1:])


RESIDENT = {label: method for label, method in every_method().items() if method.resident}
CLOSE = {np.float64: 1e-10, np.float32: 1e-5, np.float16: 2e-2}


@pytest.mark.parametrize("dtype", list(CLOSE))
@pytest.mark.parametrize("label", RESIDENT)
def test_methods_leave_vectors_over_rows_on_the_device(label, dtype, monkeypatch):
    """NumPy must not be given a tensor, which it could not read on a GPU; the rounds are those of rows in memory."""
    method, problem = RESIDENT[label], separable(60, 6, 0.05, seed=3, halves=True)
    A = problem.A.astype(dtype)
    for sets in ({}, {"halves": problem.halves}):
        if supports(method, sets) is not None:
            continue
        here = gordan.play(A.astype(np.float64), method, 30, **sets)
        with monkeypatch.context() as context:
            context.setattr(torch.Tensor, "__array__", lambda *_: pytest.fail("a tensor was passed to NumPy"))
            there = gordan.play(torch.from_numpy(A), method, 30, **sets)
        for ours, theirs in ((here.p_bar, there.p_bar), (here.p_best, there.p_best), (here.upper, there.upper)):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=CLOSE[dtype])
        np.testing.assert_allclose(here.lower, there.lower, rtol=0, atol=CLOSE[dtype])


def test_a_checkpoint_and_caps_keep_vectors_over_rows_on_the_host():
    A = rows.of(torch.from_numpy(separable(20, 3, 0.1, seed=1).A))
    method = gordan.methods.smooth_perceptron()
    assert method.placed(A, Simplex(20), checkpoint=False).resident
    assert not method.placed(A, Simplex(20), checkpoint=True).resident
    assert not method.placed(A, Simplex(20, caps=np.full(20, 0.1)), checkpoint=False).resident
    assert not gordan.methods.get("perceptron")().placed(A, Simplex(20), checkpoint=False).resident


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("split", ["whole", "halves"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_a_stack_is_its_passes(fused, dtype, k, split):
    """However a stack of v is worked off: a pass for each, or, from five of float64 on, products with all of them."""
    X, _, signs, halves, _, log_p0 = problem(70, 9, dtype)
    stack = np.random.default_rng(3).standard_normal((k, 10))
    made = rows_of(X, signs, fused)
    chosen = halves if split == "halves" else None
    for got, v in zip(made.softmins(stack, log_p0, chosen), stack, strict=True):
        want = made.softmin(v, log_p0, chosen)
        assert np.allclose(got.scores, want.scores, rtol=0, atol=1e-13)
        assert np.allclose(log_total(got), log_total(want), rtol=1e-13)
        assert np.allclose(got.combination, want.combination, rtol=1e-5, atol=1e-6)
        assert got.lowest == pytest.approx(want.lowest, rel=1e-13)
    assert made.passes == 1 + k


# ---- what may be passed ---------------------------------------------------------------------------------------------


class FromElsewhere:
    """Like a CuPy array: no `__array__` that works, a DLPack capsule that does."""

    def __init__(self, X):
        self._X = X

    def __dlpack__(self, **options):
        return self._X.__dlpack__()

    def __dlpack_device__(self):
        return (3, 0)  # memory pinned for a GPU: the nearest that a machine without one has


@pytest.mark.parametrize(
    "kind",
    ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "float16", "bfloat16", "float32", "float64"],
)
def test_entries_are_exact(kind):
    values = np.array([[0, 1], [1, 1]]) if kind == "bool" else np.array([[0, 1], [100, 3]])
    X = torch.from_numpy(values).to(getattr(torch, kind))
    made = rows.of(X, [1, -1])
    assert made.scores(np.array([1.0, 0.5])).tolist() == (np.array([[1], [-1]]) * values @ [1.0, 0.5]).tolist()


def test_why_rows_stay_on_the_cpu_is_reported():
    """A large map in Fortran order, say, is read in blocks; it is not sparse."""
    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(InputError, match=r"are sparse.*pass X.toarray\(\)"):
        rows.of(csr_array(X), device="cuda")
    blocks = Blocks([Kept(Dense(X))], 2, np.float64)
    with pytest.raises(InputError, match=r"read in blocks.*pass an array that fits into memory"):
        rows.of(blocks, device="cuda")


def test_tensors_of_every_layout():
    base = torch.arange(12.0).reshape(3, 4)
    want = base.numpy() @ np.array([1.0, 2, 3, 4])
    layouts = {
        "transposed": base.T.contiguous().T,
        "every second row": base.repeat_interleave(2, 0)[::2],
        "every second column": base.repeat_interleave(2, 1)[:, ::2],
        "a broadcast row": base[:1].expand(3, 4),
        "with a gradient": base.clone().requires_grad_(),
    }
    for name, X in layouts.items():
        got = rows.of(X).scores(np.array([1.0, 2, 3, 4]))
        assert got.tolist() == (want[:1].repeat(3) if "broadcast" in name else want).tolist(), name
    contiguous = rows.of(base)
    assert contiguous.storage.X.data_ptr() == base.data_ptr()


def test_tensors_that_are_negated_when_they_are_read():
    """As the imaginary part of a conjugate is, and -x below: NumPy refuses those as they are."""
    X, y = torch.tensor([[1.0, 2], [3, 5], [-1, 0]]), torch.tensor([1.0, 1, -1])
    lazily = torch._neg_view(-X), torch.complex(X[:, 0], -y).conj().imag
    assert all(each.is_neg() for each in lazily)
    assert gordan.separate(*lazily).certificate == gordan.separate(X, y).certificate


def test_dlpack():
    X = torch.arange(6.0).reshape(3, 2)
    made = rows.of(FromElsewhere(X), FromElsewhere(torch.tensor([1.0, -1, 1])))
    assert made.storage.X.data_ptr() == X.data_ptr()
    assert made.scores(np.ones(2)).tolist() == [1.0, -5.0, 9.0]


def test_device_cpu_is_rows_in_memory():
    X = torch.arange(6.0).reshape(3, 2).bfloat16()
    assert repr(rows.of(X, device="cpu")) == "Rows(dense float32, n=3, d=2, scale=1)"
    assert repr(rows.of(X)) == "Rows(torch cpu bfloat16, n=3, d=2, scale=1)"
    assert rows.of(X, device="cpu").scores(np.ones(2)).tolist() == rows.of(X).scores(np.ones(2)).tolist()


REFUSED = {
    "vector": (lambda: rows.of(torch.ones(3)), "its shape is (3,)"),
    "empty": (lambda: rows.of(torch.ones((0, 2))), "its shape is (0, 2)"),
    "complex": (lambda: rows.of(torch.ones((2, 2), dtype=torch.complex64)), "complex64; features must be real numbers"),
    "8 bits": (lambda: rows.of(torch.ones((2, 2)).to(torch.float8_e5m2)), "float8_e5m2, a type that is not supported"),
    "sparse tensor": (lambda: rows.of(torch.eye(2).to_sparse()), "to_dense()"),
    "large integer": (lambda: rows.of(torch.tensor([[1, 2], [3, 2**53 + 1]])), "X[1, 1] is beyond 2**53"),
    "sums of float64": (lambda: rows.of(torch.ones((2, 2), dtype=torch.float64), sums="float32"), "sums is 'float32'"),
    "unknown sums": (lambda: rows.of(torch.ones((2, 2)), sums="float16"), "sums is 'float16'"),
    "sums in memory": (lambda: rows.of(np.ones((2, 2)), sums="float32"), "float64; leave sums out"),
    "unknown device": (lambda: rows.of(np.ones((2, 2)), device="gpu"), "pass 'cuda'"),
    "no such device": (lambda: rows.of(np.ones((2, 2)), device="cuda:99"), "leave device out to use the CPU"),
    "device for rows": (lambda: rows.of(rows.of(np.ones((2, 2))), device="cuda"), "pass the original data"),
    "on no device": (lambda: rows.of(torch.ones((2, 2), device="meta")), "pass X.cpu()"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    call, told = REFUSED[case]
    with pytest.raises(InputError) as error:
        call()
    assert told in str(error.value)


def test_out_of_memory_names_the_way_out(monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    made = rows.of(torch.ones((4, 2)))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (1e9, 8e9))
    monkeypatch.setattr(Device, "_blocks", full)
    with pytest.raises(InputError, match=r"1\.0 of 8\.0 GB are free; pass a float32.* or leave device out"):
        made.softmin(np.ones(2))


# ---- proofs read the entries themselves -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_proofs_about_tensors(dtype):
    """A verdict about a tensor is one about the same values in NumPy: same hash, and each accepts the other's certificate."""
    rng = np.random.default_rng(4)
    X = torch.from_numpy(rng.standard_normal((30, 4))).to(dtype)
    exact = X.double().numpy()
    for y in (np.where(exact @ [1.0, 2, 3, 4] > 0, "a", "b"), np.where(np.arange(30) % 2, 1, 0)):
        labels = y if y.dtype.kind == "U" else torch.from_numpy(y)
        verdict, twin = gordan.separate(X, labels), gordan.separate(exact, y)
        assert verdict.status == twin.status
        assert verdict.certificate.data_hash == twin.certificate.data_hash
        for certificate in (verdict.certificate, twin.certificate):
            assert gordan.verify(certificate, X, labels)
            assert gordan.verify(certificate, exact, y)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("intercept", ["free", "none"])
def test_the_largest_margin_is_the_same(dtype, intercept):
    """Certified brackets from a tensor and from the same values in memory overlap, and each certificate holds for both."""
    rng = np.random.default_rng(7)
    X = torch.from_numpy(rng.standard_normal((200, 5)))
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += torch.from_numpy(0.2 * y)
    X = X.to(dtype)
    exact = X.double().numpy()
    one, other = gordan.maximize_margin(X, y, intercept=intercept), gordan.maximize_margin(exact, y, intercept=intercept)
    assert one.status == other.status == "solved"
    (low, high), (other_low, other_high) = one.margin, other.margin
    assert max(low, other_low) <= min(high, other_high)
    for certificate in (one.certificate, other.certificate):
        assert gordan.verify(certificate, X, y)
        assert gordan.verify(certificate, exact, y)


def test_proofs_go_by_blocks(monkeypatch):
    """A proof makes float64 copies of some rows at a time, and brings single rows to the host, exactly."""
    looked, block = [], Device._block
    monkeypatch.setattr(Device, "_block", lambda self, *which: looked.append(found := block(self, *which)) or found)
    X = torch.from_numpy(np.random.default_rng(0).standard_normal((5000, 50)))
    X[:, 0] += 9 * torch.sign(X[:, 0])
    X = X.to(torch.bfloat16)
    y = np.where(X[:, 0].float().numpy() > 0, 1, -1)
    certificate = gordan.separate(X, y, intercept="none").certificate
    looked.clear()
    assert gordan.verify(certificate, X, y)
    assert 0 < max(found.n for found in looked) <= len(X) / 3
    values = looked[0].values[10:13]
    assert values.dtype == np.float32
    assert np.array_equal(values, X[10:13].float().numpy())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_enclosures_hold_exactly(dtype):
    """Scores and norms of rows that nearly cancel, against rational arithmetic; and X is as it was."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 6)) * 10.0 ** rng.integers(-3, 3, (40, 6))
    X[:, 3:] = -X[:, :3]
    X[::2, 5] *= 1 + 2.0**-7
    X = torch.from_numpy(X).to(dtype)
    before = X.clone()
    w = np.concatenate((w := rng.standard_normal(3), w))
    problem = Problem.of(X, np.arange(40) % 2)
    products = Products.of(problem.X, w)
    exact = [[Fraction(float(x)) for x in row] for row in X.double()]
    scores = [sum(x * Fraction(float(v)) for x, v in zip(row, w, strict=True)) for row in exact]
    for sharpened in (False, True):
        if sharpened:
            products = products.sharpened(np.arange(40))
        lo, hi = products.scores(0.25, problem.signs)
        for i, s in enumerate(scores):
            truth = int(problem.signs[i]) * (s + Fraction(1, 4))
            assert Fraction(float(lo[i])) <= truth <= Fraction(float(hi[i]))
    for row, norm in zip(exact, problem.X.norms, strict=True):
        assert sum(x * x for x in row) <= Fraction(float(norm)) ** 2
    q = np.where(np.arange(40) % 3 == 0, 0.0, rng.standard_normal(40))
    combination = problem.X.combination(q)
    for j, column in enumerate(zip(*exact, strict=True)):
        terms = [Fraction(float(p)) * x for p, x in zip(q, column, strict=True)]
        assert abs(Fraction(float(combination[j])) - sum(terms)) <= Fraction(2.0**-45) * sum(map(abs, terms))
    assert torch.equal(X, before)


def test_single_rows_are_fetched_some_at_a_time(monkeypatch):
    """In the order in which they are asked for, whatever that is."""
    monkeypatch.setattr(storage, "MAX_FETCHED_ENTRIES", 700 * 50)
    held = Device(torch.arange(1.0, 301.0)[:, None].expand(300, 700).contiguous())
    order, taken = np.random.default_rng(0).permutation(300), []
    monkeypatch.setattr(Device, "take", lambda self, i: taken.append(len(i)) or Dense(self.X.numpy()[i]))
    assert [(i, float(values[0])) for i, _, values in held.each_row(order)] == [(i, i + 1.0) for i in order.tolist()]
    assert taken == [50] * 6


def test_nothing_is_proved_where_floats_are_not_ieee(monkeypatch):
    X, y = torch.tensor([[0.0], [1.0]]), [0, 1]
    certificate = gordan.separate(X, y).certificate
    assert gordan.verify(certificate, X, y)
    monkeypatch.setattr(Device, "ieee", lambda self: False)
    assert "nothing can be proved" in gordan.verify(certificate, X, y).reason


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sums_are_the_same_on_a_device_and_in_memory(dtype):
    """What a GPU does with a tensor, done by torch on the CPU, against what NumPy does with a tensor in memory: integers."""
    rng = np.random.default_rng(6)
    X = torch.from_numpy(rng.integers(-9, 10, (700, 11))).to(dtype)
    w, q, some = rng.integers(-9, 10, 11).astype(float), rng.integers(0, 3, 700).astype(float), rng.permutation(700)[:90]
    A = X.double().numpy()
    for block in (TensorBlock(X, 5), DenseBlock(exact(X), 5)):
        assert (block.n, block.d, block.first, int(block.lengths)) == (700, 11, 5, 11)
        for got, want in (
            (block.dot(w)[0], A @ w),
            (block.squares(), (A**2).sum(1)),
            (block.only(some).abs_dot(abs(w)), abs(A[some]) @ abs(w)),
            (block.weighted(q), A.T @ q),
            (block.only(some).values, A[some]),
            (next(iter(block.sample(3)))[1], A[:, [0, 5, 10]]),
            (block.by_row(np.maximum, lambda values, columns: abs(values)), abs(A).max(1)),
            (block.entries()[2], A.ravel()),
        ):
            assert np.array_equal(got, want)


@pytest.mark.skipif(not CAN_BE_SET, reason=REASON)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_look_at_a_device(dtype):
    """One number at a time torch does what it does in this thread, whose mode can be set."""
    X = torch.ones((2, 2), dtype=dtype)
    assert device_is_ieee(X)
    for wanted in MODES.values():
        with mode(wanted):
            assert not device_is_ieee(X)


# ---- Newton's method ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("caps", [False, True], ids=["mass", "caps"])
def test_nearest_is_the_projection(caps):
    """min Σ (p - z)²/D over the capped simplex: with D = 1 that of `Simplex`, else what no feasible step improves."""
    rng = np.random.default_rng(3)
    n = 50
    z, limit = rng.standard_normal(n), rng.uniform(0.02, 0.3, n) if caps else np.ones(n)
    tensors = [torch.from_numpy(x) for x in (z, np.ones(n), limit)]
    plain, _ = proximal.nearest(*tensors, 1.0)
    assert np.abs(plain.numpy() - Simplex(n, caps=limit if caps else None).project(z)).max() < 1e-12
    D = rng.uniform(0.1, 2.0, n)
    for guess in (np.nan, -3.0, 0.4):
        p = proximal.nearest(tensors[0], torch.from_numpy(D), tensors[2], 1.0, guess)[0].numpy()
        assert abs(p.sum() - 1) < 1e-11
        assert (p >= 0).all()
        assert (p <= limit).all()
        slope = (p - z) / D  # mass moves from a row that has some to a row that has room: never uphill
        assert slope[p > 0].max() <= slope[p < limit].min() + 1e-9


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("nu", [None, 0.2])
def test_newton_closes_the_bracket(dtype, intercept, nu):
    """The route for large tensors, on a small one: solved, with a certificate that holds for the same values in NumPy."""
    rng = np.random.default_rng(7)
    X = torch.from_numpy(rng.standard_normal((300, 5)))
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += torch.from_numpy(0.3 * y)
    X = X.to(dtype)
    seen = []
    result = gordan.maximize_margin(X, y, intercept=intercept, nu=nu, tol=1e-3, callback=seen.append)
    exact = X.double().numpy()
    twin = gordan.maximize_margin(exact, y, intercept=intercept, nu=nu)
    assert seen[0].t == 1
    assert result.trace.method == "proximal_newton" or nu is None  # the double oracle may have had to go on
    assert result.status == "solved"
    assert max(result.margin[0], twin.margin[0]) <= min(result.margin[1], twin.margin[1])
    assert gordan.verify(result.certificate, exact, y)
    assert all(moment.lower <= twin.margin[1] * (1 + 1e-4) and moment.upper >= twin.margin[0] * (1 - 1e-4) for moment in seen)


def test_many_columns_are_not_for_newton():
    """A matrix of d × d would not fit, and its factors would outlast any limit of time."""
    X = torch.randn(20, proximal.MAX_HESSIAN_COLUMNS + 1, generator=torch.Generator().manual_seed(0))
    y = np.where(np.arange(20) % 2, 1, -1)
    result = gordan.maximize_margin(X, y)
    assert result.status == "solved"
    assert result.trace.method == "double_oracle"


def test_the_double_oracle_goes_on_where_newton_stops(monkeypatch):
    """With no steps to make Newton's method finds nothing; the answer is there all the same."""
    monkeypatch.setattr(proximal, "MAX_STEPS", 0)
    monkeypatch.setattr(nearest_points, "TUNING", replace(nearest_points.TUNING, max_steps=0))
    rng = np.random.default_rng(1)
    X = torch.from_numpy(rng.standard_normal((100, 3)))
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += torch.from_numpy(0.5 * y)
    result = gordan.maximize_margin(X, y)
    assert result.status == "solved"
    assert result.trace.method == "double_oracle"


@pytest.mark.parametrize("intercept", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_least_losses_against_exact_minimizers(family, intercept):
    """All that is proved holds, and both checkers find it; `python tests/fuzz.py --only device --instances 5000` has more."""
    statuses, faults = device_problems.chunk(family, intercept, "suite", 12)
    assert not faults, faults
    assert statuses["solved"] >= (0 if family in ("extreme", "offset") else 4)


# ---- games on few rows ------------------------------------------------------------------------------------------------


def _exactly(X, y, intercept):
    """The rows y_i x_i, or y_i (x_i, 1), as exact numbers; and the largest squared margin of the game."""
    points, last = X.double().tolist(), [] if intercept == "none" else [1.0]
    signed = [[sign * value for value in (*point, *last)] for point, sign in zip(points, y.tolist(), strict=True)]
    square = oracle.squared_margin_free(points, y.tolist()) if intercept == "free" else oracle.squared_margin(signed)
    return square, signed


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("seed", range(8))
def test_small_problems_against_exact_answers(request, intercept, seed):
    """Through the device's finders: the sign is right, and the bracket holds the margin in rational arithmetic."""
    fused = seed == 0 and bool(request.getfixturevalue("interpreter"))
    rng = np.random.default_rng([seed, len(intercept)])
    n, d = int(rng.integers(4, 11)), int(rng.integers(1, 4))
    X = torch.from_numpy(rng.integers(-4, 5, (n, d)) / 2.0).to(DTYPES[seed % 4])
    y = np.where(rng.random(n) < 0.5, 1, -1)
    y[:2] = 1, -1
    if rng.random() < 0.5:
        X[:, 0] += torch.from_numpy(3.0 * y).to(X.dtype)
    square, signed = _exactly(X, y, intercept)
    held = Device(X, fused=fused)
    verdict = gordan.separate(held, y, intercept=intercept)
    assert verdict.status == ("separable" if oracle.separable(signed) else "not-separable")
    assert gordan.verify(verdict.certificate, X.double().numpy(), y)
    result = gordan.maximize_margin(held, y, intercept=intercept, tol=1e-4)
    low, high = map(Fraction, result.margin)
    assert low * low <= square <= high * high
    assert gordan.verify(result.certificate, X.double().numpy(), y)


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_few_rows_close_the_bracket(intercept):
    """Far more rows than the working set holds: a handful of passes, and the bracket is that of the rows in memory."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((20_000, 12)).astype(np.float32)
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += np.float32(0.1) * y
    result = gordan.maximize_margin(torch.from_numpy(X), y, intercept=intercept, tol=1e-7)
    assert (result.status, result.trace.method) == ("solved", "nearest_points")
    assert result.passes <= 20
    twin = gordan.maximize_margin(X, y, intercept=intercept, tol=1e-7)
    assert max(result.margin[0], twin.margin[0]) <= min(result.margin[1], twin.margin[1])
    assert gordan.verify(result.certificate, X, y)


@pytest.mark.parametrize("intercept", ["free", "none"])
def test_few_rows_tell_what_noise_leaves(intercept):
    """The same games, whose bracket is less by ε: a plane that stands it, or weights that no plane does."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((5000, 8)).astype(np.float32)
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += np.float32(0.1) * y
    margin = gordan.maximize_margin(X, y, intercept=intercept, tol=1e-6).margin
    for share, status in ((0.5, "solved"), (0.99, "solved"), (1.01, "not-separable"), (30.0, "not-separable")):
        result = gordan.maximize_margin(torch.from_numpy(X), y, intercept=intercept, robust=share * margin[0])
        assert (result.status, result.trace.method) == (status, "nearest_points")
        assert result.margin[0] <= max(0.0, margin[1] - share * margin[0])
        assert result.margin[1] >= margin[0] - share * margin[0]
        assert gordan.verify(result.certificate, X, y)


def test_hulls_that_meet_are_left_to_others():
    """The games on few rows say nothing where no plane separates; a witness comes from others, and is exact."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((3000, 6))
    y = np.where(rng.random(3000) < 0.5, 1, -1)
    verdict, result = gordan.separate(torch.from_numpy(X), y), gordan.maximize_margin(torch.from_numpy(X), y)
    assert verdict.status == result.status == "not-separable"
    assert result.passes <= 10  # the sign is asked for at once, and decides
    for certificate in (verdict.certificate, result.certificate):
        assert gordan.verify(certificate, X, y)


def test_a_moment_of_few_rows_may_stop_the_search():
    """A callback sees the bracket of every game, and ends it."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((5000, 8))
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += 0.2 * y
    seen = []
    result = gordan.maximize_margin(
        torch.from_numpy(X), y, tol=1e-9, callback=lambda moment: seen.append(moment.gap) or len(seen) == 2
    )
    assert len(seen) == 2
    assert result.status == "interrupted"
    assert result.margin[0] <= result.margin[1]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16], ids=str)
def test_rows_that_repeat_are_found_where_they_are(dtype):
    """Equal points of different labels are a witness of two rows; a row of zeros without intercept one of one."""
    rng = np.random.default_rng(6)
    X = torch.from_numpy(rng.standard_normal((500, 9))).to(dtype)
    y = np.where(np.arange(500) % 2, 1, -1)
    X[321] = X[44]
    X[12] = X[10]
    found = gordan.separate(X, y).witness
    assert (found.rows, found.weights) == ((44, 321), (1, 1))
    X[7] = 0
    assert gordan.separate(X, y, intercept="none").witness.rows == (7,)


def test_the_smooth_perceptron_where_the_rows_are():
    """Its vectors over rows stay tensors; what it plays, and what a callback sees, is the same as in memory."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((300, 5))
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += 0.3 * y
    seen = []
    for intercept in ("free", "none"):
        options = {"method": "smooth_perceptron", "max_iter": 30, "intercept": intercept}
        here = gordan.maximize_margin(X, y, **options)
        there = gordan.maximize_margin(
            torch.from_numpy(X), y, callback=lambda moment: seen.append(type(moment.p)) and False, **options
        )
        assert {*seen} == {np.ndarray}
        np.testing.assert_allclose(there.trace.p, here.trace.p, rtol=1e-9)
        np.testing.assert_allclose(there.trace.p_bar, here.trace.p_bar, rtol=1e-9)
        assert there.trace.lower.tolist() == pytest.approx(here.trace.lower.tolist())


def test_the_user_s_tensor_is_left_as_it_is():
    """Norms, keys and checksums are made of copies."""
    X = torch.from_numpy(np.random.default_rng(9).standard_normal((50, 3)))
    before = X.clone()
    held = Device(X)
    for p in (2.0, 3.0, np.inf):
        held.largest_norm(p, 1)
    TensorBlock(X).checksum(True)
    gordan.separate(X, np.where(np.arange(50) % 2, 1, -1))
    assert torch.equal(X, before)


# ---- functions that people call ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three():
    """Three classes in the plane."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    X = rng.standard_normal((150, 4)).astype(np.float32)
    X[:, :2] += 6 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    return X, y


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_classifier_on_tensors(three, multi_class, monkeypatch):
    """X is placed once, whatever the number of classes; the planes are those of NumPy, and all are asked in one pass."""
    X, y = three
    copies, asked = [], []
    monkeypatch.setattr(accept, "placed", lambda *args: copies.append(1) or placed(*args))
    scores = Device._block_scores
    monkeypatch.setattr(Device, "_block_scores", lambda self, W, *rest: asked.append(W.shape[1]) or scores(self, W, *rest))
    model = gordan.MaxMarginClassifier(multi_class=multi_class, nu=0.2).fit(torch.from_numpy(X), torch.from_numpy(y))
    twin = gordan.MaxMarginClassifier(multi_class=multi_class, nu=0.2).fit(X, y)
    assert len(copies) == 1
    assert model.n_features_in_ == 4
    assert (model.margin_[:, 0] <= twin.margin_[:, 1]).all()
    assert (twin.margin_[:, 0] <= model.margin_[:, 1]).all()
    found = model.predict(torch.from_numpy(X))
    assert asked == [3]
    assert np.mean(found == twin.predict(X)) > 0.99
    assert np.abs(model.decision_function(torch.from_numpy(X)) - model.decision_function(X)).max() < 1e-5
    with pytest.raises(InputError, match="X has 3 features, but MaxMarginClassifier is expecting 4"):
        model.predict(torch.from_numpy(X[:, :3]))
    with pytest.raises(InputError, match="150 rows but y has 149"):
        model.fit(torch.from_numpy(X), y[1:])


def test_small_tensors_are_solved_in_memory(three, monkeypatch):
    monkeypatch.setattr(device, "MIN_ENTRIES", 1 << 22)
    X, y = three
    result = gordan.maximize_margin(torch.from_numpy(X), torch.from_numpy(y) == 1)
    assert isinstance(result._problem.storage, Dense)
    assert result.margin == gordan.maximize_margin(X, y == 1).margin


def test_everything_takes_tensors(three):
    """X, y, weights and sets as tensors, or through DLPack, give what NumPy gives."""
    X, y = three[0], (three[1] == 1).astype(np.int64)
    for wrap in (torch.from_numpy, lambda array: FromElsewhere(torch.from_numpy(array))):
        weights = wrap(np.where(y > 0, 2.0, 1.0))
        soft = gordan.maximize_margin(wrap(X), wrap(y), nu=0.3, sample_weight=weights, tol=1e-3)
        twin = gordan.maximize_margin(X, y, nu=0.3, sample_weight=np.where(y > 0, 2.0, 1.0))
        assert max(soft.margin[0], twin.margin[0]) <= min(soft.margin[1], twin.margin[1])
        assert gordan.separate(wrap(X), wrap(y)).status == gordan.separate(X, y).status
        assert gordan.diagnose(wrap(X), wrap(y)).kind == gordan.diagnose(X, y).kind
        assert gordan.verify(twin.certificate, wrap(X), wrap(y))
        p0, caps = np.full(150, 1 / 150), np.full(150, 0.1)
        trace = gordan.play(wrap(X), "smooth_perceptron", 5, halves=wrap(y), p0=wrap(p0), caps=wrap(caps))
        same = gordan.play(X, "smooth_perceptron", 5, halves=y, p0=p0, caps=caps)
        assert trace.bracket == pytest.approx(same.bracket, rel=1e-5)


def test_zero_weights_leave_rows_on_the_device(three):
    X, y = three[0], three[1] == 1
    weights = np.where(np.arange(150) % 5 == 0, 0.0, 1.0)
    result = gordan.maximize_margin(torch.from_numpy(X), y, sample_weight=weights, nu=0.3, tol=1e-3)
    kept = gordan.maximize_margin(X[weights > 0], y[weights > 0], nu=0.3)
    assert max(result.margin[0], kept.margin[0]) <= min(result.margin[1], kept.margin[1])


@pytest.mark.parametrize("name", ["separate", "maximize_margin", "play"])
def test_device_of_functions(three, name):
    X, y = three[0], (three[1] == 1).astype(np.int8)
    call = getattr(gordan, name)
    data = (X * (2 * y - 1)[:, None], "smooth_perceptron", 3) if name == "play" else (X, y)
    here = call(torch.from_numpy(data[0]), *data[1:], device="cpu")
    there = call(*data)
    margin = "bracket" if name == "play" else "margin"
    assert getattr(here, margin) == getattr(there, margin)
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="sees 0 CUDA devices here; leave device out"):
            call(*data, device="cuda")


# ---- the linear probe -------------------------------------------------------------------------------------------------


def test_probe_benchmark(monkeypatch, tmp_path):
    """Small: every class is solved to both tolerances, and accuracies match those of logistic regression."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import probe

    rows = probe.main(f"--rows 2000 --columns 32 --classes 3 --device cpu --out {tmp_path}".split())
    assert [row["classes"] for row in rows] == ["3 of 3"] * 4
    assert all(row["worst gap"] <= row["tol"] for row in rows)
    assert all(float(row["L-BFGS accuracy"]) >= float(row["accuracy"]) > 0.99 for row in rows)
    assert (tmp_path / "probe.md").read_text().startswith("2,000 × 32 float16, 3 classes, seed 0; cpu")


def test_hinge_without_rows_near_its_corner_does_not_diverge():
    """There is no curvature along b then, and a step along it would have no end."""
    rng = np.random.default_rng(0)
    X, c = rng.standard_normal((300, 5)), rng.integers(0, 3, 300)
    X[:, :3] += 1.5 * np.eye(3)[c]
    kept = np.sort(np.concatenate([np.flatnonzero(c == k)[: -(-2 * np.count_nonzero(c == k) // 3)] for k in range(3)]))
    X, Y = X[kept], np.stack([c[kept] == k for k in range(3)], 1)
    with device_problems.as_on_a_gpu():
        there = gordan.minimize_loss(torch.from_numpy(X), Y, loss="hinge")
    here = gordan.minimize_loss(X, Y, loss="hinge")
    assert (there.objective[:, 0] <= here.objective[:, 1]).all()
    assert (there.objective[:, 1] <= 1.001 * here.objective[:, 0]).all()


class WithoutArrays(torch.overrides.TorchFunctionMode):
    """Within: an operation of a tensor with a NumPy array, which only a tensor in memory allows, fails."""

    def __torch_function__(self, operation, types, args=(), kwargs=None):
        if operation is not torch.from_numpy:
            assert not any(isinstance(value, np.ndarray) and value.ndim for value in args), (operation, args)
        return operation(*args, **(kwargs or {}))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_vectors_over_rows_of_a_soft_margin_stay_on_the_device(intercept, weighted, monkeypatch):
    """Caps, p, scores and enclosures are where the rows are, in the search and in the proof; the host gets those of a result."""
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((4000, 6)), rng.uniform(-0.5, 2.0, 4000).clip(0.0) if weighted else None
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(4000) > 0, 1, -1)
    fetched, fetch = [], torch.Tensor.numpy

    def found():
        return gordan.maximize_margin(torch.from_numpy(X), y, nu=0.5, intercept=intercept, sample_weight=weights)

    with device_problems.as_on_a_gpu(), monkeypatch.context() as context:
        context.setattr(torch.Tensor, "__array__", lambda *_: pytest.fail("a tensor was passed to NumPy"))
        with WithoutArrays():
            found()
        with monkeypatch.context() as counting:
            counting.setattr(torch.Tensor, "numpy", lambda values: fetched.append(values) or fetch(values))
            result = found()
        certificate = result.certificate
    trace = result.trace
    assert (result.status, trace.method) == ("solved", "proximal_newton")
    of_result = [result._proof.p, *{id(p): p for p in (trace.p, trace.p_bar, trace.p_best)}.values()]
    long = [values for values in fetched if values.numel() >= 100]
    assert len(long) == len(of_result)
    assert all(any(np.array_equal(fetch(values), p) for p in of_result) for values in long)
    assert gordan.verify(certificate, X, y)


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_vectors_over_rows_of_a_hard_margin_stay_on_the_device(intercept, monkeypatch):
    """The search and the proof bring only rows of the working set, their numbers and sums to the host."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 6)).astype(np.float32)
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += np.float32(0.02) * y
    fetched, fetch = [0], torch.Tensor.numpy
    with device_problems.as_on_a_gpu(), monkeypatch.context() as context:
        context.setattr(torch.Tensor, "__array__", lambda *_: pytest.fail("a tensor was passed to NumPy"))
        with WithoutArrays():
            assert gordan.maximize_margin(torch.from_numpy(X), y, intercept=intercept).status == "solved"
        context.setattr(torch.Tensor, "numpy", lambda values: fetched.append(values.numel()) or fetch(values))
        verdict = gordan.separate(torch.from_numpy(X), y, intercept=intercept)
        result = gordan.maximize_margin(torch.from_numpy(X), y, intercept=intercept)
    assert (verdict.status, result.status) == ("separable", "solved")
    assert max(fetched) < len(X) // 2
