"""`abstain run`: from a table of questions to a run file, and to its summary."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from abstain import _outputs
from abstain.cli import _options as opt
from abstain.cli._pipeline import evaluate_inputs
from abstain.cli._program import DATA, MODEL
from abstain.cli._publishing import check_json_ending, check_outputs, new_name, write_files
from abstain.cli._terminal import progress_bar, say, show
from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from abstain.runs import Prepared, RunPlan

_SOURCE = "A table of questions (CSV, Parquet, JSONL), or a file with a task of Inspect (task.py)."
_MODEL = "The model, as Inspect names it, such as openai/gpt-4o-mini."
_SIGNALS = (
    "What is recorded beside each answer, separated by commas: verbalized (verbalized:0-100), tokens, consistency:5, "
    "p_true, semantic_entropy (semantic_entropy:judge=MODEL), evidence."
)
_OUTPUT = "Where the run file goes; else into a new file here, whose name is printed."
_LOG_DIR = "Where the logs of Inspect go; else beside the run file, into a folder of its name and -logs."
_MODE = "zero_shot (when left out) or few_shot; may be repeated: each is an experiment of the run file."
_EXAMPLES = "A table in the form of the questions whose rows are shown before each question of few_shot."
_SAMPLES = "How many further samples of each answer are drawn; the same as consistency:N."
_RESUME = "Go on with a run that was interrupted: what was answered is not asked again."
_DRY_RUN = "Print the prompts and the cost in calls, and ask nobody."
_AURC = "Judge the run when it is done, and print AURC, AUGRC and the rest."
_TEMPLATE = "What is asked, with columns in braces, such as '{note} Is it mentioned?'; @FILE for a file that holds it."
_CHOICES = "The column of the answers that there can be, or those answers divided by |, such as 'yes|no'."
_TEXT = "The text that is asked about, and that quotes must stand in; of a task, a key of the metadata."
_INSTRUMENT = (
    "Ask the items of an instrument about the text of each row, a participant: PHQ-8, or a JSON file."
)
_CONNECTIONS = "How many requests may be under way at once; else what Inspect finds to work."
_RETRIES = "How often a request that fails is sent again, after ever longer waits, before its item is failed."
_ARGUMENT = "A further argument of the provider, such as key=value; may be repeated."
_STRUCTURED = (
    "Ask for replies in a schema, where the provider has that; --no-structured for a server that refuses it."
)
_SHOWN_PROMPTS = 3

EXAMPLES = """\b
Examples:
  abstain run questions.csv --model openai/gpt-4o-mini \\
      --signals verbalized,tokens -o run.json --compute-aurc
  abstain run questions.csv --model openai/gpt-4o-mini \\
      --signals verbalized --dry-run
  abstain run questions.csv --model openai/gpt-4o-mini --mode zero_shot \\
      --mode few_shot --examples shots.csv
  abstain run people.csv --instrument PHQ-8 --model ollama/llama3 \\
      --signals evidence,verbalized -o run.json
  abstain run questions.csv --model openai/gpt-4o-mini -o run.json --resume
