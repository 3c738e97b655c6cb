"""Alpha, its optimiser, and the evidence behind it: the chance level it must exceed, and the z of each cell.

Adam moves alpha whatever the signal: a gradient of pure noise still takes steps of the learning rate. So beside
alpha run `N_NULLS` copies that get the same gradients of the data with the sign of each slot's row flipped at random,
through the same optimiser; what a budget asks for they get as it is, since it is no evidence. How far apart their two
largest entries drift is what chance alone does; a slot whose gap is not beyond all of theirs is *undecided*. The level
holds for the search and not for each slot: of six slots that were each allowed 5%, one would pass by chance in a
quarter of all searches. Copies start where alpha starts, so that what a layout's prior says decides nothing by itself.
All are held within five nats for the sake of what is drawn, and not as evidence: in a long search chance alone is worth
more than the ten that a lead can have, and no slot could ever be decided. So what is cut off each is added up, and
leads are compared as they would be without the cut.
Both are ours; no paper of the four does it.
L slots, K candidates, S null copies.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn

from nas.config.method import Method
from nas.config.space import SearchSpace

N_NULLS = 256
_ROUNDING = 1e-4  # relative: a lead that is read back from probabilities in float32 is not exact
_LARGEST = 5.0  # 10 nats behind, a candidate is drawn once in 22,000 paths: further is for ever


def start(space: SearchSpace) -> Tensor:
    """Alpha before anything is learnt, (L, K) nats: equal, but a slot's present label leads by `layout_prior`."""
    values = torch.zeros(space.n_slots, len(space.candidates))
    for slot, choice in enumerate(space.layout):
        if choice.present is not None:
            values[slot, space.labels.index(choice.present)] = space.layout_prior
    return values


