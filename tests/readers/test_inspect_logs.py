from __future__ import annotations

import json
import math
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zstandard
from inspect_ai.scorer import SampleScore, Score

from abstain import ArgumentError, DataError, FormatError, evaluate, read
from abstain.confidence import select
from abstain.integrations import inspect as integration
from abstain.losses import item_loss
from abstain.readers._archive import Archive
from memory import run_measured

if TYPE_CHECKING:
    from pathlib import Path

LIMITS = {"member_limit": 1 << 24, "total_limit": 1 << 28}
WORDS = ("yes", "no", "I don't know")


def header(path: Path) -> dict[str, float]:
    """Return the metrics that Inspect reported, by name."""
    with path.open("rb") as file, Archive(file, path, **LIMITS) as log:
        results = json.loads(log.read("header.json"))["results"]
    return {name: metric["value"] for score in results["scores"] for name, metric in score["metrics"].items()}


def test_a_log_has_all_four_outcomes(inspect_logs: Path) -> None:
    items = read(inspect_logs / "once.eval")
    # Of thirty questions three fail, three are not graded, and every third of the rest is declined.
    assert repr(items) == "Items(30 items in 30 samples: 16 answered, 8 abstained, 3 failed, 3 unscored)"
    by_name = dict(zip(items.item.tolist(), range(len(items)), strict=True))
    row = by_name["q0"]
    assert [items.truth[row], items.prediction[row], items.metadata["answer"][row]] == ["yes", "yes", "yes"]
    row = by_name["q1"]
    assert [items.truth[row], items.prediction[row]] == ["yes", "no"]
    for name in ("q2", "q5"):  # one has the score N, the other a wrong answer with the reason refusal
        assert items.abstained[by_name[name]]
        assert items.metadata["answer"][by_name[name]] == WORDS[2]
    assert items.metadata["doc"].tolist() == [int(name[1:]) // 3 for name in items.item]
    assert "nested" not in items.metadata
    assert items.provenance["task"] == "once"
    assert items.provenance["scorer"] == "careful"
    assert items.provenance["status"] == "success"


def test_token_signals_follow_their_definitions(inspect_logs: Path) -> None:
    items = read(inspect_logs / "once.eval")
    row = items.item.tolist().index("q4")
    probability = 0.5 + 0.4 * 28 / 50
    assert items.signals["token_msp"].values[row] == pytest.approx(probability)
    entropy = -probability * math.log(probability) - (1 - probability) * math.log(1 - probability)
    assert items.signals["token_pe"].values[row] == pytest.approx(entropy)
    assert items.signals["token_energy"].values[row] == pytest.approx(0.0, abs=1e-12)
    assert items.signals["length"].values[row] == 2.0
    assert "note" not in items.signals
    broken = items.item.tolist().index("q9")
    assert items.signals["token_msp"].absent[broken]


def test_without_top_logprobs_there_is_one_token_signal(inspect_logs: Path) -> None:
    items = read(inspect_logs / "plain.eval", scorer="includes")
    assert set(items.signals) == {"token_msp"}
    # The scorer result "yes" in "surely yes", and its grade decides.
    assert items.prediction.tolist() == ["yes", "no"] * 3


def test_json_and_eval_logs_have_the_same_content(inspect_logs: Path) -> None:
    left, right = read(inspect_logs / "once.eval"), read(inspect_logs / "once.json")
    order = [right.item.tolist().index(name) for name in left.item]
    right = right.take(np.array(order))
    assert left.outcome.tolist() == right.outcome.tolist()
    assert left.prediction.tolist() == right.prediction.tolist()
    np.testing.assert_array_equal(left.signals["token_pe"].values, right.signals["token_pe"].values)
    assert right.provenance["status"] == "success"
    assert right.provenance["run_id"] == left.provenance["run_id"]


def test_epochs_of_a_question_are_a_cluster_with_consistency_signals(inspect_logs: Path) -> None:
    items = read(inspect_logs / "epochs.eval")
    assert repr(items) == "Items(36 items in 12 questions: 22 answered, 8 abstained, 3 failed, 3 unscored)"
    rows = np.flatnonzero(items.cluster == "q0")
    assert sorted(items.item[rows]) == ["q0_epoch_1", "q0_epoch_2", "q0_epoch_3"]
    assert sorted(str(items.metadata["answer"][row]) for row in rows) == ["no", "yes", "yes"]
    assert items.signals["consistency_modal_confidence"].values[rows] == pytest.approx([2 / 3] * 3)
    # Of the two other epochs, one agrees with yes and none with no.
    own = zip(
        items.metadata["answer"][rows], items.signals["consistency_agreement"].values[rows], strict=True
    )
    assert sorted((str(answer), value) for answer, value in own) == [("no", 0.0), ("yes", 0.5), ("yes", 0.5)]
    rows = np.flatnonzero(items.cluster == "q2")  # no, a refusal, yes: in a tie, abstention wins
    assert items.signals["consistency_modal_count"].values[rows].tolist() == [1.0] * 3
    assert items.signals["consistency_na_rate"].values[rows] == pytest.approx([1 / 3] * 3)
    result = evaluate(items, confidence=["consistency", "token_msp"], loss="zero_one", resamples=50)
    assert result["consistency"].cmax.clusters == 10  # of twelve one failed and one was not graded


@pytest.mark.parametrize("name", ["once", "epochs"])
def test_metrics_computed_within_inspect_are_the_same(inspect_logs: Path, name: str) -> None:
    reported = header(inspect_logs / f"{name}.eval")
    items = read(inspect_logs / f"{name}.eval")
    result = evaluate(items, confidence="token_msp", loss="zero_one", resamples=0)["token_msp"]
    assert reported["coverage"] == pytest.approx(result.cmax.value)
    assert reported["aurc"] == pytest.approx(result.aurc.value)
    assert reported["augrc"] == pytest.approx(result.augrc.value)
    right = (items.truth == items.prediction)[items.answered]
    assert reported["selective_accuracy"] == pytest.approx(right.mean())


def test_a_metadata_key_can_be_the_cluster(inspect_logs: Path) -> None:
    items = read(inspect_logs / "once.eval", cluster_by="doc")
    assert items.cluster_ids.tolist() == list(range(10))
    assert items.cluster_noun == "doc"
    assert len(read(inspect_logs / "epochs.eval", cluster="id").cluster_ids) == 12
    with pytest.raises(
        ArgumentError, match=r"has no 'dok' in its metadata \(did you mean 'doc'\?\); it has: doc"
    ):
        read(inspect_logs / "once.eval", cluster_by="dok")
    with pytest.raises(ArgumentError, match="cluster and cluster_by mean the same"):
        read(inspect_logs / "once.eval", cluster="doc", cluster_by="doc")


def test_a_scorer_must_be_chosen_and_may_give_grades(inspect_logs: Path) -> None:
    path = inspect_logs / "plain.eval"
    with pytest.raises(ArgumentError, match="has 2 scorers; choose one .*: includes, graded"):
        read(path)
    with pytest.raises(ArgumentError, match=r"has no scorer 'include' \(did you mean 'includes'\?\)"):
        read(path, scorer="include")
    with pytest.raises(ArgumentError, match="choose one of: graded.style, graded.content"):
        read(path, scorer="graded")
    items = read(path, scorer="graded.content")
    assert items.scale == (0.0, 1.0)
    assert items.truth.tolist() == [1.0] * 6
    assert items.prediction == pytest.approx([10 / 12, 2 / 12] * 3)
    result = evaluate(items, confidence="token_msp", resamples=0)["token_msp"]
    assert result.curve.selective_risk[-1] == pytest.approx(0.5)
    assert read(path, scorer="graded.style", scale=(0, 0.5)).truth[0] == 0.5
    with pytest.raises(DataError, match="outside 0 to 0.5; set the lowest and the highest"):
        read(path, scorer="graded.content", scale=(0, 0.5))


def test_an_abstention_rule_is_applied_to_answers(inspect_logs: Path) -> None:
    path = inspect_logs / "plain.eval"
    items = read(path, scorer="includes", abstain_rule="regex:^no$")
    assert items.counts.abstained == 3
    assert items.provenance["abstention_rule"] == {"rule": "regex:^no$", "abstained": 3, "answered": 3}
    items = read(path, scorer="includes", abstain_rule="phrases:surely|no")
    # A refusal that was graded as right is undetermined, and keeps the outcome of the log.
    assert items.counts.abstained == 3
    assert items.provenance["abstention_rule"]["undetermined"] == 3


def test_several_logs_are_read_as_one(inspect_logs: Path) -> None:
    with pytest.raises(ArgumentError, match="choose one"):
        read(str(inspect_logs / "*.eval"))
    items = read([inspect_logs / "once.eval", inspect_logs / "epochs.eval"])
    assert len(items) == 66
    assert {name.partition("/")[0] for name in items.item} == {"once", "epochs"}
    with pytest.raises(DataError, match="is in more than one file"):
        read([inspect_logs / "once.eval", inspect_logs / "once.json"])


def rewritten(source: Path, target: Path, change: dict[str, bytes | None], repeat: int = 0) -> Path:
    """Return a copy of a log with members replaced or removed, and its samples repeated under other ids."""
    with source.open("rb") as file, Archive(file, source, **LIMITS) as log:
        members = {name: log.read(name) for name in log.names}
    samples = [json.loads(content) for name, content in members.items() if name.startswith("samples/")]
    for number in range(repeat):
        sample = samples[number % len(samples)] | {"id": f"n{number}"}
        members[f"samples/{number}_epoch_1.json"] = json.dumps(sample).encode()
    changed = members | change
    write_archive(target, {name: content for name, content in changed.items() if content is not None})
    return target


def write_archive(target: Path, members: dict[str, bytes], *, declare_size: bool = True) -> None:
    """Write an archive with zstd members, as Inspect does; older versions of zipfile cannot."""
    compressor = zstandard.ZstdCompressor(write_content_size=declare_size)
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), compressor.compress(content))
            info = archive.filelist[-1]
            info.compress_type, info.CRC = 93, zlib.crc32(content)
            info.file_size = len(content) if declare_size else 9