"""


@dataclass(frozen=True)
class QuestionOptions(opt.OptionGroup):
    """The questions, and how their table is read: the arguments of `abstain.runs.read_questions`."""

    heading: ClassVar[str] = DATA
    question: Annotated[str | None, opt.column("--question", "What is asked.")] = None
    template: Annotated[str | None, opt.named("--template", "TEXT", _TEMPLATE)] = None
    item: Annotated[str | None, opt.column("--item", "Names of the items.")] = None
    cluster: Annotated[
        str | None, opt.column("--cluster", "What belongs together, such as a participant.")
    ] = None
    truth: Annotated[str | None, opt.column("--truth", "What is right.")] = None
    choices: Annotated[str | None, opt.column("--choices", _CHOICES)] = None
    scale: Annotated[
        str | None, opt.named("--scale", "LOW,HIGH", "Lowest and highest answer, where it is a number.")
    ] = None
    should_abstain: Annotated[
        str | None, opt.column("--should-abstain", "True where the item is better left unanswered.")
    ] = None
    text: Annotated[str | None, opt.column("--text", _TEXT)] = None
    instrument: Annotated[str | None, opt.named("--instrument", "NAME", _INSTRUMENT)] = None
    limit: Annotated[int | None, opt.named("--limit", "N", "The first N items, or participants, alone.")] = (
        None
    )
    format: Annotated[
        str | None, opt.named("--input-format", "NAME", "csv, parquet or jsonl; else told from the content.")
    ] = None

    @property
    def files(self) -> list[Path]:
        """The files of the template and of the instrument."""
        template = self.template or ""
        names = [template[1:] if template.startswith("@") else None, self.instrument]
        return [Path(name) for name in names if name]

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `read_questions`."""
        options = super().options
        if self.scale is not None:
            options["scale"] = list(opt.numbers(self.scale, "--scale"))
        return options


