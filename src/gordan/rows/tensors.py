"""Torch tensors and arrays on other devices: which of them may be passed for X, and how proofs read their entries."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from gordan.arrays import MAX_EXACT_INTEGER, Array
from gordan.errors import InputError, MissingExtra
from gordan.floats import ABOVE, SMALLEST_SUBNORMAL, U
from gordan.rows.memory import Dense
from gordan.rows.reads import DenseBlock

# A power of two that the low part of a number split into two 16-bit parts is multiplied by, so that it does not underflow.
SPLIT = 256.0


def torch_for(purpose: str = "rows on a device") -> Any:
    """Import and return torch, or raise an error that says how to install it."""
    try:
        import torch
    except ImportError:
        raise MissingExtra("torch", "gpu", purpose) from None
    return torch


def is_tensor(X: Any) -> bool:
    """Return whether X is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def is_on_device(X: Any) -> bool:
    """Return whether X is on a device according to DLPack, as a CuPy array is."""
    return hasattr(X, "__dlpack_device__") and not isinstance(X, np.ndarray) and int(X.__dlpack_device__()[0]) != 1


def host(values: Any) -> Any:
    """Return `values` on the host: tensors and arrays on other devices are copied, everything else is returned as it is."""
    if is_tensor(values) or is_on_device(values):
        tensor = (values if is_tensor(values) else torch_for().from_dlpack(values)).detach().cpu().resolve_neg()
        return tensor.to(torch_for().float32).numpy() if tensor.dtype == torch_for().bfloat16 else tensor.numpy()
    return values


def placed(X: Any, device: str | None) -> Any:
    """Return X (a tensor, an array on another device or a storage) as a tensor on `device`, by default where it is.

    It is copied at most once.
    """
    torch = torch_for(f"device={device!r}" if device is not None else "a torch tensor or an array on a GPU")
    tensor = X.detach() if is_tensor(X) else torch.from_dlpack(X) if is_on_device(X) else _from_memory(X)
    if tensor.layout != torch.strided:
        raise InputError("X is a sparse tensor; pass X.to_dense(), or a SciPy sparse matrix to stay on the CPU")
    if tensor.ndim != 2 or 0 in tensor.shape:
        raise InputError(f"X must be a matrix with rows and columns, but its shape is {tuple(tensor.shape)}")
    where = tensor.device if device is None else _found(torch, device)
    if where.type not in ("cpu", "cuda"):
        raise InputError(f"X is on {where}, which gordan does not support; pass X.cpu(), or a tensor on a CUDA device")
    size = tensor.numel() * tensor.element_size() / 1e9
    return within_device_memory(lambda: _real(tensor.to(where).resolve_neg()), f"X ({size:.1f} GB)")


def _found(torch: Any, device: str) -> Any:
    try:
        where = torch.device(device)
    except (RuntimeError, TypeError):
        raise InputError(f"device is {device!r}; pass 'cuda', 'cuda:1', 'cpu' or None (where X is)") from None
    if where.type == "cuda" and (where.index or 0) >= torch.cuda.device_count():
        raise InputError(
            f"device is {device!r}, but torch {torch.__version__} sees {torch.cuda.device_count()} CUDA devices here; "
            "leave device out to use the CPU, or install a CUDA build of torch"
        )
    return where


def _from_memory(held: Any) -> Any:
    """Return dense rows as a tensor over the same memory."""
    if not isinstance(held, Dense):
        what, fix = ("sparse", "X.toarray()") if held.sparse else ("read in blocks", "an array that fits into memory")
        raise InputError(f"the rows of X are {what}, which stay on the CPU; leave device out, or pass {fix}")
    array = held.arrays[0].view()
    with warnings.catch_warnings():  # torch has no read-only tensors; nothing here writes to this one
        warnings.simplefilter("ignore", UserWarning)
        return torch_for().from_numpy(array)


def _real(X: Any) -> Any:
    """Return X as float16, bfloat16, float32 or float64, exactly or not at all, as in `accept`."""
    torch = torch_for()
    if X.dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        return X
    if X.dtype in (torch.bool, torch.int8, torch.uint8, torch.int16, torch.uint16):
        return X.to(torch.float32)
    if X.dtype in (torch.int32, torch.uint32):
        return X.to(torch.float64)
    if X.dtype == torch.int64:
        far = (X > MAX_EXACT_INTEGER) | (X < -MAX_EXACT_INTEGER)
        if bool(far.any()):
            row, column = (int(i) for i in torch.nonzero(far)[0])
            raise InputError(f"X[{row}, {column}] is beyond 2**53, which float64 cannot hold; rescale the column")
        return X.to(torch.float64)
    if X.is_complex():
        raise InputError(
            f"the entries of X are {X.dtype}; features must be real numbers: pass torch.view_as_real(X).flatten(1), say"
        )
    fix = "X.dequantize()" if X.is_quantized else "X.to(torch.float32), say"
    raise InputError(f"the entries of X are {X.dtype}, a type that is not supported; pass {fix}")


