"""`abstain run`: put a table of questions to a model, and write a run file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from abstain import _outputs, _process
from abstain.cli import _options as opt
from abstain.cli._pipeline import evaluate_inputs
from abstain.cli._program import DATA, MODEL
from abstain.cli._publishing import check_json_ending, check_outputs, new_name, write_files
from abstain.cli._terminal import print_summary, print_text, progress_bar
from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from abstain.runs import FinishedLog, Prepared, RunPlan

_SOURCE = "Table of questions (CSV, Parquet, JSONL), or a file with an Inspect task (task.py)."
_MODEL = "Name of the model in Inspect, such as openai/gpt-4o-mini."
_SIGNALS = (
    "Signals: verbalized[:0-100], tokens, consistency:5[:first], p_true, evidence[:verbatim], "
    "semantic_entropy[:judge=MODEL]."
)
_OUTPUT = "Run file to write. Default: a new file in this directory, whose name is printed."
_LOG_DIR = "Directory for the Inspect logs. Default: the name of the run file with -logs."
_MODE = "Experiment: zero_shot or few_shot; may be repeated. Default: zero_shot."
_EXAMPLES = "Table of examples (or of other participants) for few_shot, with the columns of QUESTIONS."
_SAMPLES = "Number of additional samples of each answer; the same as consistency:N."
_TEMPERATURE = "Temperature of the additional samples. Default: 0.7."
_SEED = "Seed, for providers that support it."
_RESUME = "Continue an interrupted run; existing answers are kept. Requires --output."
_DRY_RUN = "Print prompts and an estimate of calls, tokens, time and costs, without calling the model."
_AURC = "Evaluate the finished run and print the summary with AURC and AUGRC."
_TEMPLATE = "Prompt with columns in braces, such as '{note} Is it mentioned?', or @FILE."
_CHOICES = "Column of the possible answers, or the answers themselves, such as 'yes|no'."
_SCALE = "Lowest and highest answer, if answers are numbers."
_SHOULD_ABSTAIN = "Column that is true if the model should decline the item."
_TEXT = (
    "Column of the text that a question is about, and that quotes must come from. For a task: a metadata key."
)
_INSTRUMENT = "Ask all items of an instrument about the text of each row: PHQ-8, or a JSON file."
_LIMIT = "Use only the first N items, or participants of an instrument. Default: all."
_FORMAT = "Format of QUESTIONS: csv, parquet or jsonl. Default: detected from the content."
_BASE_URL = "Address of the model server. Default: set by the provider."
_ANSWER_TEMPERATURE = "Temperature of the answer. Default: set by the provider."
_MAX_TOKENS = "Largest number of tokens in a reply. Default: set by the provider."
_CONNECTIONS = "Number of concurrent requests. Default: set by Inspect."
_RETRIES = "Number of retries of a failed request, with growing waits, before the item counts as failed."
_TIMEOUT = "Time limit in seconds of a request with its retries. Default: none."
_ARGUMENT = "Additional argument of the provider, as -M of Inspect: true, 5, text; may be repeated."
_MAX_FAILURES = "Stop after N equal failures in a row, such as HTTP 503; 0 for no limit."
_MAX_FAILED = "Exit code 3 if a larger proportion of the items failed; the run file is written."
_PRICE = "Dollars per million input and output tokens, such as 0.15,0.60. Default: no costs."
_CACHE = "Store replies in the cache of Inspect, and reuse them for equal requests."
_BATCH = "Send requests through the batch interface of the provider, if it has one."
_STRUCTURED = "Request replies in a JSON schema. Use --no-structured if the server refuses schemas."
_SYSTEM = "System message, or @FILE. Default: none."
_DECLINE = "Text that permits declining, or @FILE. Default: that of the documentation."
_TARGET = "Instruct the model to answer only above this probability of a right answer, such as 0.75."
_REASONING = "Request a field with reasoning in front of the answer."
_GRADER = (
    "Model that grades free text as correct, incorrect or not attempted. Default: compare with the truth."
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
  abstain run people.csv --instrument PHQ-8 --model ollama/llama3 \\
      --mode zero_shot --mode few_shot --examples other-people.csv
  abstain run questions.csv --model openai/gpt-4o-mini -o run.json --resume
"""


