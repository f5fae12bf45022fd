"""Choosing a threshold: defaults, sentences and errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from abstain import ArgumentError, DataError, Items, choose_threshold, evaluate, read
from abstain.thresholds import Policy, split_by_cluster
from guaranteed import drawn, promised_items


def independent_items(wrong: list[int], confidence: list[float], **options: Any) -> Items:
    return Items.from_arrays([1] * len(wrong), [1 - each for each in wrong], confidence=confidence, **options)


def test_the_first_sentence_states_the_guarantee_and_the_threshold() -> None:
    """100 right answers, then 100 less confident ones of which every fourth is wrong; worked with scipy's binomial."""
    wrong = [0] * 100 + [0, 0, 0, 1] * 25
    sure = [(200 - row) / 200 for row in range(200)]
    policy = choose_threshold(independent_items(wrong, sure), risk=0.05, sure=0.95)
    errors, answers = np.cumsum(wrong), np.arange(1, 201)
    certain = stats.binom.cdf(errors, answers, 0.05) <= 0.05
    # Steps of one percent, from 1.75 times the number of answers that would be enough without an error.
    least = int(np.ceil(1.75 * np.log(0.05) / np.log(0.95)))
    steps = [count for count in range(2, 201, 2) if count >= least]
    last = next(count for count in steps if not certain[count - 1]) - 2
    assert policy.method == "binomial"
    assert policy.guarantee == "exact"
    assert policy.observed is not None
    assert policy.observed.answered == last
    assert policy.threshold == np.nextafter(sure[last], 1.0)
    assert str(policy) == (
        "To be 95% sure that at most 5% of answers are wrong, answer those with a confidence of at least "
        f"{policy.shown_threshold:g}: {round(last / 2)}% of items, {last} of 200."
    )
    assert policy.observed.p_value == pytest.approx(stats.binom.cdf(errors[last - 1], last, 0.05))


def test_the_default_method_depends_on_the_data() -> None:
    assert choose_threshold(promised_items(), risk=0.1).method == "pseudo-cluster"
    assert choose_threshold(promised_items(), risk=0.1, finite_sample=True).method == "gaffke"
    assert choose_threshold(promised_items(11), risk=0.1).method == "gaffke"
    single = promised_items(400, 1)
    assert choose_threshold(single, risk=0.1).method == "binomial"
    assert (
        choose_threshold(single, risk=0.1, loss=np.full(400, 0.04), largest_loss=1.0).method
        == "hoeffding-bentkus"
    )
    assert choose_threshold(promised_items(), risk=0.1, risk_type="joint", sure=None).method == "crc"


def test_the_lines_name_an_asymptotic_test() -> None:
    policy = choose_threshold(promised_items(), risk=0.1)
    assert policy.guarantee == "asymptotic"
    assert any("asymptotic" in line and "--finite-sample" in line for line in policy.lines)
    assert any("the test is asymptotic" in line for line in policy.assumptions)
    gaffke = choose_threshold(promised_items(400), risk=0.2, finite_sample=True)
    assert gaffke.guarantee == "conjectured"
    assert (
        "The guarantee comes from Gaffke's test. It is conjectured to be valid for any number of clusters: there is no "
        "proof, and no counterexample is known."
    ) in gaffke.lines
    assert "no cluster has more than 6 items" in gaffke.assumptions


def test_without_a_guarantee_the_lines_explain_what_it_would_take() -> None:
    policy = choose_threshold(promised_items(10, 6, seed=3), risk=0.05)
    assert policy.threshold is None
    assert not policy.has_guarantee
    assert str(policy) == ("No threshold has this guarantee: 95% sure that at most 5% of answers are wrong.")
    assert policy.reason == "even without a single error, 59 clusters are needed, and there are 10"
    assert policy.alternative is not None
    assert policy.alternative.risk is not None
    assert policy.alternative.risk > 0.05
    assert policy.alternative.clusters is not None
    assert policy.alternative.clusters > 59
    assert policy.lines[1] == (
        "Even without a single error, 59 clusters are needed, and there are 10. The smallest risk that these data "
        f"could have guaranteed is {100 * policy.alternative.risk:g}%, but to choose it now, after seeing the data, is "
        f"not valid: it needs new data. About {policy.alternative.clusters} clusters like these would be enough; there "
        "are 10. With 10 clusters like these, no finite-sample test can give this guarantee in more than 7% of data "
        "sets."
    )
    again = choose_threshold(promised_items(10, 6, seed=3), risk=policy.alternative.risk)
    assert again.threshold is not None


