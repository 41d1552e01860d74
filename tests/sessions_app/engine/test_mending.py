"""Requests a provider refuses: images removed, context summarised, then once more."""

from __future__ import annotations

import pytest

from sessions_app.engine import History
from sessions_app.llm.client import CredentialsError, InvalidRequestError, LLMError
from tests.sessions_app.engine.scripted import call, say
from tests.sessions_app.engine.story import Story, kinds, only, words
from traces_app.omnimessage import StopReason, image_url, tool_call_output

PICTURE = image_url("data:image/png;base64,AA==")


async def run_with_picture(story: Story) -> list:
    return await story.run("what?", PICTURE)


async def test_refused_image_is_removed_with_a_note_and_the_session_goes_on():
    error = InvalidRequestError("400: Could not process image")
    story = Story([error], say("without it, then"), say("done"))

    seen = await run_with_picture(story)
    await story.run("next")

    assert "abort" not in kinds(seen)
    first, second, third = story.model.requests
    assert PICTURE in first.messages
    assert PICTURE not in second.messages
    assert words(second.messages)[1].startswith("[images were removed")
    assert "Could not process image" in words(second.messages)[1]
    assert PICTURE not in third.messages
    assert History.from_messages(story.recorded) == story.loop.history


async def test_refused_image_of_an_output_is_removed_and_the_output_stays():
    story = Story(call("a"), [InvalidRequestError("bad image")], say("done"))

    async def execute_tool(tool_call, signal=None, approve=None):
        yield tool_call_output(
            "c1", "a picture", StopReason.COMPLETED, images=("data:image/png;base64,A",)
        )

    story.tools.execute_tool = execute_tool
    await story.run("look")

    before, after = story.model.requests[1:]
    assert before.messages[-1].payload.images
    assert [m.kind for m in after.messages] == [
        "text",
        "tool_call",
        "tool_call_output",
        "text",
    ]
    assert after.messages[2].payload.images == ()
    assert after.messages[2].payload.output == "a picture"


async def test_old_images_are_removed_when_the_new_input_has_none():
    story = Story(say("nice"), [InvalidRequestError("too many images")], say("done"))

    await run_with_picture(story)
    await story.run("and now?")

    assert PICTURE in story.model.requests[1].messages
    assert PICTURE not in story.model.requests[2].messages


async def test_server_error_about_an_image_removes_it_after_the_last_attempt():
    story = Story(*[[LLMError("500: no vision here")]] * 6, say("done"))

    seen = await run_with_picture(story)

    assert len(story.model.requests) == 7
    assert "abort" not in kinds(seen)


@pytest.mark.parametrize(
    "error", [InvalidRequestError("400: no such model"), CredentialsError("image key")]
)
async def test_other_errors_leave_images_alone(error):
    story = Story([error])

    seen = await run_with_picture(story)

    assert kinds(seen)[-1] == "abort"
    assert PICTURE in story.loop.history.messages


async def test_image_that_is_not_the_culprit_is_not_removed_for_ever_again():
    error = InvalidRequestError("400: image")
    story = Story([error], [error], say("never asked"))

    seen = await run_with_picture(story)

    assert len(story.model.requests) == 2
    assert kinds(seen)[-1] == "abort"


async def test_request_that_is_too_long_is_summarised_and_sent_again():
    error = InvalidRequestError("400: exceeds the context window")
    story = Story(say("hello"), [error], say("short"), say("done"))

    await story.run("one")
    seen = await story.run("two")

    assert "abort" not in kinds(seen)
    assert [r.purpose for r in story.model.requests] == [
        "turn",
        "turn",
        "summary",
        "turn",
    ]
    assert words(story.model.requests[3].messages)[-1] == "two"
    assert story.model.requests[3].attempt == 2


async def test_summary_of_a_context_that_is_too_long_is_asked_with_cut_outputs():
    error = InvalidRequestError("prompt is too long: 300000 tokens")
    story = Story(call("a"), [error], [error], say("short"), say("done"))

    async def much(_):
        return "x" * 50_000

    story.tools.run["a"] = much
    seen = await story.run("go")

    assert "abort" not in kinds(seen)
    output = story.model.requests[3].messages[2].payload.output
    assert len(output) < 2100
    assert output.endswith("[48000 characters are left out here]")
    assert only(story.recorded, "tool_call_output")[0].output == "x" * 50_000


async def test_too_long_without_anything_to_summarise_ends_with_the_provider_words():
    story = Story([InvalidRequestError("prompt is too long")])

    seen = await story.run("x" * 10)

    assert seen[-1].payload.reason == "prompt is too long"
    assert len(story.model.requests) == 1


async def test_failed_summary_ends_with_the_words_of_the_refusal():
    error = InvalidRequestError("prompt is too long")
    story = Story(say("hello"), [error], [error], [error])

    await story.run("one")
    seen = await story.run("two")

    assert kinds(seen)[-1] == "abort"
    assert only(seen, "compaction_end")[0].status is StopReason.FAILED
    assert words(story.loop.history.messages) == ["one", "hello", "two"]