class Alphas:
    """Architecture parameters (L, K), float32, and their null copies (S, L, K).

    Args:
        begins: (L, K) where they start.
        allowed: (L, K) bool; what is not allowed has probability exactly 0, and nothing here depends on its alpha.
        method: learning rate and decay; random_signs makes a control run, whose own alpha gets flipped data gradients.
        signs: source of the flips.
    """

    def __init__(self, begins: Tensor, allowed: Tensor, method: Method, signs: Generator) -> None:
        self.allowed = allowed
        self.values = nn.Parameter(begins.clone())
        self.nulls = nn.Parameter(begins.repeat(N_NULLS, 1, 1))
        # betas of DARTS. Decay is decoupled: as a term of the gradient, Adam would scale it up where gradients are
        # tiny, until it was all that moved alpha.
        self.optimiser = torch.optim.AdamW(
            [self.values, self.nulls], lr=method.alpha_lr, betas=(0.5, 0.999), weight_decay=method.alpha_decay
        )
        self.cut = torch.zeros_like(begins)  # (L, K) what alpha would be further, had it not been held within five nats
        self.null_cuts = torch.zeros_like(self.nulls.detach())  # (S, L, K)
        self.random_signs = method.random_signs
        self.signs = signs
        self.n_updates = 0
        self.mean = torch.zeros(begins.shape, dtype=torch.float64)  # of each cell's data gradients so far
        self.squares = torch.zeros(begins.shape, dtype=torch.float64)  # sum of their squared distances from it

    @property
    def names(self) -> dict[str, nn.Parameter]:
        return {"values": self.values, "nulls": self.nulls}

    @property
    def logits(self) -> Tensor:
        """(L, K) alpha, -inf where not allowed: what samples and probabilities are made of."""
        return self.values.masked_fill(~self.allowed, -torch.inf)

    def update(self, data: Tensor, penalties: Tensor | None = None) -> None:
        """One step of alpha and of its null copies, along the sum of two gradients.

        Args:
            data: (L, K) of the loss on alpha's own data, which alone z tells of.
            penalties: (L, K) of what is asked for beside it, as the budget.
        """
        data = data.cpu()
        pull = torch.zeros_like(data) if penalties is None else penalties.cpu()
        flips = torch.randint(0, 2, (N_NULLS + 1, len(data), 1), generator=self.signs).to(data.dtype) * 2 - 1
        own = data * flips[-1] if self.random_signs else data
        self.values.grad = own + pull
        self.nulls.grad = data * flips[:-1] + pull
        self._observe(own)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        with torch.no_grad():
            for each, cut in ((self.values, self.cut), (self.nulls, self.null_cuts)):
                held = each.clamp(-_LARGEST, _LARGEST)
                cut += each - held
                each.copy_(held)

    def _observe(self, gradient: Tensor) -> None:
        """Welford's update of mean and squares (1962)."""
        self.n_updates += 1
        before = gradient.double() - self.mean
        self.mean = self.mean + before / self.n_updates
        self.squares = self.squares + before * (gradient.double() - self.mean)

    def probabilities(self) -> Tensor:
        """softmax(alpha), (L, K) float32: what is stored and shown, never a sample."""
        return torch.softmax(self.logits.detach(), dim=-1)

    def entropy(self) -> Tensor:
        """(L,) entropy of each row of softmax(alpha), nats, with its gradient; 0 where one candidate is allowed."""
        # Logarithms of what is not allowed are put to 0: 0 * -inf is not a number, nor is its gradient.
        logs = torch.log_softmax(self.logits, dim=-1).masked_fill(~self.allowed, 0.0)
        return -(torch.softmax(self.logits, dim=-1) * logs).sum(dim=-1)

    def z(self) -> Tensor:
        """(L, K) mean of each cell's data gradient over its standard error; 0 before two updates and where not allowed.

        Penalties have no part in it: a budget that pushes the same way at each update is no evidence. Positive where
        descent would lower alpha. Successive gradients are of a moving alpha: it describes, and is no test; the null
        copies are.
        """
        if self.n_updates < 2:
            return torch.zeros(self.mean.shape)
        error = (self.squares / (self.n_updates - 1) / self.n_updates).sqrt()
        return (self.mean / error.clamp_min(1e-12)).masked_fill(~self.allowed, 0.0).float()

    def null_gaps(self) -> Tensor:
        """(L,) how far ahead of all others each slot's leader comes by chance: none of the copies is further.

        It is asked of the candidate that leads in alpha: what a budget pulls to identity leads there in every copy, and
        the data say so only beyond that; a block that leads against the pull leads in few. Each copy counts by the slot
        where it is furthest out, in that slot's standard deviations from its median: the maximum statistic of Westfall
        and Young (1993), which also allows for slots that move together. Where one candidate is allowed there is
        nothing to decide: chance reaches 0, and any gap is beyond it.

        Compared are leads without the cut at five nats: steps that alpha and its copies took by the same rule of the
        same gradients, whose signs alone differ, so under chance alpha is one of them as it was, however long it runs.
        A steady sign adds up with the number of updates, chance with its root. Where something was cut, the level is
        told in the lead that alpha is held to: the share of it that chance reaches of the lead without the cut. A lead
        that turned behind the cut, back against more than was cut off before, is not beyond chance.
        """
        free = self.allowed.sum(dim=-1) > 1
        gaps = torch.zeros(len(free))
        if free.any():
            leaders = self.logits.detach().argmax(dim=-1)[free]  # (F,) slots with a choice
            held = self._ahead(self.values.detach()[None], leaders)[0]  # (F,)
            uncut = self._ahead((self.values.detach() + self.cut)[None], leaders)[0]
            ahead = self._ahead(self.nulls.detach() + self.null_cuts, leaders)  # (S, F)
            middle, spread = ahead.median(dim=0).values, ahead.std(dim=0)
            furthest = ((ahead - middle) / spread.clamp_min(1e-12)).amax(dim=1)
            level = (middle + furthest.max() * spread).clamp_min(0.0)
            decided = level * (held / uncut).clamp(max=1.0)  # the same number where nothing was cut
            undecided = torch.where(level < held, held * (1 + _ROUNDING), level)
            gaps[free] = torch.where(uncut > level, decided, undecided)
        return gaps

    def _ahead(self, values: Tensor, leaders: Tensor) -> Tensor:
        """How far each slot's leader is ahead of all others, (S, F), of alphas (S, L, K); F slots have a choice."""
        free = self.allowed.sum(dim=-1) > 1
        values = values.masked_fill(~self.allowed, -torch.inf)[:, free]
        places = leaders[None, :, None].expand(len(values), -1, 1)
        return values.gather(-1, places)[..., 0] - values.scatter(-1, places, -torch.inf).amax(dim=-1)
