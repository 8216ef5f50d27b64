"""Torch tensors, and arrays of other devices: which of them may be passed for X, and their entries as proofs read them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from gordan.arrays import MOST_EXACT_INTEGER, Array
from gordan.errors import InputError, MissingExtra
from gordan.floats import ABOVE, HALF_UNIT, LEAST
from gordan.rows.memory import Dense
from gordan.rows.reads import DenseBlock

# What the second of two parts of a number of 16 bits is multiplied by, so that it does not underflow: a power of two.
SPLIT = 256.0


def torch_for(purpose: str = "rows on a device") -> Any:
    """torch, or how to get it."""
    try:
        import torch
    except ImportError:
        raise MissingExtra("torch", "gpu", purpose) from None
    return torch


def is_tensor(X: Any) -> bool:
    """Whether X is a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def is_on_device(X: Any) -> bool:
    """Whether X lies on a device, as a CuPy array does, and says so through DLPack."""
    return hasattr(X, "__dlpack_device__") and not isinstance(X, np.ndarray) and int(X.__dlpack_device__()[0]) != 1


def host(values: Any) -> Any:
    """`values` on the host: tensors and arrays of other devices are copied, everything else is as it was."""
    if is_tensor(values) or is_on_device(values):
        tensor = (values if is_tensor(values) else torch_for().from_dlpack(values)).detach().cpu()
        return tensor.to(torch_for().float32).numpy() if tensor.dtype == torch_for().bfloat16 else tensor.numpy()
    return values


def placed(X: Any, device: str | None) -> Any:
    """X, a tensor, an array of another device or a storage, as a tensor on `device`, or where it is; copied at most once."""
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
    return affordable(lambda: _real(tensor.to(where)), f"X ({size:.1f} GB)")


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
    """Dense rows as a tensor over the same memory."""
    if not isinstance(held, Dense):
        what, fix = ("sparse", "X.toarray()") if held.sparse else ("read in blocks", "an array that fits into memory")
        raise InputError(f"the rows of X are {what}, which stay on the CPU; leave device out, or pass {fix}")
    array = held.arrays[0].view()
    with warnings.catch_warnings():  # the array is read-only, which torch cannot say: nothing here writes to it
        warnings.simplefilter("ignore", UserWarning)
        return torch_for().from_numpy(array)


def _real(X: Any) -> Any:
    """X with entries of type float16, bfloat16, float32 or float64, exactly; as in `accept`."""
    torch = torch_for()
    if X.dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        return X
    if X.dtype in (torch.bool, torch.int8, torch.uint8, torch.int16):
        return X.to(torch.float32)
    if X.dtype == torch.int32:
        return X.to(torch.float64)
    if X.dtype == torch.int64:
        far = (X > MOST_EXACT_INTEGER) | (X < -MOST_EXACT_INTEGER)
        if bool(far.any()):
            row, column = (int(i) for i in torch.nonzero(far)[0])
            raise InputError(f"X[{row}, {column}] is beyond 2**53, which float64 cannot hold; rescale the column")
        return X.to(torch.float64)
    raise InputError(f"the entries of X are {X.dtype}; features must be real numbers: pass X.to(torch.float32), say")


def exact(X: Any) -> Array:
    """A part of X on the host: float32, to which 16 bits convert exactly whatever the floating-point mode, or float64."""
    part = X.cpu()
    exact: Array = (part if part.element_size() > 2 else part.to(torch_for().float32)).numpy()
    return exact


def affordable(make: Callable[[], Any], what: str) -> Any:
    """make(), with an InputError where the device has no memory left for `what`."""
    torch = torch_for()
    try:
        return make()
    except torch.OutOfMemoryError:
        free, all_of_it = (x / 1e9 for x in torch.cuda.mem_get_info())
        raise InputError(
            f"{what} does not fit on the GPU, where {free:.1f} of {all_of_it:.1f} GB are free; "
            "pass a float32, float16 or bfloat16 tensor or fewer rows, or leave device out to use the CPU"
        ) from None


def room(device: Any, enough: float) -> int:
    """Bytes that are free on a GPU; with those that torch keeps for later, which take a millisecond to count, where it has not
    enough."""
    cuda = torch_for().cuda
    free = int(cuda.mem_get_info(device)[0])
    return free if free >= enough else free + int(cuda.memory_reserved(device) - cuda.memory_allocated(device))


class Piece:
    """Some rows of a tensor, for finders: x @ V and x.T @ Q with blocks of float64 vectors, or `rough` ones of float32.

    Rough products are those of the stored type, added up in float32. Where entries have 16 bits so have the other factors, shares
    of the largest, so that the units for such products do them: a w is split into two, so that its digits are not lost; roundings
    of weights of rows are as many as there are rows, and cancel.
    """

    def __init__(self, X: Any, rough: bool, of: Piece | None = None) -> None:
        self.X, self.rough, self._of, self._wide = X, rough and X.element_size() < 8, of, None

    @property
    def T(self) -> Piece:
        """The columns."""
        return Piece(self.X.T, self.rough, self)

    def __matmul__(self, V: Any) -> Any:
        torch = torch_for()
        if not self.rough:
            wide = self._doubled() if self._of is None else self._of._doubled().T
            return wide @ (V._doubled() if isinstance(V, Piece) else V)
        if self.X.element_size() == 4 or not self.X.is_cuda:
            return self.X.to(torch.float32) @ (V.X.to(torch.float32) if isinstance(V, Piece) else V)
        if isinstance(V, Piece):
            return torch.mm(self.X, V.X, out_dtype=torch.float32)
        size, k = V.abs().amax(0).clamp(min=1e-30), V.shape[1]
        share = V / size
        high = share.to(self.X.dtype)
        if self._of is not None:
            return torch.mm(self.X, high, out_dtype=torch.float32) * size
        low = ((share - high) * SPLIT).to(self.X.dtype)
        found = torch.mm(self.X, torch.cat((high, low), 1), out_dtype=torch.float32)
        return (found[:, :k] + found[:, k:] / SPLIT) * size

    def __rmul__(self, factors: Any) -> Piece:
        """The rows times factors, for products with each other: of 16 bits these are to be near 1."""
        kind = self.X.dtype if self.rough else torch_for().float64
        return Piece(factors.to(kind) * self.X.to(kind), self.rough)

    def _doubled(self) -> Any:
        """In float64, made once for both products."""
        if self._wide is None:
            self._wide = self.X.double()
        return self._wide