def test_the_log_of_an_interrupted_run_is_read(inspect_logs: Path, tmp_path: Path) -> None:
    path = rewritten(inspect_logs / "once.eval", tmp_path / "cut.eval", {"header.json": None})
    items = read(path)
    assert len(items) == 30
    assert items.provenance["status"] == "started"
    assert items.provenance["task"] == "once"


@pytest.mark.nightly
def test_tens_of_thousands_of_samples_need_little_memory(inspect_logs: Path, tmp_path: Path) -> None:
    path = rewritten(inspect_logs / "once.eval", tmp_path / "many.eval", {}, repeat=20_000)
    program = "import sys, abstain; print(len(abstain.read(sys.argv[1])))"
    printed, kilobytes = run_measured(program, path)
    assert int(printed) == 20_030
    assert kilobytes < 500_000


def test_a_member_that_is_too_large_is_an_error(inspect_logs: Path, tmp_path: Path) -> None:
    bomb = b'{"id": "x", "input": "' + b"0" * (1 << 26) + b'"}'
    path = rewritten(inspect_logs / "once.eval", tmp_path / "bomb.eval", {"samples/x_epoch_1.json": bomb})
    assert path.stat().st_size < 1 << 20
    with pytest.raises(FormatError, match="samples/x_epoch_1.json has more than 1,048,576 bytes"):
        read(path, member_limit=1 << 20)
    with pytest.raises(FormatError, match="has more than 2,097,152 bytes when decompressed"):
        read(path, total_limit=1 << 21)


