"""Requests: frozen, closed, whole in JSON, and refused with one clear line where they make no sense."""

import json
from dataclasses import asdict, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nas import catalog
from nas.config.budget import Budget, LatencyBudget
from nas.config.method import Method
from nas.config.request import SearchRequest, read_request
from nas.config.space import Candidate, SearchSpace
from nas.config.task import Task
from nas.errors import InvalidInput
from nas.options import FfnOptions, MgkOptions, Shape, SlotConfig


def merged(path: str, value: Any) -> dict[str, Any]:
    """The smallest JSON request that says `value` at a path such as space.n_slots."""
    for name in reversed(path.split(".")):
        value = {name: value}
    return value  # type: ignore[no-any-return]


def refusals(request: dict[str, Any] | str) -> list[tuple[str, str]]:
    """(place, message) of every error that a request, or its JSON text, is refused with."""
    with pytest.raises(ValidationError) as error:
        SearchRequest.model_validate_json(request if isinstance(request, str) else json.dumps(request))
    return [(".".join(map(str, each["loc"])), each["msg"]) for each in error.value.errors()]


@pytest.mark.parametrize(
    ("path", "value", "place", "message"),
    [
        ("spice", 1, "spice", "Extra inputs are not permitted"),
        ("space.depth", 8, "space.depth", "Extra inputs are not permitted"),
        ("space.n_slots", 0, "space.n_slots", "Input should be greater than or equal to 1"),
        ("space.n_slots", 10_000, "space.n_slots", "Input should be less than or equal to 512"),
        ("space.n_slots", 2.5, "space.n_slots", "Input should be a valid integer, got a number with a fractional part"),
        ("space.d_model", 66, "space", "Value error, d_model 66 is not divisible by n_heads 4"),
        (
            "space", {"d_model": 12}, "space",
            "Value error, rotary positions need an even head width; d_model / n_heads is 3",
        ),
        ("space.candidates", [], "space", "Value error, candidates is empty; a slot needs at least one"),
        (
            "space.candidates", ["sgux"], "space.candidates.0",
            "Value error, unknown candidate block 'sgux'; known: attention, ffn, identity, mgk, sgu",
        ),
        (
            "space.candidates", ["ffn", "sgu", "ffn"], "space",
            "Value error, label 'ffn' stands for two candidates; labels must differ",
        ),
        (
            "space.candidates", [{"label": "Wide FFN", "block": "ffn"}], "space.candidates.0.label",
            "String should match pattern '^[a-z][a-z0-9_.-]{0,39}$'",
        ),
        (
            "space.candidates", [{"label": "f", "block": "ffn", "options": {"width": 4}}], "space.candidates.0",
            "Value error, unknown option 'width' of block 'ffn'; known: activation, bias, ratio",
        ),
        (
            "space.candidates", [{"label": "f", "block": "ffn", "options": {"x" * 1000: 4}}], "space.candidates.0",
            f"Value error, unknown option '{'x' * 60}' of block 'ffn'; known: activation, bias, ratio",
        ),
        (
            "space.candidates", [{"label": "i", "block": "identity", "options": {"width": 4}}], "space.candidates.0",
            "Value error, unknown option 'width' of block 'identity'; known: none",
        ),
        (
            "space.candidates", [{"label": "f", "block": "ffn", "options": {"ratio": 0}}], "space.candidates.0",
            "Value error, options of block 'ffn': ratio is 0; it must be between 1 and 64",
        ),
        (
            "space.candidates", [{"label": "f", "block": "ffn", "options": {"ratio": "wide"}}], "space.candidates.0",
            "Value error, option 'ratio' of block 'ffn': input should be a valid integer, unable to parse string as an "
            "integer",
        ),
        ("task.dataset", "../secret", "task.dataset", "String should match pattern '^[a-z0-9][a-z0-9_.-]{0,63}$'"),
        ("task.train_length", 256, "", "Value error, train_length 256 is longer than max_len 128"),
        (
            "task.serve", [{"memory_length": 64}], "",
            "Value error, memory_length of a serve mode is 64 but slots keep 0 tokens in evaluation; raise "
            "space.eval_memory_length",
        ),
        (
            "space.causal", False, "",
            "Value error, task.objective is 'causal_lm' but space.causal is false; it must be true",
        ),
        (
            "space.backbone.n_classes", 2, "",
            "Value error, space.backbone.n_classes is 2 but task.objective is 'causal_lm', which predicts tokens; "
            "it must be 0",
        ),
        (
            "space.backbone", {"cutoffs": [10, 30, 90, 500], "div_value": 8}, "",
            "Value error, div_value is 8 with 3 cutoffs below the vocabulary; the last cluster of d_model 64 would "
            "have no width",
        ),
        ("task.serve", [], "task.serve", "Tuple should have at least 1 item after validation, not 0"),
        ("method.alpha_share", 0, "method.alpha_share", "Input should be greater than 0"),
        ("method.warmup_share", 1, "method.warmup_share", "Input should be less than 1"),
        ("method.tau_end", 6, "method", "Value error, tau_end 6.0 is above tau_start 5.0; temperature falls"),
        (
            "budget.latency", {}, "budget.latency",
            "Value error, a latency budget needs exactly one of ms and ratio_to_parent",
        ),
        (
            "budget.latency", {"ms": 4, "ratio_to_parent": 1}, "budget.latency",
            "Value error, a latency budget needs exactly one of ms and ratio_to_parent",
        ),
        ("budget.latency.ms", 0, "budget.latency.ms", "Input should be greater than 0"),
        (
            "trials", {"seed": 2**31 - 1, "n_seeds": 1}, "",
            "Value error, the last seed is 2147483648; it must be below 2^31, so begin with a smaller trials.seed",
        ),
        ("resources.cpus", 0.00001, "resources.cpus", "Input should be greater than or equal to 0.0001"),
        ("resources.gpus", 1.5, "resources", "Value error, gpus is 1.5; above 1 it must be a whole number"),
        (
            "resources.gpus", 0.00001, "resources",
            "Value error, gpus is 1e-05; it must be 0, or at least 0.0001",
        ),
        (
            "resources.gpus", 16, "",
            "Value error, resources.gpus is 16 but batch_size may be 8; each GPU takes rows of every batch, so "
            "batch_size must be at least 16",
        ),
        ("trials.n_samples", 4, "", "Value error, n_samples is 4 but ranges is empty; nothing would vary"),
        (
            "ranges", [{"pointer": "/method/lr", "low": 0.1, "high": 0.1}], "ranges.0",
            "Value error, range of /method/lr has low 0.1 and high 0.1; low must be smaller",
        ),
        (
            "ranges", [{"pointer": "/method/lr", "low": 0, "high": 0.1, "log": True}], "ranges.0",
            "Value error, range of /method/lr is logarithmic from 0.0; low must be positive",
        ),
        (
            "ranges", [{"pointer": "/space/n_slots", "low": 1, "high": 4}], "ranges.0.pointer",
            "String should match pattern '^/method/[a-z_]+$'",
        ),
        (
            "ranges", [{"pointer": "/method/speed", "low": 1, "high": 4}], "",
            "Value error, /method/speed names no number that may vary",
        ),
        (
            "ranges", [{"pointer": "/method/random_signs", "low": 0, "high": 1}], "",
            "Value error, /method/random_signs names no number that may vary",
        ),
        (
            "ranges", [{"pointer": "/method/lr", "low": 0.1, "high": 0.2}] * 2, "",
            "Value error, /method/lr stands twice in ranges",
        ),
        (
            "ranges", [{"pointer": "/method/batch_size", "low": 7.6, "high": 7.9}], "",
            "Value error, range of /method/batch_size from 7.6 to 7.9 holds no whole number, and it takes no other",
        ),
        (
            "retrain.baselines", ["present"], "",
            "Value error, retrain.baselines has 'present' but space.layout does not say what stands in each slot; "
            "give every slot its present label, or leave 'present' out",
        ),
        (
            "retrain.baselines", ["antisandwich"], "retrain.baselines.0",
            "Input should be 'interleaved', 'present', 'sandwich', 'par', 'random', 'all-ffn' or 'all-attention'",
        ),
        (
            "retrain.baselines", ["par", "random", "par"], "retrain.baselines",
            "Value error, baselines has 'par' 2 times; once is enough",
        ),
        ("retrain.lrs", [0.5, -1], "retrain.lrs", "Value error, lrs has -1; a factor of method.lr must be above 0"),
        ("retrain.lrs", [2, 2], "retrain.lrs", "Value error, lrs [2.0, 2.0] has a factor twice"),
        (
            "retrain.lrs", [1, 1000], "",
            "Value error, retrain.lrs has 1000, which makes a learning rate of 2 of 0.002; it must be above 0, and at "
            "most 1",
        ),
        ("retrain.k_best", 0, "retrain.k_best", "Input should be greater than or equal to 1"),
        ("retrain.n_random", 0, "retrain.n_random", "Input should be greater than or equal to 1"),
        ("retrain.start", "warm", "retrain.start", "Input should be 'scratch' or 'supernet'"),
        ("retrain.distil", {"weight": 0}, "retrain.distil.weight", "Input should be greater than 0"),
        ("retrain.distil", {"temperature": 0}, "retrain.distil.temperature", "Input should be greater than 0"),
        (
            "retrain", {"distil": {}, "baselines": ["sandwich"]}, "",
            "Value error, retrain.distil is given but no parent is trained that could teach; put 'interleaved' or "
            "'present' into retrain.baselines",
        ),
        ("name", "two\nlines", "name", r"String should match pattern '^[^\x00-\x1f\x7f-\x9f]+$'"),
        ("name", "\x9b2J clears terminals", "name", r"String should match pattern '^[^\x00-\x1f\x7f-\x9f]+$'"),
        ("format_version", 2, "format_version", "Input should be 1"),
    ],
)  # fmt: skip
def test_request_that_makes_no_sense_is_refused_with_one_line(path: str, value: Any, place: str, message: str) -> None:
    assert refusals(merged(path, value)) == [(place, message)]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_none_are_refused(number: str) -> None:
    assert refusals(f'{{"method": {{"lr": {number}}}}}') == [("method.lr", "Input should be a finite number")]
    assert refusals(f'{{"ranges": [{{"pointer": "/method/lr", "low": {number}, "high": 1}}]}}') == [
        ("ranges.0.low", "Input should be a finite number")
    ]
    candidate = f'{{"label": "f", "block": "ffn", "options": {{"ratio": {number}}}}}'
    assert refusals(f'{{"space": {{"candidates": [{candidate}]}}}}') == [
        ("space.candidates.0", "Value error, option 'ratio' of block 'ffn': input should be a finite number")
    ]