class TensorBlock(DenseBlock):
    """Some rows on a device, for whoever proves something about them.

    Their entries are copied to the host when asked for: float32 or float64, exactly. Sums are made where the tensor is, entry by
    entry and in float64: every entry converts to it exactly, and what is trusted is that a product, a sum and an absolute value
    in it are those of IEEE 754 (`device_is_ieee` looks); in which order a reduction adds does not matter to the bounds. Sums for
    several vectors at once are products of float64 matrices, which add in an order of their own as well; no licence to round that
    a BLAS may have been given, such as TF32, is about these, and `device_is_ieee` looks that they keep the digits of float64. For
    a tensor in memory there is `DenseBlock`: torch has threads of its own, in a floating-point mode that nobody can look at.
    """

    def __init__(self, X: Any, first: int = 0) -> None:
        self.X, self.first = X, first
        self.n, self.d = X.shape

    @property
    def values(self) -> Array:  # type: ignore[override]
        """The entries, on the host."""
        return exact(self.X)

    def dot(self, w: Array) -> tuple[Array, Array]:
        return self._made(lambda: (self._wide * self._there(w)).sum(1)), np.array(self.d)

    def dots(self, W: Array) -> tuple[Any, Array]:
        return affordable(lambda: self._wide @ self._there(W), "a proof"), np.array(self.d)

    def combined(self, Q: Any) -> Any:
        return affordable(lambda: self._wide.T @ Q, "a proof")

    def lift(self, values: Any) -> Any:
        return values if is_tensor(values) else self._there(np.asarray(values))

    def drop(self, values: Any) -> Array:
        dropped: Array = values.cpu().numpy()
        return dropped

    @cached_property
    def _wide(self) -> Any:
        return self.X.double()

    def abs_dot(self, size: Array) -> Array:
        return self._made(lambda: (self.X.double().abs() * self._there(size)).sum(1))

    def squares(self) -> Array:
        return self._made(lambda: self._wide.square().sum(1))

    def weighted(self, q: Array) -> Array:
        return self._made(lambda: (self.X.double() * self._there(q)[:, None]).sum(0))

    def _columns(self, columns: Array) -> Array:
        return exact(self.X[:, self._there(columns)])

    def only(self, i: Array) -> TensorBlock:
        return TensorBlock(self.X[self._there(i)])

    def checksum(self, at_length: bool) -> list[int]:
        """Their bits, mixed and weighed by place."""
        torch = torch_for()
        bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[self.X.element_size()]

        def made() -> Any:
            x = self.X.contiguous().view(bits).reshape(-1)
            x = x.to(torch.int32) if bits == torch.int16 else x.clone()
            left = (1 << (8 * x.element_size() - 15)) - 1  # bits that a shift by 15 leaves
            x ^= (x >> 15) & left  # modulo 2³² the last bit of a product would not tell two changed signs from none
            x *= torch.arange(1, 2 * len(x) + 1, 2, device=x.device, dtype=torch.int64).to(x.dtype)
            return x.sum(dtype=torch.int64)

        return [int(self._made(made))]

    def _made(self, make: Callable[[], Any]) -> Array:
        found: Array = affordable(make, "a proof").cpu().numpy()
        return found

    def _there(self, values: Array) -> Any:
        return torch_for().from_numpy(np.ascontiguousarray(values)).to(self.X.device)


def device_is_ieee(X: Any) -> bool:
    """Whether float64 is as it should be where the tensor is: subnormals survive, also those of X when they are converted, and
    rounding is to nearest."""
    torch = torch_for()
    kind = torch.finfo(X.dtype)
    least = kind.smallest_normal * kind.eps
    ones, tiny, half = (torch.tensor(x, dtype=torch.float64, device=X.device) for x in ([1.0, -1.0], [LEAST], [HALF_UNIT]))
    looks = [
        (X.new_tensor([least]).double(), [least]),
        (tiny * ones, [LEAST, -LEAST]),
        (ones + half * ones, [1.0, -1.0]),
        (ones + 1.5 * half * ones, [ABOVE, -ABOVE]),
        (ones / 3.0, [1 / 3, -1 / 3]),
        ((2.0 * ones[:1]).sqrt(), [2**0.5]),
    ]
    # sums of 1, a number that 40 digits are needed for beside it, and -1, over and over, as products of matrices
    small = 2.0**-40
    A = torch.tensor([1.0, small, -1.0], dtype=torch.float64, device=X.device).repeat(64, 64)
    looks.append(((A @ torch.ones((A.shape[1], 8), dtype=torch.float64, device=X.device)).reshape(-1), [64 * small] * 512))
    return all(found.cpu().numpy().tobytes() == np.array(right).tobytes() for found, right in looks)