@dataclass(frozen=True)
class QuestionOptions(opt.OptionGroup):
    """How to read the questions: the arguments of `abstain.runs.read_questions`."""

    heading: ClassVar[str] = DATA
    question: Annotated[str | None, opt.column("--question", "Column of the questions.")] = None
    template: Annotated[str | None, opt.named("--template", "TEXT", _TEMPLATE)] = None
    item: Annotated[str | None, opt.column("--item", "Column of the names of the items.")] = None
    cluster: Annotated[
        str | None, opt.column("--cluster", "Column of the cluster (e.g. patient) that rows belong to.")
    ] = None
    truth: Annotated[str | None, opt.column("--truth", opt.TRUTH)] = None
    choices: Annotated[str | None, opt.column("--choices", _CHOICES)] = None
    scale: Annotated[str | None, opt.named("--scale", "LOW,HIGH", _SCALE)] = None
    should_abstain: Annotated[str | None, opt.column("--should-abstain", _SHOULD_ABSTAIN)] = None
    text: Annotated[str | None, opt.column("--text", _TEXT)] = None
    instrument: Annotated[str | None, opt.named("--instrument", "NAME", _INSTRUMENT)] = None
    limit: Annotated[int | None, opt.named("--limit", "N", _LIMIT)] = None
    format: Annotated[str | None, opt.named("--input-format", "NAME", _FORMAT)] = None

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
    """How to call the model."""

    heading: ClassVar[str] = MODEL
    base_url: Annotated[
        str | None,
        opt.named("--base-url", "URL", _BASE_URL),
    ] = None
    model_args: Annotated[list[str] | None, opt.named("--model-arg", "KEY=VALUE", _ARGUMENT)] = None
    temperature: Annotated[
        float | None,
        opt.named("--temperature", "T", _ANSWER_TEMPERATURE),
    ] = None
    max_tokens: Annotated[
        int | None,
        opt.named("--max-tokens", "N", _MAX_TOKENS),
    ] = None
    max_connections: Annotated[int | None, opt.named("--max-connections", "N", _CONNECTIONS)] = None
    # By default Inspect retries for ever, so that a missing server would never be reported.
    max_retries: Annotated[int, typer.Option("--max-retries", metavar="N", help=_RETRIES)] = 6
    timeout: Annotated[int | None, opt.named("--timeout", "SECONDS", _TIMEOUT)] = None
    structured: Annotated[bool, typer.Option("--structured/--no-structured", help=_STRUCTURED)] = True
    max_failures: Annotated[int, typer.Option("--max-failures", metavar="N", help=_MAX_FAILURES)] = 10
    max_failed: Annotated[float, typer.Option("--max-failed", metavar="PROPORTION", help=_MAX_FAILED)] = 0.1
    price: Annotated[str | None, opt.named("--price", "INPUT,OUTPUT", _PRICE)] = None
    cache: Annotated[bool, typer.Option("--cache", help=_CACHE)] = False
    batch: Annotated[bool, typer.Option("--batch", help=_BATCH)] = False

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a request, by their names in Inspect."""
        names = ("temperature", "max_tokens", "max_connections", "max_retries", "timeout")
        settings = {name: value for name, value in self.options.items() if name in names}
        return settings | {name: True for name in ("cache", "batch") if getattr(self, name)}

    @property
    def arguments(self) -> dict[str, Any]:
        """The additional arguments of the provider."""
        arguments: dict[str, Any] = {}
        for argument in self.model_args or []:
            key, sign, value = argument.partition("=")
            if not sign or not key:
                raise ArgumentError(f"--model-arg must have the form KEY=VALUE, got {argument!r}")
            arguments[key.replace("-", "_")] = _parse_argument(key, value)
        return arguments

    @property
    def prices(self) -> tuple[float, float] | None:
        """The prices of input and output tokens."""
        if self.price is None:
            return None
        prices = opt.numbers(self.price, "--price")
        if len(prices) != 2:
            raise ArgumentError(f"--price needs two numbers, such as 0.15,0.60, got {self.price!r}")
        return prices[0], prices[1]


def _parse_argument(key: str, text: str) -> Any:
    """Return a value as Inspect reads it: as YAML, and a text with commas as a list."""
    try:
        import yaml  # noqa: PLC0415
    except ImportError:  # without Inspect there are only dry runs
        return text
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise ArgumentError(f"--model-arg {key}: the value is not valid YAML; quote it") from None
    return value.split(",") if isinstance(value, str) and "," in value else value


@dataclass(frozen=True)
class WordingOptions(opt.OptionGroup):
    """How to word the prompt (the fields of `abstain.runs.Wording`), and which model grades free text."""

    heading: ClassVar[str] = MODEL
    system_message: Annotated[str | None, opt.named("--system-message", "TEXT", _SYSTEM)] = None
    decline_instruction: Annotated[str | None, opt.named("--decline-instruction", "TEXT", _DECLINE)] = None
    confidence_target: Annotated[float | None, opt.named("--confidence-target", "P", _TARGET)] = None
    reasoning: Annotated[bool, typer.Option("--reasoning", help=_REASONING)] = False
    grader: Annotated[str | None, opt.named("--grader", "MODEL", _GRADER)] = None

    @property
    def files(self) -> list[Path]:
        """The files with texts."""
        texts = (self.system_message, self.decline_instruction)
        return [Path(text[1:]) for text in texts if text and text.startswith("@")]


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
        opt.named("--consistency-temperature", "T", _TEMPERATURE),
    ] = None,
    seed: Annotated[int | None, opt.named("--seed", "N", _SEED)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=_DRY_RUN)] = False,
    resume: Annotated[bool, typer.Option("--resume", help=_RESUME)] = False,
    log_dir: Annotated[Path | None, opt.named("--log-dir", "FOLDER", _LOG_DIR)] = None,
    quiet: opt.Quiet = False,
    questions: QuestionOptions,
    provider: ModelOptions,
    wording: WordingOptions,
) -> None:
    """Put questions to a model that may decline, and record its confidence. Requires abstain[inspect]."""
    from abstain.runs import RunPlan, SignalPlan, Wording, prepare  # noqa: PLC0415
    from abstain.runs.questions import read_template  # noqa: PLC0415

    if not 0.0 <= provider.max_failed <= 1.0:
        raise ArgumentError(f"--max-failed must be a proportion from 0 to 1, got {provider.max_failed:g}")
    if resume and output is None:
        raise ArgumentError("--resume needs the run file of the interrupted run; name it with --output")
    check_json_ending(output, "a run file")
    run_file = output or new_name(source.stem, "-run.json")
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
        max_failures=provider.max_failures,
        price=provider.prices,
        wording=Wording(
            read_template(wording.system_message),
            read_template(wording.decline_instruction),
            wording.confidence_target,
            wording.reasoning,
        ),
        grader=wording.grader,
    )
    inputs = [plan.path, *filter(None, [examples]), *questions.files, *wording.files]
    check_outputs(run_file, inputs=inputs)
    prepared = prepare(plan)
    if dry_run:
        _show_plan(prepared)
        return
    _check_inspect()
    logs = _execute(prepared, run_file, inputs, quiet=quiet)
    if compute_aurc:
        _evaluate(run_file, plan, quiet=quiet)
    from abstain.runs import check_failures  # noqa: PLC0415

    check_failures(logs, provider.max_failed)


def _check_inspect() -> None:
    from importlib.util import find_spec  # noqa: PLC0415

    if find_spec("inspect_ai") is None:
        raise ArgumentError("abstain run requires Inspect AI: pip install 'abstain[inspect]'")


def _show_plan(prepared: Prepared) -> None:
    """Print the first prompts of every mode, and the cost of the run."""
    from abstain.runs import estimated_costs, shown_prompts  # noqa: PLC0415

    for name, prompt in shown_prompts(prepared, _SHOWN_PROMPTS):
        print_text(f"--- {name}\n{prompt}\n")
    further = prepared.samples - len(prepared.plan.modes) * _SHOWN_PROMPTS
    if further > 0:
        print_text(f"and {further:,} more prompts of the same form\n")
    for line in estimated_costs(prepared):
        print_text(line)


def _execute(prepared: Prepared, run_file: Path, inputs: list[Path], *, quiet: bool) -> list[FinishedLog]:
    """Run a plan, print the summary and write the run file."""
    from abstain.runs import execute, run_content  # noqa: PLC0415

    plan = prepared.plan
    _outputs.check_folder(plan.log_dir)
    # Otherwise the memory of a run would grow by 0.1 MB per item.
    _process.collect_garbage_as_usual()
    with progress_bar("running", prepared.samples, wanted=not quiet) as advance:
        try:
            logs = execute(prepared, advance)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"interrupted; finished answers are kept in {plan.log_dir} (--resume continues the run)"
            ) from None
    content = run_content(prepared, logs)
    if not quiet:
        for line in (line for log in logs for line in log.lines(plan)):
            print_text(line)
    write_files({run_file: content}, inputs=inputs)
    print_text(run_file if quiet else f"run file: {run_file}")
    return logs


def _evaluate(run_file: Path, plan: RunPlan, *, quiet: bool) -> None:
    """Evaluate the run file, one system per mode, as `abstain evaluate` and `abstain compare` do."""
    from abstain.report.views import summary  # noqa: PLC0415
    from abstain.runs import confidences_of  # noqa: PLC0415

    available, unavailable = confidences_of(run_file, plan)
    for name, reason in unavailable.items():
        print_text(f"not evaluated by {name}: {reason}", error=True)
    result = evaluate_inputs(
        opt.Inputs(inputs=[run_file] * len(plan.modes), modes=list(plan.modes)),
        opt.MetricOptions(confidence=available or None),
        opt.ReadOptions(),
        opt.MatchOptions(),
        opt.IntervalOptions(),
        opt.EngineOptions(),
        quiet=quiet,
        most=None,
    )
    print_text()
    print_summary(summary, result)


COMMANDS: opt.Commands = {"run": (run_command, EXAMPLES)}