def test_range_whose_end_is_out_of_the_fields_own_range_is_refused() -> None:
    assert refusals({"ranges": [{"pointer": "/method/alpha_share", "low": 0.1, "high": 0.9}]}) == [
        ("", "Value error, method cannot take /method/alpha_share = 0.9: input should be less than or equal to 0.5")
    ]


def test_a_range_of_batches_with_fewer_rows_than_gpus_is_refused() -> None:
    ranges = [{"pointer": "/method/batch_size", "low": 2, "high": 8}]
    assert refusals({"ranges": ranges, "resources": {"gpus": 4}}) == [
        (
            "",
            "Value error, resources.gpus is 4 but batch_size may be 2; each GPU takes rows of every batch, so "
            "batch_size must be at least 4",
        )
    ]
    assert SearchRequest.model_validate({"ranges": ranges, "resources": {"gpus": 2}}).resources.n_ranks == 2


def test_ranges_whose_ends_do_not_go_together_are_refused() -> None:
    ranges = [
        {"pointer": "/method/tau_start", "low": 0.5, "high": 5},
        {"pointer": "/method/tau_end", "low": 0.1, "high": 1},
    ]
    assert refusals({"ranges": ranges}) == [
        (
            "",
            "Value error, method cannot take /method/tau_start = 0.5, /method/tau_end = 1.0: "
            "tau_end 1.0 is above tau_start 0.5; temperature falls",
        )
    ]


