"""ListOps: expressions drawn, valued and written out, many at once. Rules and token ids: `nas.specs.tasks.listops`.

Trees are drawn level by level, since nodes of one depth do not depend on each other; then values and lengths are
gathered from the deepest level up, and places are dealt from the root down. m trees, B examples, T tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from nas.data.objectives import Batch
from nas.errors import DataError
from nas.specs.tasks.listops import CLOSE, DIGIT, OPERATOR, OPERATORS, PADDING, ListOpsOptions

_OPERATOR_SHARE = 0.25
_PER_KEPT = 3  # of trees with an operator on top about one in three has a length that is kept, by both defaults
_MOST_TREES, _MOST_TOKENS = 1024, 2**20  # of one round: what keeps its memory under some 200 MB
_SELDOM = 10_000  # one kept of so many would take minutes for a batch


@dataclass(frozen=True)
class _Level:
    """All nodes of one depth, (nodes,) each; children of a node stand side by side, in the order of the nodes.

    Args:
        tree: number of the tree.
        parent: place in the level above.
        operator: whether it is one.
        symbol: 0 to 9 of a digit, 0 to 3 of an operator.
        n_children: 0 of a digit.
    """

    tree: Tensor
    parent: Tensor
    operator: Tensor
    symbol: Tensor
    n_children: Tensor

    @property
    def first_child(self) -> Tensor:
        """Place in the level below of each node's first child; of a digit, where it would be."""
        return self.n_children.cumsum(0) - self.n_children


class ListOps:
    """Whole expressions, padded behind; the target is the value, (B, 1)."""

    def __init__(self, options: ListOpsOptions, length: int) -> None:
        self.options = options
        self.length = length

    def draw(self, n: int, generator: Generator) -> Batch:
        """As `nas.data.synthetic.generated.Draws`.

        Raises:
            DataError: hardly any expression has a length that the options keep.
        """
        rounds: list[Batch] = []
        missing, drawn = n, 0
        while missing > 0:
            n_trees = min(_PER_KEPT * missing + 16, _MOST_TREES, max(1, _MOST_TOKENS // self.options.shorter_than))
            rounds.append(self._round(n_trees, generator))
            missing -= len(rounds[-1].tokens)
            drawn += n_trees
            if drawn >= 2 * _SELDOM and (n - missing) * _SELDOM < drawn:
                raise DataError(
                    f"{n - missing} of {drawn} expressions drawn have more than {self.options.longer_than} and fewer "
                    f"than {self.options.shorter_than} tokens; at least one in {_SELDOM} must: change max_depth or "
                    "max_args, or keep more lengths"
                )
        tokens = torch.cat([each.tokens for each in rounds])[:n]
        return Batch(tokens, torch.cat([each.targets for each in rounds])[:n], tokens != PADDING)

    def _round(self, n_trees: int, generator: Generator) -> Batch:
        """Those of so many trees whose length is kept."""
        levels = self._levels(n_trees, generator)
        values, sizes = _gathered(levels)
        kept = (sizes[0] > self.options.longer_than) & (sizes[0] < self.options.shorter_than)
        tokens = torch.full((n_trees, self.length), PADDING)
        starts = torch.zeros(n_trees, dtype=torch.long)
        for depth, level in enumerate(levels):
            if depth:
                above, before = levels[depth - 1], sizes[depth].cumsum(0) - sizes[depth]  # tokens of nodes before it
                starts = starts[level.parent] + 1 + before - before[above.first_child[level.parent]]
            ids = torch.where(level.operator, OPERATOR, DIGIT) + level.symbol
            written = kept[level.tree]
            tokens[level.tree[written], starts[written]] = ids[written]
            closed = written & level.operator
            tokens[level.tree[closed], (starts + sizes[depth] - 1)[closed]] = CLOSE
        return Batch(tokens[kept], values[kept, None])

    def _levels(self, n_trees: int, generator: Generator) -> list[_Level]:
        """Trees with an operator on top (a digit alone is never kept); those that are too long grow no further."""
        options = self.options
        levels: list[_Level] = []
        tree, n_tokens = torch.arange(n_trees), torch.zeros(n_trees, dtype=torch.long)
        parent = tree
        for depth in range(1, options.max_depth + 1):
            n_nodes = len(tree)
            operator = torch.rand(n_nodes, generator=generator) <= _OPERATOR_SHARE
            if depth in (1, options.max_depth):
                operator = torch.full((n_nodes,), depth == 1)
            digits = torch.randint(10, (n_nodes,), generator=generator)
            operators = torch.randint(len(OPERATORS), (n_nodes,), generator=generator)
            n_children = torch.randint(2, options.max_args + 1, (n_nodes,), generator=generator)
            n_tokens = n_tokens.scatter_add(0, tree, 1 + operator.long())
            grows = operator & (n_tokens < options.shorter_than)[tree]
            n_children = n_children.where(grows, 0)
            levels.append(_Level(tree, parent, operator, torch.where(operator, operators, digits), n_children))
            parent = torch.arange(n_nodes).repeat_interleave(n_children)
            tree = tree[parent]
            if not len(parent):
                break
        return levels


def _gathered(levels: list[_Level]) -> tuple[Tensor, list[Tensor]]:
    """Values of the trees, (m,), and tokens of each node by level; of no use where a tree has stopped early."""
    values = levels[-1].symbol
    sizes = [1 + levels[-1].operator.long()]
    for level, below in zip(levels[-2::-1], levels[:0:-1], strict=True):
        none = torch.zeros_like(level.symbol)
        sizes.insert(0, none.scatter_add(0, below.parent, sizes[0]) + 1 + level.operator)
        least = none.scatter_reduce(0, below.parent, values, "amin", include_self=False)
        most = none.scatter_reduce(0, below.parent, values, "amax", include_self=False)
        total = none.scatter_add(0, below.parent, values) % 10
        ranked = (10 * below.parent + values).sort().values % 10  # children in order, side by side as before
        middle = level.first_child + torch.stack([level.n_children - 1, level.n_children]) // 2
        median = ranked[middle.clamp(0, len(ranked) - 1)].sum(dim=0) // 2
        results = torch.stack([least, most, median, total])  # in the order of OPERATORS
        chosen = results.gather(0, level.symbol.clamp_max(len(results) - 1)[None])[0]
        values = torch.where(level.operator, chosen, level.symbol)
    return values, sizes