def exact(X: Any) -> Array:
    """Return a part of X on the host, as float64 or as float32, to which 16 bits convert exactly in any floating-point mode."""
    part = X.cpu()
    exact: Array = (part if part.element_size() > 2 else part.to(torch_for().float32)).numpy()
    return exact


def within_device_memory(make: Callable[[], Any], what: str) -> Any:
    """Return make(), or raise an InputError if the device has no memory left for `what`."""
    torch = torch_for()
    try:
        return make()
    except torch.OutOfMemoryError:
        free, all_of_it = (x / 1e9 for x in torch.cuda.mem_get_info())
        raise InputError(
            f"{what} does not fit on the GPU, where {free:.1f} of {all_of_it:.1f} GB are free; "
            "pass a float32, float16 or bfloat16 tensor or fewer rows, or leave device out to use the CPU"
        ) from None


def free_device_memory(device: Any, enough: float) -> int:
    """Return the free bytes of a GPU, including those that torch caches if there are not `enough` without.

    Counting the latter takes a millisecond.
    """
    cuda = torch_for().cuda
    free = int(cuda.mem_get_info(device)[0])
    return free if free >= enough else free + int(cuda.memory_reserved(device) - cuda.memory_allocated(device))


class TensorPiece:
    """Some rows of a tensor for finders: x @ V and x.T @ Q with blocks of float64 vectors or, if `rough`, of float32 vectors.

    Rough products multiply in the stored type and add up in float32. If entries have 16 bits, the other factor is rounded to 16
    bits, relative to its largest entry, so that tensor cores do the work. A w is split into two parts to keep its digits; the
    rounding errors of weights of rows are as many as the rows, and cancel.
    """

    def __init__(self, X: Any, rough: bool, of: TensorPiece | None = None) -> None:
        self.X, self.rough, self._of, self._wide = X, rough and X.element_size() < 8, of, None

    @property
    def T(self) -> TensorPiece:
        """The transpose."""
        return TensorPiece(self.X.T, self.rough, self)

    def __matmul__(self, V: Any) -> Any:
        torch = torch_for()
        if not self.rough:
            wide = self._doubled() if self._of is None else self._of._doubled().T
            return wide @ (V._doubled() if isinstance(V, TensorPiece) else V)
        if self.X.element_size() == 4 or not self.X.is_cuda:
            return self.X.to(torch.float32) @ (V.X.to(torch.float32) if isinstance(V, TensorPiece) else V)
        if isinstance(V, TensorPiece):
            return torch.mm(self.X, V.X, out_dtype=torch.float32)
        size, k = V.abs().amax(0).clamp(min=1e-30), V.shape[1]
        share = V / size
        high = share.to(self.X.dtype)
        if self._of is not None:
            return torch.mm(self.X, high, out_dtype=torch.float32) * size
        low = ((share - high) * SPLIT).to(self.X.dtype)
        found = torch.mm(self.X, torch.cat((high, low), 1), out_dtype=torch.float32)
        return (found[:, :k] + found[:, k:] / SPLIT) * size

    def __rmul__(self, factors: Any) -> TensorPiece:
        """Return the rows times factors, for products of rows with each other; for 16 bits the factors should be near 1."""
        kind = self.X.dtype if self.rough else torch_for().float64
        return TensorPiece(factors.to(kind) * self.X.to(kind), self.rough)

    def _doubled(self) -> Any:
        """Return the rows in float64, converted once for both products."""
        if self._wide is None:
            self._wide = self.X.double()
        return self._wide


