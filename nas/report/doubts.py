"""What the evidence does not show: one sentence for each reason for doubt that this very search gives, and no other."""

from __future__ import annotations

from collections.abc import Callable

from nas.report import read, words
from nas.report.buys import bought
from nas.report.data import ReportData
from nas.report.document import Bullets, Paragraph, Section
from nas.report.inputs import device_of
from nas.report.layouts import parent_name, trained
from nas.report.looks import UNKNOWN
from nas.report.outcome import compared, latency_verdict, modes
from nas.report.placement import statements, verdict
from nas.report.seeds import derived_by_seed, labels_of, looks_of, seeds_of

_A_GRID = 2  # learning rates
FEW = 5  # seeds below which an interval over them is too narrow more often than it says


def section(data: ReportData) -> Section:
    """Always there: also that nothing is shown yet."""
    found = doubts(data)
    lead = "Each of these follows from what was run and stored, or was not."
    parts = (
        (Paragraph(lead), Bullets(tuple(found))) if found else (Paragraph("Nothing that was looked for was missing."),)
    )
    return Section("doubts", "What the evidence does not show", parts)


def doubts(data: ReportData) -> list[str]:
    if data.result is None:
        return [_unfinished(data)]
    return [line for each in _ALL for line in each(data)]


def _unfinished(data: ReportData) -> str:
    if data.state == "succeeded":
        return "the search has ended, but its result is not kept: nothing here was retrained or compared"
    return (
        f"the search is {data.state}: nothing was compared with a baseline, so no figure here says that a layout is "
        "better than another"
    )


def _seeds(data: ReportData) -> list[str]:
    n = len(seeds_of(data))
    found = []
    asked = read.whole(read.at(data.request, "trials", "n_seeds"))
    derived = derived_by_seed(data)
    if asked is not None and len(derived) < asked:
        found.append(
            f"{words.count(asked - len(derived), 'seed')} of {asked} derived no architecture; the warnings say why"
        )
    if n == 1:
        found.append(
            "one seed was searched: how much another seed would differ is not known; set trials.n_seeds to 5 or more"
        )
    elif 1 < n < FEW:
        found.append(f"{n} seeds were searched, too few to tell how the next one would come out; 5 or more would")
    if len(derived) > 1:
        drawn = looks_of(data)
        stacks = [[drawn.get(x, UNKNOWN).family for x in read.texts(entry.get("slots"))] for entry in derived.values()]
        differing = [slot for slot, column in enumerate(zip(*stacks, strict=False)) if len(set(column)) > 1]
        if differing:
            found.append(
                f"the seeds derived different families in {words.slots(differing)} of {len(stacks[0])}: there, which "
                "block stands is one seed's answer"
            )
    return found


def _undecided(data: ReportData) -> list[str]:
    open_ = read.wholes(read.at(data.found, "derived", "undecided"))
    if not open_:
        return []
    are = "is" if len(open_) == 1 else "are"
    return [
        f"{words.slots(open_)} of the derived architecture {are} undecided: nothing shows that another block "
        "there would be worse; the cheapest tied one was taken"
    ]


def _comparisons(data: ReportData) -> list[str]:
    found = []
    all_ = compared(data)
    if not all_:
        return ["no baseline was trained: nothing shows that the derived architecture is better than any other"]
    for each in all_:
        who = f"{each.get('first', '?')} against {each.get('second', '?')}"
        low, high, difference = (read.number(each.get(name)) for name in ("low", "high", "difference"))
        detectable = read.number(each.get("detectable"))
        if each.get("verdict") == "cannot tell":
            digits = max(4, words.decimals(low, high))
            found.append(
                f"{who}: the interval {words.interval(low, high, digits)} holds both better and worse"
                + ("" if detectable is None else f"; with these seeds only {detectable:.4f} or more would be found")
            )
        elif None not in (difference, detectable) and abs(difference or 0) < (detectable or 0):
            found.append(f"{who}: the difference is smaller than what these seeds find reliably ({detectable:.4f})")
    counts = {seeds for each in all_ if (seeds := read.whole(each.get("n_seeds"))) is not None}
    if counts and min(counts) < FEW:
        n = min(counts)
        found.append(
            "the networks were retrained with one seed: the intervals hold the chance of test windows, none of training"
            if n == 1
            else f"comparisons rest on {n} paired seeds: an interval over so few is a lower bound of the doubt"
        )
    if len(all_) > 1:
        found.append(
            f"{len(all_)} comparisons stand side by side, each with its own 95%: of so many, one may be off by chance"
        )
    return found