def test_the_limit_of_every_finite_sample_test_by_hand() -> None:
    """40 clusters of 5 right answers: 0.05 * (1 + 0.05 / 0.95) ** 40 = 0.389. Twice as many for gaffke are enough.

    If a cluster can have 10 items, clusters are half as large as the largest: 0.05 * (1 + 0.025 / 0.95) ** 40 = 0.1413.
    """
    items = independent_items(
        [0] * 200, [(200 - row) / 200 for row in range(200)], cluster=[row % 40 for row in range(200)]
    )
    policy = choose_threshold(items, risk=0.05, finite_sample=True)
    assert policy.threshold is None
    assert policy.alternative is not None
    assert policy.alternative.finite_sample_power == pytest.approx(0.05 * 0.95**-40)
    assert policy.lines[1].endswith(
        "With 40 clusters like these, no finite-sample test can give this guarantee in more than 39% of data sets."
    )
    larger = choose_threshold(items, risk=0.05, finite_sample=True, largest_cluster=10)
    assert larger.alternative is not None
    assert larger.alternative.finite_sample_power == pytest.approx(0.05 * (1 + 0.025 / 0.95) ** 40)
    # An observed risk of 1/40, and half of the answers: (0.05 - 0.025) * 0.5 instead of 0.05.
    wrong = [int(row % 40 == 0) for row in range(200)]
    some = choose_threshold(
        independent_items(wrong, [0.9] * 200, cluster=[row // 5 for row in range(200)]), risk=0.05
    )
    assert some.alternative is not None
    assert some.alternative.finite_sample_power == pytest.approx(0.05 * (1 + 0.025 / 0.95) ** 40)
    # With enough power, the sentence is omitted.
    frequent = choose_threshold(items, risk=0.07, finite_sample=True)
    assert frequent.alternative is not None
    assert frequent.alternative.finite_sample_power == pytest.approx(0.05 * 0.93**-40)
    assert "finite-sample test can" not in frequent.lines[1]


@pytest.mark.parametrize("finite_sample", [False, True])
@pytest.mark.parametrize("risk_type", ["selective", "joint"])
def test_names_of_clusters_and_order_of_rows_do_not_matter(risk_type: str, finite_sample: bool) -> None:
    """Also if clusters are unequal, and if the new names have another order."""
    generator = np.random.default_rng(9)
    sizes = np.ceil(generator.lognormal(1.5, 0.8, 90)).astype(int)
    cluster = np.repeat(np.arange(90), sizes)
    wrong = (generator.random(len(cluster)) < 0.06).astype(int)
    confidence = (0.5 + 0.5 * generator.random(len(cluster)) - 0.3 * wrong).round(2)
    options: dict[str, Any] = {"risk": 0.12, "risk_type": risk_type, "finite_sample": finite_sample}
    first = choose_threshold(
        independent_items(wrong.tolist(), confidence.tolist(), cluster=cluster.tolist()), **options
    )
    assert first.threshold is not None or finite_sample
    for seed in range(5):
        shuffled = np.random.default_rng(seed)
        names, order = shuffled.permutation(90), shuffled.permutation(len(cluster))
        again = choose_threshold(
            independent_items(
                wrong[order].tolist(),
                confidence[order].tolist(),
                cluster=[f"p{names[row]}" for row in cluster[order]],
            ),
            **options,
        )
        assert (again.threshold, again.observed, again.alternative) == (
            first.threshold,
            first.observed,
            first.alternative,
        )


def test_unequal_clusters_count_like_fewer_equal_ones() -> None:
    """Two clusters of 30 and 40 of 1 item: 100² / (2 * 30² + 40) = 5.4, too few for the asymptotic test."""
    cluster = [0] * 30 + [1] * 30 + list(range(2, 42))
    items = independent_items([0] * 100, [(100 - row) / 100 for row in range(100)], cluster=cluster)
    policy = choose_threshold(items, risk=0.3)
    assert policy.method == "gaffke"
    assert [str(warning) for warning in policy.warnings] == [
        "42 clusters of unequal size count like 5 of equal size, which are few for an asymptotic test; Gaffke's test "
        "does not need many, and was used"
    ]
    requested = choose_threshold(items, risk=0.3, method="pseudo-cluster")
    assert requested.method == "pseudo-cluster"
    assert [warning.code for warning in requested.warnings] == ["few_clusters"]


def test_the_number_of_clusters_that_would_be_enough_is_enough() -> None:
    """The clusters are repeated, so that every repetition has the same errors."""
    items = promised_items(40, 6, seed=5)
    observed = choose_threshold(items, risk=0.5).data.risk
    assert observed is not None
    risk = 1.2 * observed
    policy = choose_threshold(items, risk=risk, start=1.0)
    assert policy.threshold is None
    assert policy.alternative is not None
    assert policy.alternative.clusters is not None
    repeats = -(-policy.alternative.clusters // 40)
    rows = np.concatenate([np.arange(len(items))] * repeats)
    names = np.concatenate([[f"{name}/{part}" for name in items.cluster] for part in range(repeats)])
    many = replace(items.take(rows), cluster=names)
    assert choose_threshold(many, risk=risk, start=1.0).threshold is not None


@pytest.mark.parametrize("risk", [0.001, 0.005, 0.02])
def test_the_alternative_risk_is_the_smallest_that_could_have_been_guaranteed(risk: float) -> None:
    """The start of the fixed sequence depends on the requested risk, so small risks are tested, too."""
    items = promised_items(120, 8, seed=2)
    policy = choose_threshold(items, risk=risk)
    assert policy.alternative is not None
    assert policy.alternative.risk is not None
    assert choose_threshold(items, risk=policy.alternative.risk).has_guarantee
    assert not choose_threshold(items, risk=policy.alternative.risk - 0.002).has_guarantee


def test_a_risk_below_the_observed_risk_of_every_threshold() -> None:
    wrong = [0, 1] * 150
    policy = choose_threshold(independent_items(wrong, [(300 - row) / 300 for row in range(300)]), risk=0.05)
    assert policy.threshold is None
    assert policy.alternative is not None
    assert policy.alternative.risk is not None
    # The sequence begins at a fifth of the items: 30 of 60 are wrong, and the alternative is the upper bound.
    assert policy.alternative.risk == pytest.approx(np.ceil(1000 * stats.beta.ppf(0.95, 31, 30)) / 1000)
    # (1/2 - 0.05) / (1 - 0.05)
    assert policy.must_decline == pytest.approx(0.45 / 0.95)
    assert policy.lines[-1] == (
        "Any policy with this risk must decline at least 47% of the answers, because 50% of all answers are wrong."
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"risk": 5}, "got 5; did you mean 5%?"),
        ({"risk": 0}, "risk must lie strictly between 0 and 1"),
        ({"risk": 1.0}, "risk must lie strictly between 0 and 1"),
        ({"risk": "150%"}, "got 150%"),
        ({"risk": "five"}, "risk must be a number"),
        ({"sure": 95}, "sure must lie strictly between 0 and 1 .* did you mean 95%?"),
        ({"loss": "abs"}, "loss abs has no largest value"),
        ({"loss": lambda truth, prediction: abs(truth - prediction)}, "has no declared largest value"),
        ({"confidence": "nothing"}, "unknown confidence 'nothing'"),
        ({"method": "binomial"}, "needs independent items, but some clusters have several items"),
        ({"method": "sgr"}, "needs independent items"),
        ({"method": "magic"}, "unknown method 'magic'"),
        ({"method": "crc"}, "on average .crc. is only possible for the joint risk"),
        ({"sure": None}, "on average .crc. is only possible for the joint risk"),
        ({"method": "pseudo-cluster", "finite_sample": True}, "remove one of the two"),
        ({"method": "betting"}, "unknown method 'betting'"),
        ({"worst": True}, "worst needs groups"),
        ({"by": "sites"}, "unknown group column 'sites' .did you mean 'site'"),
        ({"grid": []}, "at least one threshold"),
        ({"start": 1.5}, "start must be in"),
        ({"needless": 0.2, "by": "site"}, "needless needs one threshold for all items"),
    ],
)
def test_invalid_arguments_are_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        choose_threshold(promised_items(30), **options)


