from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import abstain
from abstain.cli import app
from examples import EXAMPLES

RUN = str(EXAMPLES / "run_a.json")


def call(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["power", *map(str, arguments)])
    return done.exit_code, done.stdout, done.stderr


def test_the_command_gives_the_result_of_the_python_function() -> None:
    code, out, _ = call(RUN, "--mode", "few_shot", "--metric", "accuracy", "--difference", 0.02)
    items = abstain.read(RUN, mode="few_shot")
    expected = abstain.power(items, metric="accuracy", difference=0.02)
    assert code == 0
    assert " ".join(out.split()).startswith(f"{expected}. ")
    assert "for a correlation of 0.5 between the systems" in " ".join(out.split())
    code, out, _ = call(RUN, "--mode", "few_shot", "--metric", "accuracy", "--difference", 0.02, "--json")
    document = json.loads(out)
    assert document["clusters_needed"] == expected.clusters_needed
    assert document["clusters_low"] == expected.clusters_low


def test_a_pilot_of_two_systems_and_an_assumed_standard_error() -> None:
    code, out, err = call(
        RUN, RUN, "--mode", "zero_shot", "--mode", "few_shot", "--intersection-only", "--metric", "augrc",
        "--difference", 0.02,
    )  # fmt: skip
    assert code == 0, err
    assert "participants are needed to detect a difference of 0.02 in augrc" in out
    code, out, _ = call("--se", 0.0125, "--clusters", 41, "--metric", "augrc", "--difference", 0.02)
    assert code == 0
    assert out.startswith("128 clusters are needed to detect")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--metric", "augrc", "--difference", 0.1), 2, "without a pilot"),
        (
            (RUN, "--mode", "few_shot", "--metric", "augrc", "--difference", 0.1),
            2,
            "(correlation, --correlation)",
        ),
        ((RUN, "--mode", "few_shot", "--metric", "augrc", "--difference", 0), 2, "greater than 0"),
        ((RUN, "--mode", "few_shot", "--metric", "augcr", "--difference", 0.1), 2, "did you mean 'augrc'"),
        (("no.json", "--metric", "augrc", "--difference", 0.1), 2, "no.json"),
    ],
)
def test_a_wrong_call_ends_with_an_error_message(
    arguments: tuple[object, ...], code: int, message: str
) -> None:
    done, _, err = call(*arguments)
    assert done == code
    assert message in err