@dataclass(frozen=True)
class ModelOptions(opt.OptionGroup):
    """How the model is reached."""

    heading: ClassVar[str] = MODEL
    base_url: Annotated[str | None, opt.named("--base-url", "URL", "Where the model is served.")] = None
    model_args: Annotated[list[str] | None, opt.named("--model-arg", "KEY=VALUE", _ARGUMENT)] = None
    temperature: Annotated[float | None, opt.named("--temperature", "T", "Of the answer itself.")] = None
    max_tokens: Annotated[int | None, opt.named("--max-tokens", "N", "Most tokens of a reply.")] = None
    max_connections: Annotated[int | None, opt.named("--max-connections", "N", _CONNECTIONS)] = None
    # Inspect would go on for ever, and a server that is not there would be waited for in silence.
    max_retries: Annotated[int, typer.Option("--max-retries", metavar="N", help=_RETRIES)] = 6
    timeout: Annotated[
        int | None, opt.named("--timeout", "SECONDS", "When a request, with its retries, is given up.")
    ] = None
    structured: Annotated[bool, typer.Option("--structured/--no-structured", help=_STRUCTURED)] = True

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a request, by their names in Inspect."""
        names = ("temperature", "max_tokens", "max_connections", "max_retries", "timeout")
        return {name: value for name, value in self.options.items() if name in names}

    @property
    def arguments(self) -> dict[str, Any]:
        """The further arguments of the provider."""
        arguments: dict[str, Any] = {}
        for argument in self.model_args or []:
            key, sign, value = argument.partition("=")
            if not sign or not key:
                raise ArgumentError(f"--model-arg must have the form KEY=VALUE, got {argument!r}")
            arguments[key] = value
        return arguments


@opt.expand_option_groups
def run_command(
    source: Annotated[Path, typer.Argument(metavar="QUESTIONS", help=_SOURCE, show_default=False)],
    *,
    model: Annotated[str, opt.named("--model", "NAME", _MODEL)],
    signals: Annotated[str, opt.named("--signals", "NAMES", _SIGNALS)] = "",
    output: Annotated[Path | None, opt.output_to(_OUTPUT)] = None,
    compute_aurc: Annotated[bool, typer.Option("--compute-aurc", help=_AURC)] = False,
    modes: Annotated[list[str] | None, opt.named("--mode", "MODE", _MODE)] = None,
    examples: Annotated[Path | None, opt.named("--examples", "FILE", _EXAMPLES)] = None,
    consistency_samples: Annotated[int | None, opt.named("--consistency-samples", "N", _SAMPLES)] = None,
    consistency_temperature: Annotated[
        float | None,
        opt.named("--consistency-temperature", "T", "At which samples are drawn; 0.7 when left out."),
    ] = None,
    seed: Annotated[int | None, opt.named("--seed", "N", "Passed to providers that take one.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=_DRY_RUN)] = False,
    resume: Annotated[bool, typer.Option("--resume", help=_RESUME)] = False,
    log_dir: Annotated[Path | None, opt.named("--log-dir", "FOLDER", _LOG_DIR)] = None,
    quiet: opt.Quiet = False,
    questions: QuestionOptions,
    provider: ModelOptions,
) -> None:
    """Ask a model every question with leave to decline, and record how sure it is (needs abstain[inspect])."""
    from abstain.runs import RunPlan, SignalPlan, prepare  # noqa: PLC0415

    if resume and output is None:
        raise ArgumentError("--resume goes on with a run by its run file; name it with --output")
    check_json_ending(output, "a run file")
    run_file = output or new_name(source.stem, "-run.json")
    inputs = [source, *filter(None, [examples]), *questions.files]
    check_outputs(run_file, inputs=inputs)
    plan = RunPlan(
        source=str(source),
        model=model,
        log_dir=log_dir or run_file.with_name(f"{run_file.stem}-logs"),
        signals=SignalPlan.parse(signals).sampled(consistency_samples, consistency_temperature),
        modes=tuple(modes or ["zero_shot"]),
        examples=None if examples is None else str(examples),
        table_options=questions.options,
        structured=provider.structured,
        seed=seed,
        base_url=provider.base_url,
        model_args=provider.arguments,
        settings=provider.settings,
        resume=resume,
    )
    prepared = prepare(plan)
    if dry_run:
        _show_plan(prepared)
        return
    _check_inspect()
    _ask(prepared, run_file, inputs, quiet=quiet)
    if compute_aurc:
        _judge(run_file, plan, quiet=quiet)


def _check_inspect() -> None:
    from importlib.util import find_spec  # noqa: PLC0415

    if find_spec("inspect_ai") is None:
        raise ArgumentError("asking models needs Inspect AI: pip install 'abstain[inspect]'")


def _show_plan(prepared: Prepared) -> None:
    """Print the first prompts of every mode, and what the run would cost."""
    from abstain.runs import shown_prompts  # noqa: PLC0415

    for name, prompt in shown_prompts(prepared, _SHOWN_PROMPTS):
        say(f"--- {name}\n{prompt}\n")
    further = prepared.samples - len(prepared.plan.modes) * _SHOWN_PROMPTS
    if further > 0:
        say(f"and {further:,} further prompts in the same form\n")
    for line in prepared.costs:
        say(line)


def _ask(prepared: Prepared, run_file: Path, inputs: list[Path], *, quiet: bool) -> None:
    from abstain.runs import execute, run_content  # noqa: PLC0415

    plan = prepared.plan
    _outputs.check_folder(plan.log_dir)
    with progress_bar("asking", prepared.samples, wanted=not quiet) as advance:
        try:
            logs = execute(prepared, advance)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"interrupted; what was answered is kept in {plan.log_dir}: --resume goes on with it"
            ) from None
    content = run_content(prepared, logs)
    if not quiet:
        for line in (line for log in logs for line in log.lines):
            say(line)
    write_files({run_file: content}, inputs=inputs)
    say(run_file if quiet else f"run file: {run_file}")


def _judge(run_file: Path, plan: RunPlan, *, quiet: bool) -> None:
    """Judge the run file, one system per mode, as `abstain evaluate` and `abstain compare` do."""
    from abstain.report.views import summary  # noqa: PLC0415
    from abstain.runs import confidences_of  # noqa: PLC0415

    served, unserved = confidences_of(run_file, plan)
    for name, reason in unserved.items():
        say(f"not judged by {name}: {reason}", error=True)
    result = evaluate_inputs(
        opt.Inputs(inputs=[run_file] * len(plan.modes), modes=list(plan.modes)),
        opt.MetricOptions(confidence=served or None),
        opt.ReadOptions(),
        opt.MatchOptions(),
        opt.IntervalOptions(),
        opt.EngineOptions(),
        quiet=quiet,
        most=None,
    )
    say()
    show(summary, result)


COMMANDS: opt.Commands = {"run": (run_command, EXAMPLES)}
