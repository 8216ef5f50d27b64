"""The matrix A of rows A_i = y_i x_i, of which methods and learners see five operations, whatever the storage::

    scores(w)      A w
    combine(p)     Aᵀp
    softmin(v)     one fused pass: Aᵀp, scores, log-sum-exp and minimum for p = softmax(log p_0 - A v);
                   `softmins` does it for a stack of v in the same pass
    lowest(w, k)   the k rows of smallest score
    take(i)        the rows i, as rows again

and three facts: `n`, `d`, and `radius(p)` = max_i ‖A_i‖_p. The modules, in reading order::

    storage                             the interface of a storage: what a backend must do, and what it may do faster
    reads                               blocks of rows as proofs read them
    threads, mapped, kernels, memory    rows in memory or in mapped files
    blocks, tasks, cluster              rows in blocks that are read when needed, or kept by the workers of a cluster
    tensors, device, triton_kernels     rows in a torch tensor, on a GPU or not
    lazy, accept, complete              what may be passed for X, which storage it becomes, and rows without missing cells
    rows                                `Rows`, which adds signs, scale and constant column, and counts passes
    visiting, ascent                    algorithms that visit rows in memory one by one
    block_ascent, lanes                 the same for several label vectors of sparse rows at once
"""

from gordan.rows.accept import DUMMIES, column_names, host, in_memory_if_small, refuse_queries, stored
from gordan.rows.block_ascent import BlockAscent, gram_product, lane_ranges
from gordan.rows.complete import Complete, complete_rows, is_missing
from gordan.rows.lazy import computed, is_lazy
from gordan.rows.reads import LONGEST_SUM
from gordan.rows.rows import MIN_RADIUS, Rows, Softmin, check_radius, of
from gordan.rows.storage import Block, Storage, require_finite
from gordan.rows.tensors import is_on_device, is_tensor
from gordan.rows.threads import available, nonzero, over_rows, over_vector, threads_for
from gordan.rows.threads import run as in_threads
from gordan.rows.visiting import Ascent, Face, Offset, StoppingRule, equalize_scores

__all__ = [
    "DUMMIES",
    "LONGEST_SUM",
    "MIN_RADIUS",
    "Ascent",
    "Block",
    "BlockAscent",
    "Complete",
    "Face",
    "Offset",
    "Rows",
    "Softmin",
    "StoppingRule",
    "Storage",
    "available",
    "check_radius",
    "column_names",
    "complete_rows",
    "computed",
    "equalize_scores",
    "gram_product",
    "host",
    "in_memory_if_small",
    "in_threads",
    "is_lazy",
    "is_missing",
    "is_on_device",
    "is_tensor",
    "lane_ranges",
    "nonzero",
    "of",
    "over_rows",
    "over_vector",
    "refuse_queries",
    "require_finite",
    "stored",
    "threads_for",
]