def test_data_without_any_possible_guarantee_are_errors() -> None:
    one_cluster = replace(promised_items(30), cluster=np.zeros(180, np.int64))
    with pytest.raises(DataError, match="there is only one cluster; a risk guarantee needs items of several"):
        choose_threshold(one_cluster)
    unsure = Items.from_arrays([1, 0], [1, 1])
    with pytest.raises(ArgumentError, match="no confidence in this source"):
        choose_threshold(unsure)
    silent = Items.from_arrays([1, 0], [None, None], abstained=[True, True], confidence=[0.5, 0.6])
    with pytest.raises(DataError, match="no item was answered"):
        choose_threshold(silent)
    with pytest.raises(DataError, match="a cluster has 6 items, but largest_cluster is 5"):
        choose_threshold(promised_items(30), finite_sample=True, largest_cluster=5)
    beyond = independent_items([0, 1], [0.5, 0.4])
    with pytest.raises(DataError, match="a risk guarantee needs losses from 0 to 1"):
        choose_threshold(beyond, loss=[0.0, 2.0], largest_loss=1.0)


def test_two_limits_have_half_of_delta_each() -> None:
    items = promised_items(400)
    one = choose_threshold(items, risk=0.1)
    both = choose_threshold(items, risk=0.1, needless=0.4)
    assert one.threshold is not None
    assert both.threshold is not None
    # Half of delta each, so that no more is answered than with one limit.
    assert both.threshold >= one.threshold
    assert "and at most 40% of items are deferred although the answer was right" in str(both)
    neither = choose_threshold(items, risk=0.1, needless=0.01)
    assert neither.threshold is None
    assert neither.reason == "no threshold is shown to be within both limits"
    assert choose_threshold(items, risk=0.1, needless=0.4, search="holm").threshold is not None