def test_empty_space_has_every_default_and_stores_them_written_out() -> None:
    request = SearchRequest.model_validate({"space": {}})
    stored = request.model_dump(mode="json")
    for candidate in stored["space"]["candidates"]:
        assert candidate["options"] == asdict(catalog.block(candidate["block"]).options())
    assert stored["format_version"] == 1
    assert SearchRequest.model_validate(stored) == request


def test_bare_name_is_a_candidate_of_that_label_with_default_options() -> None:
    named, written = Candidate.model_validate("ffn"), Candidate(label="ffn", block="ffn", options={"ratio": 4})
    assert named == written
    assert (named.family, named.letter) == ("ffn", "F")


def test_options_are_written_out_in_one_order_without_touching_the_callers_dict() -> None:
    given_options = {"n_keys": 3}
    candidate = Candidate(label="m", block="mgk", options=given_options)
    assert list(candidate.options) == [option.name for option in fields(MgkOptions)]
    assert candidate.options["n_keys"] == 3
    assert given_options == {"n_keys": 3}


requests = st.builds(
    lambda slots, blocks, lr, budget, seeds, ranges: SearchRequest.model_validate(
        {
            "space": {"n_slots": slots, "candidates": blocks},
            "method": {"lr": lr},
            "budget": {"latency": budget},
            "trials": {"n_seeds": seeds},
            "ranges": ranges,
            "retrain": {"baselines": []},
        }
    ),
    st.integers(1, 512),
    st.lists(st.sampled_from(["attention", "ffn", "identity", "sgu", "mgk"]), min_size=1, unique=True),
    st.floats(1e-6, 1),
    st.none() | st.floats(1e-3, 1e3).map(lambda ms: {"ms": ms}),
    st.integers(1, 64),
    st.sampled_from([[], [{"pointer": "/method/lr", "low": 1e-4, "high": 1e-2, "log": True}]]),
)