class TensorBlock(DenseBlock):
    """Some rows on a device as a `storage.Block`.

    Entries are copied to the host when needed, exactly, as float32 or float64. Sums are computed where the tensor is, entry by
    entry and in float64, to which every entry converts exactly. What is trusted is that float64 products, sums and absolute
    values are those of IEEE 754, which `device_is_ieee` tests; the order in which a reduction adds does not matter to the bounds.
    Sums for several vectors at once are products of float64 matrices, which have their own order, too. Options that permit
    rounding, such as TF32, do not apply to them, and `device_is_ieee` tests that they keep the digits of float64. A tensor in
    memory is read by `DenseBlock` instead, because the floating-point mode of torch's own threads cannot be checked.
    """

    def __init__(self, X: Any, first: int = 0) -> None:
        self.X, self.first = X, first
        self.n, self.d = X.shape

    @property
    def values(self) -> Array:  # type: ignore[override]
        """The entries on the host."""
        return exact(self.X)

    def dot(self, w: Array) -> tuple[Any, Array]:
        return within_device_memory(lambda: (self._wide * self._there(w)).sum(1), "a proof"), np.array(self.d)

    def dots(self, W: Array) -> tuple[Any, Array]:
        return within_device_memory(lambda: self._wide @ self._there(W), "a proof"), np.array(self.d)

    def combined(self, Q: Any) -> Any:
        return within_device_memory(lambda: self._wide.T @ Q, "a proof")

    def to_storage_f64(self, values: Any) -> Any:
        return values if is_tensor(values) else self._there(np.asarray(values))

    def to_host(self, values: Any) -> Array:
        host: Array = values.cpu().numpy()
        return host

    @cached_property
    def _wide(self) -> Any:
        return self.X.double()

    def abs_dot(self, size: Array) -> Any:
        return within_device_memory(lambda: (self.X.double().abs() * self._there(size)).sum(1), "a proof")

    def squares(self) -> Any:
        return within_device_memory(lambda: self._wide.square().sum(1), "a proof")

    def weighted(self, q: Any) -> Array:
        return self._made(lambda: (self.X.double() * self.to_storage_f64(q)[:, None]).sum(0))

    def _columns(self, columns: Array) -> Array:
        return exact(self.X[:, self._there(columns)])

    def only(self, i: Array) -> TensorBlock:
        return TensorBlock(self.X[self._there(i)])

    def minus(self, origin: Array) -> TensorBlock:
        return TensorBlock(self._wide - self._there(origin), self.first)

    def checksum(self, at_length: bool) -> list[int]:
        """Return a sum of the bits of the entries, mixed and weighted by position."""
        torch = torch_for()
        bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[self.X.element_size()]

        def made() -> Any:
            x = self.X.contiguous().view(bits).reshape(-1)
            x = x.to(torch.int32) if bits == torch.int16 else x.clone()
            left = (1 << (8 * x.element_size() - 15)) - 1  # the bits that a shift by 15 leaves
            x ^= (x >> 15) & left  # otherwise two changed signs would cancel in a sum modulo 2³²
            kind = x.dtype if len(x) < 2**30 else torch.int64
            x *= torch.arange(1, 2 * len(x) + 1, 2, device=x.device, dtype=kind).to(x.dtype)
            return x.sum(dtype=torch.int64)

        return [int(self._made(made))]

    def _made(self, make: Callable[[], Any]) -> Array:
        found: Array = within_device_memory(make, "a proof").cpu().numpy()
        return found

    def _there(self, values: Array) -> Any:
        return torch_for().from_numpy(np.ascontiguousarray(values)).to(self.X.device)


def device_is_ieee(X: Any) -> bool:
    """Return whether float64 arithmetic is that of IEEE 754 where the tensor is.

    Subnormals must survive, also when entries of X are converted, and rounding must be to nearest. Square roots may be off by one
    unit in the last place, as those of some libraries for vectors are: what proofs make of them on a device has room for that.
    """
    torch = torch_for()
    kind = torch.finfo(X.dtype)
    least = kind.smallest_normal * kind.eps
    ones, tiny, half = (torch.tensor(x, dtype=torch.float64, device=X.device) for x in ([1.0, -1.0], [SMALLEST_SUBNORMAL], [U]))
    cases = [
        (X.new_tensor([least]).double(), [least]),
        (tiny * ones, [SMALLEST_SUBNORMAL, -SMALLEST_SUBNORMAL]),
        (ones + half * ones, [1.0, -1.0]),
        (ones + 1.5 * half * ones, [ABOVE, -ABOVE]),
        (ones / 3.0, [1 / 3, -1 / 3]),
        (((2.0 * ones[:1]).sqrt() - 2**0.5).abs() <= math.ulp(2**0.5), [True]),
    ]
    # matrix products that sum 1, a number 40 bits smaller, and -1, over and over
    small = 2.0**-40
    A = torch.tensor([1.0, small, -1.0], dtype=torch.float64, device=X.device).repeat(64, 64)
    cases.append(((A @ torch.ones((A.shape[1], 8), dtype=torch.float64, device=X.device)).reshape(-1), [64 * small] * 512))
    return all(found.cpu().numpy().tobytes() == np.array(right).tobytes() for found, right in cases)