def test_without_errors_nothing_is_deferred_needlessly() -> None:
    """No answer is wrong, so every threshold is within the risk limit, and the last ones defer least."""
    items = independent_items([0] * 300, [(300 - row) / 300 for row in range(300)])
    policy = choose_threshold(items, risk=0.05, needless=0.2)
    assert policy.observed is not None
    assert policy.observed.answered == 300


def test_one_threshold_per_group_or_one_for_the_worst() -> None:
    items = promised_items(400)
    each = choose_threshold(items, risk=0.1, by="site")
    assert each.threshold is None
    assert each.has_guarantee
    assert [part.group for part in each.groups] == ["north", "south"]
    north = items.take(np.array([site == "north" for site in items.metadata["site"]]))
    assert each.groups[0].threshold == choose_threshold(north, risk=0.1).threshold
    assert "for each site separately, 2 of 2 groups have a threshold." in str(each)
    worst = choose_threshold(items, risk=0.1, by="site", worst=True)
    assert worst.threshold is not None
    assert "in every group of site, answer those with" in str(worst)
    assert all(part.observed is not None and part.observed.risk is not None for part in worst.groups)


def test_the_threshold_comes_from_a_declared_grid() -> None:
    items = promised_items(400)
    policy = choose_threshold(items, risk=0.1, grid=[0.95, 0.9, 0.8, 0.7, 0.6])
    assert policy.threshold in (0.95, 0.9, 0.8, 0.7, 0.6)
    assert policy.shown_threshold == policy.threshold
    gaffke = choose_threshold(items, risk=0.15, grid=[0.95, 0.9, 0.8, 0.7, 0.6], finite_sample=True)
    assert gaffke.threshold in (0.95, 0.9, 0.8, 0.7, 0.6)


def test_row_order_and_repetition_do_not_matter() -> None:
    items = promised_items(200)
    order = np.random.default_rng(0).permutation(len(items))
    for options in ({}, {"finite_sample": True}, {"risk_type": "joint"}):
        first = choose_threshold(items, risk=0.12, **options)
        again = choose_threshold(items.take(order), risk=0.12, **options)
        assert (first.threshold, first.observed) == (again.threshold, again.observed)
    twice = replace(items, weight=np.full(len(items), 2.0))
    doubled = items.take(np.repeat(np.arange(len(items)), 2))
    weighed, repeated = (choose_threshold(each, risk=0.12) for each in (twice, doubled))
    assert weighed.threshold == repeated.threshold
    assert weighed.observed == repeated.observed