def _baselines(data: ReportData) -> list[str]:
    named = {str(each.get("second")) for each in compared(data)}
    if not named:
        return []
    found = []
    if not any(name.startswith("random") for name in named):
        found.append(
            "no random layout of equal cost was trained: how much of the difference a draw without search gives is open"
        )
    steps = read.whole(read.at(data.request, "retrain", "n_steps"))
    if steps is not None:
        after = words.count(steps, "weight update")
        found.append(f"quality is that after {after}: which layout leads after longer training is not shown")
    return found


def _rates(data: ReportData) -> list[str]:
    if not compared(data):
        return []
    rates: dict[tuple[str, ...], dict[float, str]] = {}
    for each in trained(data):
        if each.lr is not None:
            rates.setdefault(each.slots, {}).setdefault(each.lr, each.name)
    used = {lr for own in rates.values() for lr in own}
    n_rates = len(read.items(read.at(data.request, "retrain", "lrs")))
    if n_rates < _A_GRID and not used:
        return ["all networks were trained at one learning rate; another may suit a baseline better (no grid was run)"]
    if n_rates < _A_GRID and len(used) == 1 and len(rates) > 1:
        return [f"every layout was trained at learning rate {used.pop():.4g}; another may suit one of them better"]
    found = []
    for own in rates.values():
        if len(own) > 1:
            (lr, name), (other, again), *_ = own.items()
            found.append(
                f"{name} and {again} are one network, for which some seeds chose learning rate {lr:.4g} and others "
                f"{other:.4g}: which one suits it is open, and so is what a wrong one cost; set retrain.lr_seeds to 3 "
                "or more"
            )
    # Requests from before lr_seeds have none: there the first seed chose alone.
    choosing, trained_with = (
        read.whole(read.at(data.request, "retrain", name)) or 1 for name in ("lr_seeds", "n_seeds")
    )
    if n_rates >= _A_GRID and min(choosing, trained_with) == 1:
        found.append(
            f"one seed chose each layout's learning rate among {n_rates}: it can choose wrongly, and no interval holds "
            "what that costs; set retrain.lr_seeds to 3 or more"
        )
    return found


def _recipe(data: ReportData) -> list[str]:
    """Of a training that began, or was taught, by what the search or the parent had learnt."""
    if not compared(data):
        return []
    found = []
    if read.at(data.request, "retrain", "start") == "supernet":
        found.append(
            "every network began with the supernet's weights for its blocks, and the search trained those of what it "
            "derived most: the comparisons favour the derived architecture; retrain.start scratch does not"
        )
    distil = read.mapping(read.at(data.request, "retrain", "distil"))
    if distil:
        weight = read.number(distil.get("weight"))
        share = "in part" if weight is None else f"with {weight:.4g} of its loss"
        found.append(
            f"every network, {parent_name(data)} too, learnt {share} from a teacher, which is {parent_name(data)}: "
            "which layout leads when it learns from the data alone is not shown"
        )
    return found