@given(request=requests)
def test_request_is_the_same_after_a_round_trip_through_json(request: SearchRequest) -> None:
    assert SearchRequest.model_validate_json(request.model_dump_json()) == request
    assert SearchRequest.model_validate(json.loads(json.dumps(request.model_dump(mode="json")))) == request


@given(request=requests, lr=st.floats(1e-6, 1), steps=st.floats(1, 1000), seed=st.integers(0, 2**31 - 1))
def test_resolved_request_differs_only_by_its_sample_its_seed_and_its_empty_ranges(
    request: SearchRequest, lr: float, steps: float, seed: int
) -> None:
    resolved = request.resolve({"/method/lr": lr, "/method/n_steps": steps}, seed)
    assert resolved.method == request.method.model_copy(update={"lr": lr, "n_steps": round(steps)})
    assert (resolved.trials.seed, resolved.trials.n_seeds, resolved.trials.n_samples) == (seed, 1, 1)
    assert resolved.ranges == ()
    kept = {"method", "trials", "ranges"}
    assert resolved.model_dump(exclude=kept) == request.model_dump(exclude=kept)
    assert SearchRequest.model_validate(resolved.model_dump()) == resolved


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        ({"/method/speed": 1.0}, r"^/method/speed names no number that may vary$"),
        ({"/method/alpha_estimator": 1.0}, r"^/method/alpha_estimator names no number that may vary$"),
        ({"/method/lr": 2.0}, r"^method cannot take /method/lr = 2\.0: input should be less than or equal to 1$"),
        (
            {"/method/tau_start": 0.1},
            r"^method cannot take /method/tau_start = 0\.1: tau_end 0\.2 is above tau_start 0\.1",
        ),
    ],
    ids=["unknown", "word", "out of range", "against another field"],
)
def test_sample_that_no_method_can_take_is_refused(sample: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SearchRequest().resolve(sample, 0)


def test_whole_number_fields_stay_whole_in_a_sample() -> None:
    method = SearchRequest().method_with({"/method/batch_size": 15.6, "/method/lr": 0.01})
    assert (method.batch_size, method.lr) == (16, 0.01)


def test_request_is_frozen() -> None:
    with pytest.raises(ValidationError, match="Instance is frozen"):
        SearchRequest().name = "other"  # type: ignore[misc]


def test_unknown_label_names_the_labels_of_the_space() -> None:
    with pytest.raises(InvalidInput, match=r"^unknown label 'sgux'; the space has attention, ffn, identity, sgu, mgk$"):
        SearchSpace().candidate("sgux")


def test_network_config_holds_the_chosen_blocks_with_their_options_slot_by_slot() -> None:
    narrow = {"label": "f2", "block": "ffn", "options": {"ratio": 2}}
    request = SearchRequest.model_validate(
        {
            "space": {"n_slots": 2, "candidates": ["identity", narrow]},
            "retrain": {"baselines": []},
        }
    )
    config = request.network_config(["f2", "identity"], 256)
    assert config.shape == Shape(64, 4, 128, True, "rotary")
    assert config.slots == (SlotConfig("ffn", asdict(FfnOptions(ratio=2))), SlotConfig("identity", {}))
    assert (config.vocab_size, config.norm) == (256, "layer")


@pytest.mark.parametrize(
    ("name", "candidates", "n_slots", "message"),
    [
        (
            "sandwich", ["ffn", "sgu"], 8,
            "retrain.baselines has 'sandwich', which needs candidates of family attention and ffn; the space has ffn, "
            "sgu",
        ),
        ("par", ["ffn", "sgu"], 8, "retrain.baselines has 'par', which needs candidates of family attention and ffn;"),
        ("all-ffn", ["sgu"], 8, "retrain.baselines has 'all-ffn', which needs candidates of family ffn; the space has"),
        ("all-attention", ["ffn"], 8, "retrain.baselines has 'all-attention', which needs candidates of family attent"),
        (
            "sandwich", ["attention", "ffn"], 7,
            "retrain.baselines has 'sandwich' but space.n_slots is 7; a sandwich has as many attention as ffn blocks, "
            "and below 4 slots it is the interleaved parent: give an even number from 4 on, or leave it out",
        ),
        ("sandwich", ["attention", "ffn"], 2, "retrain.baselines has 'sandwich' but space.n_slots is 2; a sandwich"),
        (
            "par", ["attention", "ffn"], 4,
            "retrain.baselines has 'par' but space.n_slots is 4; at its ratio of 5 : 1 there is no attention below 5 "
            "slots, so give as many, or leave it out",
        ),
    ],
)  # fmt: skip
def test_baselines_that_a_space_cannot_build_are_refused(
    name: str, candidates: list[str], n_slots: int, message: str
) -> None:
    request = {"space": {"candidates": candidates, "n_slots": n_slots}, "retrain": {"baselines": [name]}}
    ((place, told),) = refusals(request)
    assert place == ""
    assert told.startswith(f"Value error, {message}")


def test_the_highest_learning_rate_of_a_range_is_what_lrs_multiply() -> None:
    ranges = [{"pointer": "/method/lr", "low": 0.001, "high": 0.3}]
    assert refusals({"ranges": ranges, "retrain": {"lrs": [4]}}) == [
        (
            "",
            "Value error, retrain.lrs has 4, which makes a learning rate of 1.2 of 0.3; it must be above 0, and at "
            "most 1",
        )
    ]


def test_a_trial_of_a_grid_has_its_own_rate_and_no_grid() -> None:
    request = SearchRequest.model_validate({"method": {"lr": 0.1}, "retrain": {"lrs": [1, 8]}})
    resolved = request.resolve({"/method/lr": 0.8}, 0)
    assert (resolved.method.lr, resolved.retrain.lrs) == (0.8, ())
    assert SearchRequest.model_validate(resolved.model_dump(mode="json")) == resolved


def test_a_retraining_stored_by_an_older_version_means_what_it_did() -> None:
    older = {"n_steps": 800, "n_seeds": 2, "baselines": ["interleaved"], "test_windows": 512}
    retrain = SearchRequest.model_validate({"retrain": older}).retrain
    assert (retrain.lrs, retrain.start, retrain.distil) == ((), "scratch", None)
    assert retrain.most_trials(3) == (3 + 1) * 2


def test_all_trainings_are_counted_before_they_are_run() -> None:
    retrain = {"baselines": ["interleaved", "par", "random"], "n_random": 4, "n_seeds": 5, "lrs": [0.5, 1, 2]}
    request = SearchRequest.model_validate({"retrain": {**retrain, "distil": {}}})
    assert request.retrain.most_trials(2) == (2 + 2 + 4 + 1) * (5 + 2)  # the teacher is one more
    assert request.retrain.model_copy(update={"k_best": 3}).most_trials(2) == (6 + 2 + 4 + 1) * (5 + 2)
    confirming = request.retrain.model_copy(update={"confirm_seeds": 4})
    assert confirming.most_trials(2) == 9 * (5 + 2) + (5 + 2 + 1 + 1) * (
        4 + 2
    )  # with par, and the teacher of each fresh seed
    several = confirming.model_copy(update={"lr_seeds": 5})  # of the fresh ones there are 4
    assert several.most_trials(2) == 9 * (5 + 2 * 5) + (5 + 2 + 1 + 1) * (4 + 2 * 4)


@pytest.mark.parametrize(
    "request_without_parent",
    [
        {"space": {"candidates": ["ffn", "sgu"]}},
        {
            "space": {"candidates": ["ffn", "sgu"]},
            "retrain": {"baselines": []},
            "budget": {"latency": {"ratio_to_parent": 1}},
        },
    ],
    ids=["baseline", "relative budget"],
)
def test_space_without_attention_has_no_interleaved_parent(request_without_parent: dict[str, Any]) -> None:
    assert refusals(request_without_parent) == [
        (
            "",
            "Value error, the interleaved parent needs candidates of families attention and ffn; the space has ffn, "
            "sgu; without them set retrain.baselines to [], and bounds of the budget in numbers, not as ratios",
        )
    ]


def test_masked_lm_has_one_token_id_more_for_mask_and_takes_no_memory() -> None:
    request = SearchRequest.model_validate({"space": {"causal": False}, "task": {"objective": "masked_lm"}})
    assert (SearchRequest().task.vocab_size, request.task.vocab_size) == (256, 257)
    ((place, message),) = refusals({"space": {"causal": False, "memory_length": 8}, "task": {"objective": "masked_lm"}})
    assert place == "space"
    assert message.startswith("Value error, memory_length is 8 in an encoder")


def test_budget_may_be_absolute_relative_or_absent() -> None:
    assert Budget().latency is None
    assert LatencyBudget(ms=4.0).ratio_to_parent is None
    assert LatencyBudget(ratio_to_parent=0.65).ms is None


def test_every_field_of_a_request_says_what_it_means_or_is_a_part() -> None:
    silent = [
        name
        for model in (SearchSpace, Method)
        for name, field in model.model_fields.items()
        if not field.description and name != "alpha_estimator"
    ]
    assert silent == []


@pytest.mark.parametrize("bound", ["parameters", "flops", "cache_bytes"])
def test_a_bound_relative_to_the_parent_needs_one(bound: str) -> None:
    space = {"candidates": ["sgu", "ffn"]}
    request = {"space": space, "retrain": {"baselines": []}}
    assert refusals({**request, "budget": {bound: {"ratio_to_parent": 0.5}}})[0][1].startswith(
        "Value error, the interleaved parent needs candidates of families attention and ffn"
    )
    assert SearchRequest.model_validate({**request, "budget": {bound: {"at_most": 1e6}}})


@pytest.mark.parametrize(
    ("request_of_another_kind", "message"),
    [
        (
            {"task": {"objective": "masked_lm", "serve": [{}, {"mode": "decode", "query_length": 8}]},
             "space": {"causal": False}},
            "serve mode 'decode' is of decoders that predict tokens one by one, and this is an encoder; leave it out",
        ),
        (
            {"task": {"objective": "sequence_classification"}, "space": {"backbone": {"pooling": "mean"}},
             "budget": {"cache_bytes": {"at_most": 1}}},
            "budget.cache_bytes is of decoders that predict tokens one by one, and this is a classifier; leave it out",
        ),
        (
            {"space": {"memory_length": 64, "candidates": ["attention", "ffn"]},
             "task": {"serve": [{"mode": "decode", "query_length": 8, "memory_length": 64}]}},
            "memory_length of serve mode 'decode' is 64, but its cache holds all that was read; count it in "
            "query_length, and leave memory_length 0",
        ),
        (
            {"task": {"serve": [{"mode": "decode", "query_length": 128}]}, "space": {}},
            "query_length 128, with the token that is decoded, is longer than train_length 128, and candidate 'sgu' "
            "cannot run there: its spatial weights are one for each pair of positions, so it cannot run beyond "
            "max_len, 128 tokens",
        ),
    ],
    ids=["encoder", "classifier", "memory", "length"],
)  # fmt: skip
def test_decoding_is_refused_where_there_is_none(request_of_another_kind: dict[str, Any], message: str) -> None:
    assert refusals(request_of_another_kind) == [("", f"Value error, {message}")]


def test_serve_mode_beyond_max_len_needs_candidates_that_can_run_there() -> None:
    wide = {"task": {"serve": [{"query_length": 512}]}}
    assert SearchRequest.model_validate({**wide, "space": {"candidates": ["attention", "ffn"]}})
    assert refusals({**wide, "space": {}}) == [
        (
            "",
            "Value error, query_length 512 is longer than train_length 128, and candidate 'sgu' cannot run there: its "
            "spatial weights are one for each pair of positions, so it cannot run beyond max_len, 128 tokens",
        )
    ]


def test_a_request_that_cannot_be_read_is_one_line() -> None:
    assert read_request({"name": "mine"}).name == "mine"
    message = r"^space\.candidates\.0: unknown candidate block 'gone'; known: attention, ffn, identity, mgk, sgu$"
    with pytest.raises(InvalidInput, match=message):
        read_request({"space": {"candidates": ["gone"]}})


@pytest.mark.parametrize(("objective", "unit"), [("causal_lm", "bits per byte"), ("masked_lm", "bits per masked byte")])
def test_a_task_says_what_its_quality_is_told_in(objective: str, unit: str) -> None:
    assert Task.model_validate({"objective": objective}).quality_unit == unit