def test_ties_are_never_split() -> None:
    levels = [0.9] * 100 + [0.6] * 100 + [0.3] * 100
    policy = choose_threshold(independent_items([0] * 100 + [0] * 99 + [1] + [1] * 100, levels), risk=0.05)
    assert policy.threshold == policy.shown_threshold == 0.6


def test_losses_between_right_and_wrong() -> None:
    generator = np.random.default_rng(4)
    truth = generator.integers(0, 4, 600)
    prediction = np.clip(truth + generator.integers(-1, 2, 600) * (generator.random(600) < 0.3), 0, 3)
    items = Items.from_arrays(truth, prediction, confidence=generator.random(600), scale=(0, 3))
    policy = choose_threshold(items, risk=0.2)
    assert policy.loss.name == "abs_norm"
    assert policy.method == "hoeffding-bentkus"
    assert "the mean loss of answers is at most 20% of the largest (abs_norm)" in str(policy)
    assert any("answers are wrong (" in line for line in policy.lines[1:])


def test_the_absolute_error_is_bounded_by_the_declared_scale() -> None:
    """Half of the answers are off by 1 on a scale of width 3: the mean loss is 1/2, a sixth of the largest."""
    off = [0, 1] * 200
    items = Items.from_arrays([1] * 400, [1 + each for each in off], confidence=[0.9] * 400, scale=(0, 3))
    policy = choose_threshold(items, risk=0.3, loss="abs")
    assert policy.loss.largest == 3.0
    assert policy.observed is not None
    assert policy.observed.risk == pytest.approx(1 / 6)
    assert "the mean loss of answers is at most 30% of the largest, 3 (abs)" in str(policy)
    normalised = choose_threshold(items, risk=0.3, loss="abs_norm")
    assert (policy.threshold, policy.observed) == (normalised.threshold, normalised.observed)
    new = Items.from_arrays([2] * 400, [2] * 400, confidence=[0.9] * 400, scale=(0, 3))
    assert policy.check(new).verdict == "kept"


def test_a_declared_largest_loss_goes_before_the_scale() -> None:
    items = Items.from_arrays([1] * 400, [1] * 400, confidence=[0.9] * 400, scale=(0, 3))
    assert choose_threshold(items, risk=0.3, loss="abs", largest_loss=2.0).loss.largest == 2.0


def test_a_constant_confidence_has_a_warning() -> None:
    message = "every answer has the same confidence, 0.9, so any threshold answers all items or none"
    without_guarantee = choose_threshold(independent_items([0, 1] * 100, [0.9] * 200), risk=0.1)
    assert without_guarantee.threshold is None
    assert without_guarantee.reason == (
        "every answer has the same confidence, and the risk of all answers is not shown to be within the limit"
    )
    answered = choose_threshold(independent_items([0] * 200, [0.9] * 200), risk=0.1)
    assert answered.threshold == 0.9
    for policy in (without_guarantee, answered):
        assert [str(each) for each in policy.warnings if each.code == "constant_confidence"] == [message]
    varied = choose_threshold(independent_items([0] * 200, [0.9] * 199 + [0.8]), risk=0.1)
    assert [warning.code for warning in varied.warnings] == ["clusters_unnamed"]


def test_failed_items_need_no_signal_as_in_an_evaluation() -> None:
    """The 24 failed items of this run have no token probabilities; 216 items are evaluated, 150 answered."""
    items = read("tests/data/examples/run_a.json", mode="few_shot")
    assert evaluate(items, confidence="token_msp", interval="none")["token_msp"].aurc.defined
    policy = choose_threshold(items, risk=0.4, confidence="token_msp")
    assert (policy.data.items, policy.data.answered) == (216, 150)
    decided = policy.apply(items)
    assert len(decided.answer) == 240
    assert not decided.answer[~items.answered].any()
    # One loss per item of the source; the losses of failed items do not matter.
    losses = np.where(items.answered, 0.25, np.nan)
    own = choose_threshold(items, risk=0.4, confidence="token_msp", loss=losses, largest_loss=1.0)
    assert own.data.risk == 0.25


def frame(seed: int) -> pl.DataFrame:
    """Return a table with unusual column names."""
    columns = drawn(200, seed=seed)
    return pl.DataFrame(columns).rename({"label": "y", "pred": "p", "prob": "s", "patient": "who"})


