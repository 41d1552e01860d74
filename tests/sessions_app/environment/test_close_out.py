"""The end of an output: cut, note, closing marker, images, in this order."""

import hashlib
import re
import stat
from pathlib import Path

import pytest

from sessions_app.environment import ToolResult
from tests.sessions_app.environment.calls import call, run
from traces_app.omnimessage import StopReason

PNG = "data:image/png;base64,iVBORw0KGgo="


@pytest.fixture
def run_items(scripted):
    async def run_items(*items, **config):
        async def execute(args, ctx):
            for item in items:
                if isinstance(item, BaseException):
                    raise item
                yield item

        environment, name = scripted(execute, **config)
        return await call(environment, name, {})

    return run_items


async def test_text_of_exactly_the_cap_is_whole(run_items):
    called = await run_items("x" * 16_000)

    assert called.output == "x" * 16_000
    assert called.details["truncated"] is False
    assert "artifact" not in called.details


async def test_one_character_more_is_cut_and_marked(run_items):
    called = await run_items("x" * 16_001)

    text, marker = called.output.split("\n")
    assert text == "x" * 16_000
    assert "16001 characters produced" in marker
    assert "16000 kept" in marker
    assert called.details["truncated"] is True
    assert called.details["output_chars"] == 16_001
    assert called.stop_reason is StopReason.COMPLETED


async def test_marker_names_a_private_file_with_the_whole_text(run_items):
    called = await run_items("head\n" * 4000, "tail\n")

    artifact = called.details["artifact"]
    path = Path(artifact["path"])
    assert str(path) in called.output
    assert path.read_text() == "head\n" * 4000 + "tail\n"
    assert artifact["size"] == path.stat().st_size
    assert artifact["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("cap", [0, -1])
async def test_disabled_cap_keeps_everything(run_items, cap):
    called = await run_items("x" * 50_000, maxOutputLength=cap)

    assert called.output == "x" * 50_000


async def test_tiny_cap_cuts_inside_the_first_increment(run_items):
    called = await run_items("abc", maxOutputLength=1)

    assert called.output.startswith("a\n[output truncated: ")


async def test_cut_never_falls_inside_a_character(run_items):
    called = await run_items("\U0001f427" * 5, maxOutputLength=3)

    assert called.output.startswith("\U0001f427" * 3 + "\n[")


async def test_text_before_the_cut_is_streamed_as_it_comes(run_items):
    called = await run_items("ab", "cd", "ef", maxOutputLength=3)

    assert called.deltas[:2] == ["ab", "c"]
    assert len(called.deltas) == 3


async def test_tool_is_drained_to_its_end_after_the_cut(scripted):
    produced = []

    async def execute(args, ctx):
        for number in range(100):
            produced.append(number)
            yield "line\n"

    environment, name = scripted(execute, maxOutputLength=10)

    called = await call(environment, name, {})

    assert len(produced) == 100
    assert called.details["output_chars"] == 500


async def test_markers_stand_in_their_order_on_a_line_each(run_items):
    called = await run_items("abc", ToolResult(note="[note]"), maxOutputLength=1)

    lines = called.output.split("\n")
    assert lines[0] == "a"
    assert lines[1].startswith("[output truncated")
    assert lines[2:] == ["[note]"]


async def test_failure_after_a_cut_shows_in_the_stream(run_items):
    called = await run_items("abc", RuntimeError("kaboom"), maxOutputLength=1)

    assert called.deltas[-1].endswith("\n[tool error] kaboom")
    assert called.stop_reason is StopReason.FAILED


async def test_all_markers_come_in_one_delta(run_items):
    called = await run_items("abc\n", ToolResult(note="[n]"), maxOutputLength=2)

    assert len(called.deltas) == 2
    assert called.deltas[1].startswith("\n[output truncated")


async def test_no_blank_line_after_text_that_ends_in_a_newline(run_items):
    called = await run_items("hi\n", ToolResult(note="[note]"))

    assert called.output == "hi\n[note]"


async def test_note_alone_has_no_leading_newline(run_items):
    called = await run_items(ToolResult(note="[note]"))

    assert called.output == "[note]"


async def test_self_reported_failure_counts(run_items):
    called = await run_items("text", ToolResult(stop_reason="failed"))

    assert called.output == "text"
    assert called.stop_reason is StopReason.FAILED


async def test_image_comes_once_just_before_the_stop(run_items):
    called = await run_items("text", ToolResult(images=[PNG]))

    assert called.complete.images == (PNG,)
    assert called.frames[-2].images == (PNG,)
    assert called.frames[-2].output == ""


async def test_image_survives_the_cut_of_the_text(run_items):
    called = await run_items("abc", ToolResult(images=[PNG]), maxOutputLength=1)

    assert called.complete.images == (PNG,)
    assert called.output.startswith("a\n[")


async def test_failed_call_shows_no_image(run_items):
    result = ToolResult(images=[PNG], stop_reason=StopReason.FAILED)

    called = await run_items("text", result)

    assert called.complete.images == ()
    assert all(not frame.images for frame in called.frames)


async def test_image_without_text_says_no_output(run_items):
    called = await run_items(ToolResult(images=[PNG]))

    assert called.output == "[no output]"
    assert called.complete.images == (PNG,)


async def test_file_that_cannot_be_kept_changes_nothing_else(scripted, tmp_path):
    (tmp_path / "file").write_text("in the way")

    async def execute(args, ctx):
        yield "abc"

    environment, name = scripted(
        execute, maxOutputLength=1, artifact_dir=tmp_path / "file" / "folder"
    )

    called = await call(environment, name, {})

    assert called.stop_reason is StopReason.COMPLETED
    assert called.output.startswith("a\n[output truncated")
    assert "the rest was not kept" in called.output
    assert "artifact" not in called.details


async def test_own_folder_goes_with_the_environment(limited):
    environment = limited(max_output_length=1)
    called = await run(environment, "echo abc")
    folder = Path(called.details["artifact"]["path"]).parent

    await environment.aclose()

    assert not folder.exists()


async def test_given_folder_stays(limited, tmp_path):
    environment = limited(max_output_length=1, artifact_dir=tmp_path / "kept")
    called = await run(environment, "echo abc")

    await environment.aclose()

    assert Path(called.details["artifact"]["path"]).read_text() == "abc\n"
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o700


async def test_details_tell_the_time_it_took(run_items):
    called = await run_items("text")

    assert 0 <= called.details["duration_ms"] < 5000


async def test_log_of_a_tool_is_told_before_the_cut(scripted, sink):
    async def execute(args, ctx):
        yield "ab"
        yield "cd"

    environment, name = scripted(execute, sink=sink, maxOutputLength=1)

    await call(environment, name, {}, tool_call_id="call_9")

    assert sink.bound == [("call_9", "call_9")]
    assert sink.logs == {"call_9": "abcd"}


async def test_sink_slows_a_tool_that_produces_much(scripted, sink):
    async def execute(args, ctx):
        for _ in range(40):
            yield "x" * 100_000

    environment, name = scripted(execute, sink=sink)

    await call(environment, name, {})

    assert sink.drains == 3


async def test_hard_ceiling_bounds_a_call_without_a_cap(run_items):
    block = "x" * (1024 * 1024)

    called = await run_items(*[block] * 65, maxOutputLength=0)

    text, marker = called.output.split("\n")
    assert len(text) == 64 * 1024 * 1024
    assert "the most one call can return" in marker
    assert re.search(r"all but \d+ characters in /", marker)
