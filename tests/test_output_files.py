"""Output files: never partly written, never an input; links, pipes and devices stay what they are."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from abstain import _outputs
from abstain.errors import ArgumentError
from processes import names, on_linux

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("umask")
def test_permissions_of_a_new_file_follow_the_umask_and_those_of_an_old_one_are_kept(tmp_path: Path) -> None:
    path = _outputs.write_whole(tmp_path / "x", b"1")
    assert mode(path) == 0o640
    path.chmod(0o604)
    _outputs.write_whole(path, b"2")
    assert (mode(path), path.read_bytes(), names(tmp_path)) == (0o604, b"2", ["x"])


def test_links_are_followed_and_stay_links(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link, longer = tmp_path / "folder" / "x", tmp_path / "link", tmp_path / "longer"
    link.symlink_to("folder/x")
    longer.symlink_to(link)
    _outputs.write_whole(longer, b"new")
    assert (link.is_symlink(), longer.is_symlink(), target.read_bytes()) == (True, True, b"new")
    link.unlink()
    link.symlink_to("longer")
    with pytest.raises(ArgumentError, match="leads through too many links; pass the path"):
        _outputs.write_whole(link, b"")


def test_a_link_of_another_user_in_a_shared_folder_is_not_followed(tmp_path: Path) -> None:
    shared, target = tmp_path / "shared", tmp_path / "target"
    shared.mkdir()
    shared.chmod(0o1777)
    link = shared / "link"
    link.symlink_to(target)
    _outputs.write_whole(link, b"mine")
    assert target.read_bytes() == b"mine"
    if os.geteuid() == 0:
        os.lchown(link, 12345, 12345)
        with pytest.raises(ArgumentError, match="a link that another user created in a shared directory"):
            _outputs.write_whole(link, b"stolen")
        assert target.read_bytes() == b"mine"


@on_linux
def test_a_pipe_and_a_device_are_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    _outputs.write_whole(pipe, b"through")
    reader.join()
    assert (read, stat.S_ISFIFO(pipe.stat().st_mode), names(tmp_path)) == ([b"through"], True, ["pipe"])
    _outputs.write_whole("/dev/null", b"lost")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with pytest.raises(ArgumentError, match=r"/dev/full: cannot be written \(No space left on device\)"):
        _outputs.write_whole("/dev/full", b"much")


def test_a_redirected_stream_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """The order of printed text is kept, too."""
    program = (
        "from abstain import _outputs; print('before')\n"
        "_outputs.write_whole('/dev/stdout', b'between\\n'); print('after')"
    )
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", program], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "before\nbetween\nafter\n"
    assert names(tmp_path) == ["out"]


def test_an_input_is_never_an_output(tmp_path: Path) -> None:
    data, again, hard = tmp_path / "data", tmp_path / "again", tmp_path / "hard"
    data.write_bytes(b"1")
    again.symlink_to(data)
    hard.hardlink_to(data)
    for output in (data, again, hard, tmp_path / "." / "data"):
        with pytest.raises(ArgumentError, match="is the input .*; choose another file for the output"):
            _outputs.check_output(output, inputs=[tmp_path / "missing", data])
        with pytest.raises(ArgumentError, match="is the input"):
            _outputs.write_files({tmp_path / "other": b"", output: b"2"}, inputs=[data])
    assert (data.read_bytes(), names(tmp_path)) == (b"1", ["again", "data", "hard"])


def test_two_outputs_must_be_different_files(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("x")
    with pytest.raises(ArgumentError, match="is the path of two outputs"):
        _outputs.write_files({tmp_path / "x": b"1", tmp_path / "link": b"2"})
    assert names(tmp_path) == ["link"]


@pytest.mark.parametrize("problem", [KeyboardInterrupt, ValueError, OSError])
def test_a_failure_while_writing_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: type[BaseException]
) -> None:
    def fail(handle: int) -> None:
        raise problem(5, "in between")

    (tmp_path / "old").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", fail)
    for name in ("old", "new"):
        with pytest.raises((problem, ArgumentError), match="in between|cannot be the name"):
            _outputs.write_whole(tmp_path / name, b"new")
    assert (names(tmp_path), (tmp_path / "old").read_bytes()) == (["old"], b"old")


def test_files_are_synced_before_they_are_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    sync, replace = os.fsync, Path.replace

    def noted_sync(handle: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    def noted_replace(self: Path, target: Path) -> Path:
        steps.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    _outputs.write_whole(tmp_path / "x", b"1")
    assert steps == ["file", "rename", "folder"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x" * 300, "cannot be written (File name too long)"),
        ("a\0b", "cannot be the name of a file"),
        ("file/x", "cannot be written (Not a directory)"),
        ("missing/x", "does not exist; create it first"),
        (".", "is a directory; pass the path of an output file"),
        ("socket", "is a disk or a socket"),
    ],
)
def test_invalid_paths_are_reported_before_any_work(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    os.mknod(tmp_path / "socket", stat.S_IFSOCK | 0o600)
    with pytest.raises(ArgumentError, match=re.escape(message)):
        _outputs.check_output(f"{tmp_path}/{name}")


@pytest.mark.parametrize("name", [b"\xff\xfe.json", b"new\nline", b"x" * 255])
def test_names_that_are_hard_to_print_can_be_written(tmp_path: Path, name: bytes) -> None:
    path = tmp_path / os.fsdecode(name)
    _outputs.write_whole(path, b"1")
    _outputs.write_whole(path, b"2")
    assert os.listdir(os.fsencode(tmp_path)) == [name]  # noqa: PTH208
    assert path.read_bytes() == b"2"


def test_a_new_folder_is_removed_if_writing_its_files_fails(tmp_path: Path) -> None:
    with _outputs.new_folder(tmp_path / "a" / "b"):
        _outputs.write_whole(tmp_path / "a" / "b" / "x", b"1")
    with pytest.raises(ValueError, match="no"), _outputs.new_folder(tmp_path / "a" / "c" / "d"):
        raise ValueError("no")
    assert names(tmp_path / "a") == ["b"]
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ArgumentError, match="is a file; pass the path of a directory"):
        _outputs.check_folder(tmp_path / "file" / "x")


_WRITER = """
import sys
from abstain import _outputs
print("ready", flush=True)
number = 0
while True:
    number += 1
    _outputs.write_whole(sys.argv[1], b"%d\\n" % number * 200_000)
"""


@pytest.mark.nightly
def test_killed_and_concurrent_writers_leave_a_complete_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    command = [sys.executable, "-c", _WRITER, str(path)]
    for _ in range(4):
        writers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
        for writer in writers:
            assert writer.stdout is not None
            writer.stdout.readline()
        for _ in range(10):
            _check_complete(path)
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
        _check_complete(path)


def _check_complete(path: Path) -> None:
    """Check that the file has one number, on as many lines as were written."""
    if path.exists():
        lines = path.read_bytes().splitlines()
        assert len(lines) == 200_000
        assert len(set(lines)) == 1