def test_an_archive_with_wrong_declared_sizes_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "liar.eval"
    write_archive(
        path, {"header.json": b"{}", "samples/x_epoch_1.json": b"0" * (1 << 26)}, declare_size=False
    )
    with pytest.raises(FormatError, match="has more than 4,194,304 bytes"):
        read(path, member_limit=1 << 22)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "samples/../../x.json", "..\\x.json"])
def test_a_member_path_outside_of_the_archive_is_an_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / "climb.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", "{}")
        archive.writestr(name, "{}")
    with pytest.raises(FormatError, match="a path that leads outside of it"):
        read(path)
    assert list(tmp_path.iterdir()) == [path]


def test_damaged_archives_are_errors(inspect_logs: Path, tmp_path: Path) -> None:
    content = (inspect_logs / "once.eval").read_bytes()
    path = tmp_path / "bad.eval"
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(FormatError, match="damaged or cut off"):
        read(path)
    with zipfile.ZipFile(inspect_logs / "once.eval") as log:
        offset = log.getinfo("samples/q0_epoch_1.json").header_offset
    broken = bytearray(content)
    broken[offset + 200 : offset + 260] = bytes(60)
    path.write_bytes(broken)
    with pytest.raises(FormatError, match="q0_epoch_1.json is damaged"):
        read(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("something.txt", "else")
    with pytest.raises(FormatError, match="a zip archive, but not an Inspect log"):
        read(path)


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (b"not JSON", "not JSON"),
        (b'{"epoch": 1}', "samples/x_epoch_1.json: not a sample of an Inspect log: it has no id"),
        (
            b'{"id": "x", "scores": {"careful": {"value": "maybe"}}}',
            "must be C, I, P, N, a number or a boolean",
        ),
        (b'{"id": "x", "scores": {"careful": {"value": [1]}}}', "must be C, I, P, N"),
        (b'{"id": "q0"}', "the item q0_epoch_1 appears twice"),
    ],
)
def test_members_that_are_not_samples_are_errors(
    inspect_logs: Path, tmp_path: Path, sample: bytes, message: str
) -> None:
    path = rewritten(inspect_logs / "once.eval", tmp_path / "x.eval", {"samples/x_epoch_1.json": sample})
    with pytest.raises((FormatError, DataError), match=message):
        read(path)


