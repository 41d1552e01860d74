"""describe_image: the words of a model that sees, for one that does not."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from sessions_app.environment import AbortSignal, Environment, ToolError
from sessions_app.environment.describe import ModelUse
from sessions_app.environment.images import Image
from tests.pictures import picture
from tests.sessions_app.environment.calls import Called, call, failed_with
from traces_app.omnimessage import StopReason
from traces_app.omnimessage.payloads import Usage

PNG = picture("PNG", (37, 21))
USE = ModelUse(model="lab/eyes", usage=Usage(cache_write=900, output=20, total=920))


class Eyes:
    """A model that sees; its answer is given, and what it was asked is kept."""

    def __init__(self, *answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str]] = []
        self.was_closed = False

    async def __call__(self, image: str, prompt: str):
        self.asked.append((image, prompt))
        try:
            for part in self.answer:
                if isinstance(part, Exception):
                    raise part
                if isinstance(part, asyncio.Event):
                    await part.wait()
                    continue
                yield part
        finally:
            self.was_closed = True


@pytest.fixture
def describing(make_environment) -> Callable[..., Environment]:
    """Make the tools of a model that cannot see, with the eyes of another."""

    def make(eyes: Eyes | None, **more: Any) -> Environment:
        return make_environment(describe=eyes, image_hosts=["127.0.0.1"], **more)

    return make


async def describe(environment: Environment, **arguments: Any) -> Called:
    return await call(environment, "describe_image", arguments)


async def test_description_is_the_output_and_the_image_is_not(describing, workspace):
    (workspace / "a.png").write_bytes(PNG)
    eyes = Eyes("A red ", "square.", USE)

    called = await describe(describing(eyes), source="a.png", prompt="Which colour?")

    assert called.stop_reason is StopReason.COMPLETED
    assert called.output == "A red square."
    assert called.complete.images == ()
    ((image, prompt),) = eyes.asked
    assert image == Image.from_bytes(PNG, "a.png").url
    assert prompt == "Which colour?"


@pytest.mark.parametrize("more", [{}, {"prompt": ""}, {"prompt": " \n"}])
async def test_without_a_question_a_detailed_description_is_asked_for(
    describing, workspace, more
):
    (workspace / "a.png").write_bytes(PNG)
    eyes = Eyes("A square.")

    await describe(describing(eyes), source="a.png", **more)

    assert "in detail" in eyes.asked[0][1]


async def test_without_a_vision_model_the_output_says_what_to_set(
    describing, workspace
):
    (workspace / "a.png").write_bytes(PNG)

    failed_with(await describe(describing(None), source="a.png"), "vision_model")


async def test_refused_description_gives_the_words_of_the_refusal(
    describing, workspace
):
    (workspace / "a.png").write_bytes(PNG)
    eyes = Eyes(ToolError("lab answered 401: wrong key"))

    called = await describe(describing(eyes), source="a.png")

    failed_with(called, "lab answered 401: wrong key")


async def test_unfit_file_is_refused_before_the_vision_model_is_asked(
    describing, workspace
):
    (workspace / "a.svg").write_text("<svg/>")
    eyes = Eyes("never")

    failed_with(await describe(describing(eyes), source="a.svg"), "a.svg")
    assert eyes.asked == []


async def test_description_comes_in_parts_and_is_not_repeated(describing, workspace):
    (workspace / "a.png").write_bytes(PNG)
    eyes = Eyes("One ", "two ", "three.", USE)

    called = await describe(describing(eyes), source="a.png")

    assert called.deltas == ["One ", "two ", "three."]
    assert called.output == "One two three."


async def test_tokens_of_a_description_stand_in_the_details(describing, workspace):
    (workspace / "a.png").write_bytes(PNG)

    called = await describe(describing(Eyes("A square.", USE)), source="a.png")

    assert called.details["model_use"] == {
        "model": "lab/eyes",
        "cache_read": 0,
        "cache_write": 900,
        "output": 20,
        "total": 920,
        "input": 0,
    }
    assert called.details["image"]["width"] == 37


@pytest.mark.parametrize("answer", [(), (" ", "\n"), (USE,)])
async def test_description_without_words_is_a_failure(describing, workspace, answer):
    (workspace / "a.png").write_bytes(PNG)

    failed_with(await describe(describing(Eyes(*answer)), source="a.png"), "any text")


async def test_silent_vision_model_is_left_at_once_when_interrupted(
    describing, workspace
):
    (workspace / "a.png").write_bytes(PNG)
    eyes = Eyes("It shows", asyncio.Event())
    signal = AbortSignal()
    loop = asyncio.get_running_loop()
    loop.call_later(0.2, signal.abort)
    began = loop.time()

    called = await call(
        describing(eyes), "describe_image", {"source": "a.png"}, signal=signal
    )

    assert called.stop_reason is StopReason.ABORTED
    assert called.output == "It shows\n[interrupted: tool aborted by user]"
    assert loop.time() - began < 1
    assert eyes.was_closed
