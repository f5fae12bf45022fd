"""Reading of files, pipes and other paths, and parsing of strict JSON."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from abstain import AbstainError, ArgumentError, FormatError, _files, read
from abstain.readers._read import ReadArguments
from examples import EXAMPLES

RUN = EXAMPLES / "run_a.json"


def shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "A": sys.executable},
    )


@pytest.mark.parametrize("source", ["<(cat {})", "/dev/stdin < {}", "<(sleep 0.5; cat {})"])
def test_a_pipe_is_read_like_a_file(source: str, tmp_path: Path) -> None:
    named = source.format(RUN)
    options = "--mode few_shot --bootstrap-resamples 0 --json"
    piped = shell(f'cd {tmp_path} && "$A" -m abstain evaluate {named} {options}')
    plain = shell(f'cd {tmp_path} && "$A" -m abstain evaluate {RUN} {options}')
    assert piped.returncode == plain.returncode == 0, piped.stderr
    actual, expected = json.loads(piped.stdout), json.loads(plain.stdout)
    assert actual["confidence_variants"] == expected["confidence_variants"]
    assert actual["inputs"][0]["sha256"] == expected["inputs"][0]["sha256"]


def test_logs_can_be_read_from_a_pipe(inspect_logs: Path, lm_eval_samples: Path) -> None:
    for path in (
        inspect_logs / "once.eval",
        inspect_logs / "once.json",
        *sorted(lm_eval_samples.glob("samples_*"))[:1],
    ):
        descriptor, end = os.pipe()
        writer = threading.Thread(target=_write_all, args=(end, path.read_bytes()))
        writer.start()
        try:
            items = read(f"/dev/fd/{descriptor}")
        finally:
            writer.join()
            os.close(descriptor)
        assert repr(items) == repr(read(path))
        assert items.provenance["sha256"] == read(path).provenance["sha256"]


def _write_all(descriptor: int, content: bytes) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


@pytest.mark.slow
def test_a_pipe_without_a_writer_is_an_error_after_some_seconds(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ArgumentError, match=r"pipe: nothing was written to this pipe in 3 seconds"):
        read(pipe)


def test_an_endless_pipe_is_an_error(tmp_path: Path) -> None:
    done = shell(
        f'cd {tmp_path} && "$A" -c \'import abstain._files as f; f.PIPE_LIMIT = 1 << 20; f.read_bytes("/dev/stdin")\' '
        "< <(yes)"
    )
    assert (
        "/dev/stdin: the pipe contains more than 1,048,576 bytes; write them to a file first" in done.stderr
    )


@pytest.mark.slow
def test_a_table_can_be_read_from_a_pipe(tmp_path: Path) -> None:
    """Number and hash are the same as from a file, in every text format."""
    csv, lines = "truth,prediction,confidence\n1,1,0.9\n0,1,0.4\n", ""
    for row in ((1, 1, 0.9), (0, 1, 0.4)):
        lines += json.dumps(dict(zip(("truth", "prediction", "confidence"), row, strict=True))) + "\n"
    for name, text in (("t.csv", csv), ("t.jsonl", lines)):
        (tmp_path / name).write_text(text)
        command = f'cd {tmp_path} && "$A" -m abstain evaluate'
        outputs = [json.loads(shell(f"{command} {path} --json").stdout) for path in (name, f"<(cat {name})")]
        areas = [each["confidence_variants"]["confidence"]["aurc_full"] for each in outputs]
        assert areas == [0.125, 0.125]
        assert hashlib.sha256(text.encode()).hexdigest() in json.dumps(outputs[1])
    refused = shell(f'cd {tmp_path} && "$A" -m abstain compare <(cat t.csv)')
    assert refused.returncode == 2
    assert "pass at least two inputs to compare, got 1" in refused.stderr


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_a_device_is_an_error(path: str) -> None:
    with pytest.raises(ArgumentError, match=rf"{path}: is a device; pass the path of a file or a pipe"):
        read(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x" * 300 + ".json", r"cannot be read \(File name too long\)"),
        ("x" * 300 + "*.json", r"no file matches this pattern|cannot be read \(File name too long\)"),
        ("a\0b.json", "no such file"),
        ("none/a.json", "no such file"),
        ("run.json/a.json", "no such file"),
        ("loop.json", r"cannot be read \(Too many levels of symbolic links\)"),
        (os.fsdecode(b"\xff\xfe.json"), r"\\xff\\xfe.json: no such file"),
    ],
)
def test_paths_without_a_file_are_errors(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "run.json").write_bytes(RUN.read_bytes())
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    with pytest.raises(ArgumentError, match=message):
        read(f"{tmp_path}/{name}", mode="few_shot")
    with pytest.raises(ArgumentError, match=message.replace("no file matches this pattern", "no such file")):
        _files.read_bytes(f"{tmp_path}/{name}")


def test_bytes_of_a_path_that_are_not_text_are_escaped(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json"))
    path.write_bytes(RUN.read_bytes())
    items = read(path, mode="few_shot")
    assert items.provenance["path"] == f"{tmp_path}/\\xff.json"
    path.write_bytes(b"{")
    with pytest.raises(FormatError, match=r"/\\xff.json: not JSON") as caught:
        read(path)
    str(caught.value).encode()


def test_the_error_for_a_locked_folder_names_the_reason(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    (folder / "run.json").write_bytes(RUN.read_bytes())
    folder.chmod(0)
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    program = (
        "import os, sys; import abstain, abstain.readers._run_file; read, wrong = abstain.read, abstain.ArgumentError\n"
        "if os.getuid() == 0: os.setuid(65534)  # root may look into every folder\n"
        "try: read(sys.argv[1])\n"
        "except wrong as problem: print(problem)"
    )
    for name in ("run.json", "other.json", "*.json"):
        command = [sys.executable, "-c", program, str(folder / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "(Permission denied)" in done.stdout or "no file matches this pattern" in done.stdout, (
            done.stderr
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"1" + b"0" * 400, "a whole number has 401 digits; at most 308 can be read"),
        (b"1" + b"0" * 5000, "a whole number has 5,001 digits"),
        (b"1e999", "the number 1e999 is too large for a float"),
        (b'["\\ud800"]', r"a \\u escape is half of a surrogate pair"),
        (b'{"\\udc00": 1}', r"a \\u escape is half of a surrogate pair"),
        (b'["\xff"]', "not UTF-8 text at byte 2"),
        (b"[" * 101 + b"]" * 101, "nested too deeply"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": "]]]]", "b": ' * 150 + b"1" + b"}" * 150, "nested too deeply"),
        (b"\x1f\x8b\x08", "is compressed; unpack it first"),
        (b" \n", "the file is empty"),
    ],
)
def test_anything_but_strict_json_is_an_error(text: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=f"^x.json: .*{message}"):
        _files.parse_json(text, "x.json")


def test_strict_json_is_parsed() -> None:
    assert _files.parse_json(b'["\\ud83d\\ude00", "\\\\ud800", 1e308]', "x") == [
        "\U0001f600",
        "\\ud800",
        1e308,
    ]
    assert _files.parse_json(b"9" * 308, "x") == int("9" * 308)
    assert _files.parse_json(b"[" * 100 + b"]" * 100, "x")


@pytest.mark.parametrize("text", ["NaN", "[Infinity, -Infinity]", '["NaN"]', '{"NaN": [NaN, "\\"NaN"]}'])
def test_nan_and_infinity_of_other_tools_are_replaced(text: str) -> None:
    expected = json.loads(text, parse_constant={"NaN": None, "Infinity": 1.7976931348623157e308}.get)
    decoded = _files.decode(text.encode(), object, "x")
    assert decoded == (expected if "-" not in text else [1.7976931348623157e308, -1.7976931348623157e308])


@pytest.mark.parametrize(
    "text", [b"{", b'"\xff"', b'"\\ud800"', b"[" * 100_000, b"nan", b"Infinit", b"", b'{"a": NaN', b"\x00"]
)
def test_parts_of_logs_that_are_not_json_are_errors(text: bytes) -> None:
    with pytest.raises(AbstainError, match=r"^x: (not JSON|JSON nested too deeply)"):
        _files.decode(text, object, "x")


def test_read_arguments_has_the_arguments_of_read() -> None:
    public = inspect.signature(read).parameters
    listed = {field.name: field.default for field in dataclasses.fields(ReadArguments)}
    assert [*listed] == [name for name in public if name not in ("source", "cluster_by")]
    assert all(public[name].default == default for name, default in listed.items())