def test_errors_do_not_quote_answers(inspect_logs: Path, tmp_path: Path) -> None:
    sample = b'{"id": "x", "target": 5, "messages": "the patient said"}'
    path = rewritten(inspect_logs / "once.eval", tmp_path / "x.eval", {"samples/x_epoch_1.json": sample})
    with pytest.raises(FormatError, match="not a sample") as caught:
        read(path)
    assert "patient" not in str(caught.value)


def test_a_json_log_that_ends_too_early_is_an_error(inspect_logs: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_bytes((inspect_logs / "once.json").read_bytes()[:200_000])
    with pytest.raises(FormatError, match="ends too early|not JSON"):
        read(path)


def test_scores_may_be_letters_numbers_or_booleans(tmp_path: Path) -> None:
    values = ["C", "I", True, False, 1, 0.0, "1.0", "yes", None, math.nan]
    samples = [
        {"id": number, "target": "t", "scores": {"s": {"value": value}}}
        for number, value in enumerate(values)
    ]
    path = tmp_path / "values.json"
    path.write_text(
        json.dumps({"version": 2, "status": "success", "eval": {"task": "t"}, "samples": samples})
    )
    items = read(path)
    assert items.counts.unscored == 2
    right = [prediction == "t" for prediction in items.prediction[items.answered]]
    assert right == [True, False, True, False, True, False, True, True]
    assert items.item.tolist() == list(range(10))


def test_a_rule_counts_the_answers_of_every_file(tmp_path: Path) -> None:
    for name, refusals in (("a", 4), ("b", 3)):
        answers = ["I don't know"] * refusals + ["Rome"] * 6
        samples = [
            {
                "id": f"{name}{number}",
                "target": "Paris",
                "scores": {"s": {"value": "I", "answer": answer}},
            }
            for number, answer in enumerate(answers)
        ]
        log = {"status": "success", "eval": {"task": "t"}, "samples": samples}
        (tmp_path / f"{name}.json").write_text(json.dumps(log))
    items = read(str(tmp_path / "*.json"))
    assert items.provenance["refusals"] == {"count": 7, "answers": 19, "phrases": ("I don't know",)}
    items = read(str(tmp_path / "*.json"), abstain_rule="phrases:I don't know")
    assert items.provenance["abstention_rule"] == {
        "rule": "phrases:I don't know",
        "abstained": 7,
        "answered": 12,
    }
    assert items.counts.abstained == 7


def test_partial_scores_are_grades(tmp_path: Path) -> None:
    samples = [
        {"id": name, "target": ["a", "b"], "scores": {"s": {"value": name}}} for name in ("C", "P", "I", "N")
    ]
    path = tmp_path / "partial.json"
    path.write_text(json.dumps({"status": "success", "eval": {}, "samples": samples}))
    items = read(path)
    assert items.prediction[:3].tolist() == [1.0, 0.5, 0.0]
    assert items.counts.abstained == 1
    assert items.metadata["target"][0] == "a | b"
    assert items.scale == (0.0, 1.0)
    assert item_loss(items).values.tolist() == pytest.approx([0.0, 0.5, 1.0, math.nan], nan_ok=True)
    assert item_loss(items).rule == "loss abs_norm: the source declares a scale of 0 to 1"
    assert select("default", items) == ()


def measured(metric: Any, scores: list[SampleScore]) -> float:
    return float(metric(scores))


def test_a_metric_without_a_number_does_not_fail_an_evaluation(caplog: pytest.LogCaptureFixture) -> None:
    right, declined = (SampleScore(score=Score(value=value), sample_id=f"q{value}") for value in "CN")
    assert math.isnan(measured(integration.aurc(), [right, declined]))
    assert "aurc: " in caplog.text
    assert "no confidence" in caplog.text
    assert measured(integration.coverage(), [right, declined]) == 0.5
    assert measured(integration.selective_accuracy(), [right, declined]) == 1.0
    right.score.metadata = {"confidence": 0.7}
    assert measured(integration.augrc(), [right, declined]) == 0.0
    assert math.isnan(measured(integration.coverage(), []))
    assert math.isnan(measured(integration.selective_accuracy(), [declined]))
    assert math.isnan(measured(integration.aurc(), [declined]))
    right.score.metadata = {"confidence": 10**400}
    assert math.isnan(measured(integration.augrc(), [right, declined]))
    right.score.metadata = {"confidence": 0.7}
    right.score.value = 7
    assert math.isnan(measured(integration.aurc(), [right, declined]))
    assert "a score of 7 is outside 0 to 1" in caplog.text