COLUMNS: dict[str, Any] = {"truth": "y", "prediction": "p", "cluster": "who"}


def test_frames_and_files_are_read_as_by_evaluate(tmp_path: Any) -> None:
    items = read(frame(1), **COLUMNS)
    expected = choose_threshold(items, risk=0.12, confidence="s")
    assert expected.has_guarantee
    frame(1).write_csv(tmp_path / "chosen.csv")
    for source in (frame(1), frame(1).to_pandas(), tmp_path / "chosen.csv", str(tmp_path / "chosen.csv")):
        policy = choose_threshold(source, risk=0.12, confidence="s", **COLUMNS)
        assert (policy.threshold, policy.observed) == (expected.threshold, expected.observed)
        assert evaluate(source, confidence="s", interval="none", **COLUMNS).only.population.answered == 1200
    new = read(frame(2), **COLUMNS)
    assert str(expected.check(frame(2), **COLUMNS)) == str(expected.check(new))
    assert expected.check(frame(2), **COLUMNS).risk.value == expected.check(new).risk.value
    with pytest.raises(ArgumentError, match="these are the data that the policy was chosen on"):
        expected.check(frame(1), **COLUMNS)


def test_unknown_arguments_are_errors() -> None:
    policy = choose_threshold(frame(1), risk=0.12, confidence="s", **COLUMNS)
    with pytest.raises(
        ArgumentError, match=r"choose_threshold has no argument truht \(did you mean 'truth'\?\)"
    ):
        choose_threshold(frame(1), truht="y")
    with pytest.raises(
        ArgumentError, match=r"choose_threshold has no argument rsik \(did you mean 'risk'\?\)"
    ):
        choose_threshold(promised_items(), rsik=0.1)
    with pytest.raises(
        ArgumentError, match="truth applies only to a data frame or a file, but the source is already Items"
    ):
        choose_threshold(promised_items(), truth="y")
    with pytest.raises(
        ArgumentError, match="choose_threshold takes Items, a data frame or a path, got a dict"
    ):
        choose_threshold({"one": promised_items()})
    with pytest.raises(ArgumentError, match=r"check_policy has no argument truht \(did you mean 'truth'\?\)"):
        policy.check(frame(2), truht="y")
    with pytest.raises(ArgumentError, match="is for the confidence s; its threshold is not valid for p"):
        policy.check(frame(2), confidence="p", **COLUMNS)
    with pytest.raises(
        ArgumentError,
        match=r"apply_policy takes no truth; from a table it reads only the columns of the policy's confidence \(s\)",
    ):
        policy.apply(frame(2), truth="y")
    with pytest.raises(ArgumentError, match=r"apply_policy takes no colum \(did you mean 'column'\?\)"):
        policy.apply(frame(2), colum="decision")


def test_a_split_divides_no_cluster_and_is_stable() -> None:
    items = promised_items(200)
    first, second = split_by_cluster(items)
    assert not set(first.cluster) & set(second.cluster)
    assert 0.35 < len(first) / len(items) < 0.65
    larger = promised_items(300)
    again, _ = split_by_cluster(larger)
    assert set(first.cluster) == {name for name in again.cluster if name in set(items.cluster)}


def test_a_policy_can_be_written_and_read_again(tmp_path: Any) -> None:
    from abstain import read_policy  # noqa: PLC0415

    for policy in (
        choose_threshold(promised_items(), risk=0.1),
        choose_threshold(promised_items(), risk=0.1, by="site"),
        choose_threshold(promised_items(10), risk=0.05),
    ):
        (tmp_path / "policy.json").write_bytes(policy.to_json())
        again = read_policy(tmp_path / "policy.json")
        assert isinstance(again, Policy)
        assert again == policy


def test_with_answers_in_one_cluster_only_there_is_no_guarantee() -> None:
    items = Items.from_arrays(
        [1, 1, 1],
        [1, 1, 1],
        abstained=[False, True, False],
        confidence=[0.1] * 3,
        cluster=["a", "b", "a"],
    )
    policy = choose_threshold(items, risk=0.1)
    assert not policy.has_guarantee
    assert policy.reason == "even without a single error, 29 clusters are needed, and there are 2"
