"""`abstain evaluate`: metrics of one system, or of two systems and their differences."""

from __future__ import annotations

from abstain.cli import _options as opt
from abstain.cli._pipeline import evaluate_inputs, files_of
from abstain.cli._publishing import check_outputs, choose_formats, publish, renderers_of

EXAMPLES = """\b
Examples:
  abstain evaluate run.json --mode few_shot --loss abs
  abstain evaluate run.json --mode few_shot --confidence all -o metrics.json
  abstain evaluate --input run.json --mode zero_shot --input run.json \\
      --mode few_shot
  abstain evaluate --input results.json --metric default_benchmark \\
      --by ckd_stage
  abstain evaluate preds.csv --truth label --prediction pred \\
      --confidence prob --cluster patient_id
  abstain evaluate logs/2026-11-15_task.eval --cluster-by doc
  abstain evaluate samples_arc_easy.jsonl
"""


@opt.expand_option_groups
def evaluate_command(
    *,
    inputs: opt.Inputs,
    question: opt.MetricOptions,
    output: opt.ResultOutput = None,
    as_json: opt.AsJson = False,
    table_format: opt.SummaryFormat = None,
    explain: opt.Explain = False,
    quiet: opt.Quiet = False,
    intervals: opt.IntervalOptions,
    matching: opt.MatchOptions,
    reading: opt.ReadOptions,
    engine: opt.EngineOptions,
) -> None:
    """Evaluate one system, or compare two, with confidence intervals."""
    formats = choose_formats(table_format, output, as_json=as_json, quiet=quiet)
    files = files_of(inputs, question, intervals, reading)
    check_outputs(output, inputs=files)
    result = evaluate_inputs(inputs, question, reading, matching, intervals, engine, quiet=quiet)
    publish(formats, renderers_of(result, explain=explain), output, inputs=files)


COMMANDS: opt.Commands = {"evaluate": (evaluate_command, EXAMPLES)}