def _latency(data: ReportData) -> list[str]:
    found = []
    for each in modes(data):
        low, high = read.number(each.get("low")), read.number(each.get("high"))
        if latency_verdict(low, high) == "cannot tell":
            ends = words.interval(low, high, 3, sign=False)
            found.append(
                f"latency against {parent_name(data)}: the ratio's interval {ends} holds both faster and slower"
            )
            break
    for each in read.mappings(read.at(data.found, "derived", "bounds")):
        if each.get("verdict") == "cannot tell":
            name = str(each.get("name", "?")).replace("_", " ")
            found.append(f"whether the bound on {name} is met cannot be told from its interval")
    errors = [
        error for each in data.tables if (error := read.number(each.body.get("error_p95"))) is not None and error > 0.05
    ]
    if errors:
        found.append(
            f"the latency table is up to {max(errors):.0%} off on whole networks (95% are nearer): predicted "
            "milliseconds closer than that are not told apart"
        )
    device = device_of(data)
    if device and modes(data):
        threads = device.get("threads")
        with_ = f" with {words.count(int(threads), 'thread')}" if threads and threads.isdecimal() else ""
        found.append(f"latency holds for one device: {device.get('processor', 'an unnamed one')}{with_}")
    return found


def _data(data: ReportData) -> list[str]:
    name = read.text(read.at(data.request, "task", "dataset")) or "one data set"
    found = [f"everything was trained and scored on {name}: nothing says that the same holds on other data"]
    lengths = read.mappings(data.found.get("lengths"))
    length = read.whole(read.at(data.request, "task", "train_length"))
    scored = [each for each in lengths if read.number(read.at(each, "derived", "bits")) is not None]
    at = f" ({length})" if length is not None else ""
    if len(scored) < 2:
        found.append(f"quality was scored at one length of input{at}: a layout found at one length can lose at another")
    elif length is not None:
        found.append(f"all networks were trained at {length} tokens: other lengths were scored, not trained")
    for each in lengths:
        why = read.text(read.at(each, "derived", "why"))
        if why is not None:
            found.append(f"at {read.whole(each.get('length'))} tokens the derived architecture has no figure: {why}")
    return found


def _rules(data: ReportData) -> list[str]:
    found = statements(data)
    if not found:
        return []
    unsure = [each for each in found if verdict(each) == "suggested"]
    # Nothing is retrained that the seeds do not show: a statement that was, and still is not supported, did worse.
    worse = [each for each in found if verdict(each) == "not supported" and read.mapping(each.get("confirmation"))]
    told = []
    if any(verdict(each) == "supported" for each in found):
        if unsure:
            are = "is" if len(unsure) == 1 else "are"
            told.append(
                f"{words.count(len(unsure), 'rule')} of {len(found)} {are} suggested only: not confirmed by retraining"
            )
    elif unsure:
        told.append(
            "no rule is supported: what is suggested was not confirmed by retraining it against layouts of equal cost"
        )
    elif worse:
        told.append("no rule is supported")
    elif any(read.number(each.get("p")) is not None for each in found):
        told.append("no rule is supported: the seeds' stacks show nothing about placement that chance would not")
    else:
        told.append("no rule is supported, and no placement could be tested against chance")
    if worse:
        them = "its layout" if len(worse) == 1 else "the layout of each"
        told.append(
            f"the seeds agree on {words.count(len(worse), 'rule')} of {len(found)}, but {them}, retrained, did worse "
            "than what it was held against: what seeds agree on is not shown to train better"
        )
    return told


def _search(data: ReportData) -> list[str]:
    found = []
    seeds = seeds_of(data)
    labels = labels_of(data)
    if seeds and not any(bought(seed, labels, {}) for seed in seeds):
        found.append(
            "no parsimony pass is kept: what each block buys is not known, and alpha alone takes more than is needed"
        )
    if seeds and not any(seed.evidence.null_gaps for seed in seeds):
        found.append("no level of chance was kept for alpha: whether it moved beyond noise is not known")
    cut = read.items(data.found.get("cut_short"))
    if cut:
        found.append(f"time was up for {words.count(len(cut), 'trial')}: what a whole run would give is not known")
    gone = sum(value is None for seed in seeds for row in seed.evidence.probabilities for value in row)
    if gone:
        found.append(f"{words.count(gone, 'probability', 'probabilities')} were no number and are left out")
    return found


_ALL: tuple[Callable[[ReportData], list[str]], ...] = (
    _comparisons, _seeds, _undecided, _baselines, _rates, _recipe, _data, _latency, _rules, _search,
)  # fmt: skip
