"""read_image: what counts as an image, where it may come from, what becomes of it."""

import asyncio
import base64
import os
from dataclasses import replace
from typing import Any

import pytest

from sessions_app.environment import (
    AbortSignal,
    Environment,
    default_tool_definitions,
)
from sessions_app.environment.images import MAX_BYTES, Image, ImageError
from tests.pictures import padded, picture, png_that_says
from tests.sessions_app.environment.calls import Called, call, failed_with
from traces_app.omnimessage import StopReason

PNG = picture("PNG", (37, 21))


@pytest.fixture
def seeing(make_environment) -> Environment:
    """The tools of a model that sees; it may ask this machine."""
    return make_environment(model_is_vision=True, image_hosts=["127.0.0.1"])


async def read(environment: Environment, source: Any, **more: Any) -> Called:
    return await call(environment, "read_image", {"source": source}, **more)


def tools_of(environment: Environment) -> set[str]:
    return {tool["name"] for tool in environment.tool_list()}


def pixels_of(called: Called) -> bytes:
    (image,) = called.complete.images
    return base64.b64decode(image.partition(",")[2])


# Which tool, and what it takes


def test_model_that_sees_gets_read_image_and_others_describe_image(make_environment):
    seeing = tools_of(make_environment(model_is_vision=True))
    blind = tools_of(make_environment())

    assert "read_image" in seeing and "describe_image" not in seeing
    assert "describe_image" in blind and "read_image" not in blind


async def test_image_of_the_workspace_is_attached_with_a_short_text(seeing, workspace):
    (workspace / "shots").mkdir()
    (workspace / "shots" / "a.png").write_bytes(PNG)

    called = await read(seeing, "shots/a.png")

    assert called.stop_reason is StopReason.COMPLETED
    assert called.complete.images[0].startswith("data:image/png;base64,")
    assert pixels_of(called) == PNG
    assert "PNG image, 37 × 21 pixels" in called.output
    assert "shots/a.png" in called.output
    assert len(called.output) < 100
    assert called.details["image"]["size"] == len(PNG)


@pytest.mark.parametrize("kind", ["JPEG", "GIF", "WEBP"])
async def test_other_types_are_taken_too(seeing, workspace, kind):
    (workspace / "image").write_bytes(picture(kind, (37, 21)))

    called = await read(seeing, "image")

    assert called.complete.images[0].startswith(f"data:image/{kind.lower()};base64,")


async def test_type_comes_from_the_bytes_and_not_from_the_name(seeing, workspace):
    (workspace / "photo.jpg").write_bytes(PNG)

    called = await read(seeing, "photo.jpg")

    assert called.complete.images[0].startswith("data:image/png;base64,")


@pytest.mark.parametrize("where", ["absolute", "a link"])
async def test_file_may_be_named_in_any_way_that_stays_inside(seeing, workspace, where):
    (workspace / "a.png").write_bytes(PNG)
    (workspace / "link.png").symlink_to(workspace / "a.png")
    source = str(workspace / "a.png") if where == "absolute" else "link.png"

    called = await read(seeing, source)

    assert called.stop_reason is StopReason.COMPLETED


async def test_file_of_exactly_five_megabytes_is_taken(seeing, workspace):
    (workspace / "large.png").write_bytes(padded(PNG, MAX_BYTES))

    called = await read(seeing, "large.png")

    assert called.stop_reason is StopReason.COMPLETED
    assert len(pixels_of(called)) == 5 * 1024 * 1024


async def test_one_byte_more_is_too_large(seeing, workspace):
    (workspace / "large.png").write_bytes(padded(PNG, MAX_BYTES + 1))

    failed_with(await read(seeing, "large.png"), "large.png", "too large", "5 MB")


# What is no image


@pytest.mark.parametrize("body", [picture("BMP"), b"<svg xmlns='x'/>", b"hello"])
async def test_other_file_is_refused_with_the_four_types(seeing, workspace, body):
    (workspace / "a.png").write_bytes(body)

    called = await read(seeing, "a.png")

    failed_with(called, "a.png", "PNG", "JPEG", "GIF", "WebP")


async def test_signature_alone_makes_no_image(seeing, workspace):
    (workspace / "a.png").write_bytes(PNG[:20])

    failed_with(await read(seeing, "a.png"), "a.png", "PNG", "cannot be read")


async def test_directory_is_not_a_file(seeing, workspace):
    (workspace / "images").mkdir()

    failed_with(await read(seeing, "images"), "not a file but a directory")


async def test_pipe_is_not_a_file_and_is_not_opened(seeing, workspace):
    os.mkfifo(workspace / "pipe.png")

    failed_with(await read(seeing, "pipe.png"), "not a file")


async def test_missing_file_is_named(seeing):
    failed_with(await read(seeing, "gone.png"), "gone.png", "does not exist")


async def test_empty_file_is_called_empty(seeing, workspace):
    (workspace / "a.png").touch()

    failed_with(await read(seeing, "a.png"), "a.png is empty")


@pytest.mark.parametrize("arguments", [{}, {"source": ""}, {"source": 7}])
async def test_source_that_is_no_text_is_named(seeing, arguments):
    failed_with(await call(seeing, "read_image", arguments), "source")


@pytest.mark.parametrize("source", ["  ", "a\0b.png", "x" * 5000])
async def test_source_that_is_no_path_fails_with_words(seeing, source):
    failed_with(await read(seeing, source), "[tool error]")


@pytest.mark.parametrize("source", ["../a.png", "/dev/zero", "/etc/passwd", "out.png"])
async def test_nothing_outside_of_the_workspace_is_read(seeing, workspace, source):
    (workspace.parent / "a.png").write_bytes(PNG)
    (workspace / "out.png").symlink_to(workspace.parent / "a.png")

    failed_with(await read(seeing, source), "outside of the workspace")


async def test_link_in_a_circle_fails_with_words(seeing, workspace):
    (workspace / "a.png").symlink_to("b.png")
    (workspace / "b.png").symlink_to("a.png")

    failed_with(await read(seeing, "a.png"), "a.png")


@pytest.mark.parametrize(
    "source", ["file:///etc/passwd", "ftp://a/b.png", "data:image/png;base64,AA"]
)
async def test_other_schemes_are_refused(seeing, source):
    failed_with(await read(seeing, source), source.partition(":")[0])


# Pixels


@pytest.mark.parametrize("size", [(9600, 7700), (8001, 1), (1, 8001), (8000, 6251)])
async def test_too_many_pixels_are_refused_by_name(seeing, workspace, size):
    (workspace / "wide.png").write_bytes(png_that_says(*size))

    called = await read(seeing, "wide.png")

    failed_with(called, "wide.png", f"{size[0]} × {size[1]}", "8000 × 8000")


@pytest.mark.parametrize("size", [(8000, 6250), (6250, 8000)])
def test_largest_allowed_size_is_taken(size):
    image = Image.from_bytes(png_that_says(*size), "wide.png")

    assert (image.width, image.height) == size


@pytest.mark.parametrize(
    "data",
    [
        png_that_says(2**31 - 1, 2**31 - 1),
        b"GIF89a" + b"\xff\xff\xff\xff" + bytes(20),
        b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff",
    ],
)
def test_bomb_is_refused_for_its_header_and_never_unpacked(data):
    with pytest.raises(ImageError, match="pixels"):
        Image.from_bytes(data, "bomb")


def test_frame_that_is_larger_than_its_canvas_counts():
    frame = b",\0\0\0\0" + (9000).to_bytes(2, "little") + b"\1\0\0\2\2D\1\0;"
    gif = b"GIF89a" + b"\1\0\1\0\0\0\0" + frame

    with pytest.raises(ImageError, match="9000 × 1 pixels"):
        Image.from_bytes(gif, "a.gif")


def test_bytes_of_any_origin_are_held_against_the_limit():
    assert Image.from_bytes(padded(PNG, MAX_BYTES), "a.png").size == MAX_BYTES
    with pytest.raises(ImageError, match="too large"):
        Image.from_bytes(padded(PNG, MAX_BYTES + 1), "a.png")


# The web


async def test_image_of_the_web_is_attached(seeing, web):
    called = await read(seeing, web.serve("/a.png", PNG))

    assert called.stop_reason is StopReason.COMPLETED
    assert pixels_of(called) == PNG
    assert web.url("/a.png") in called.output


async def test_image_without_a_content_type_is_told_by_its_bytes(seeing, web):
    called = await read(seeing, web.serve("/a", PNG, None))

    assert called.complete.images[0].startswith("data:image/png;base64,")


async def test_page_of_the_web_is_refused_by_its_type(seeing, web):
    called = await read(seeing, web.serve("/a.png", b"<html>", "text/html"))

    failed_with(called, "text/html")


@pytest.mark.parametrize("status", [404, 500])
async def test_status_of_an_answer_stands_in_the_text(seeing, web, status):
    web.pages["/a.png"] = lambda answer: answer.give(status, b"")

    failed_with(await read(seeing, web.url("/a.png")), str(status))


async def test_host_that_the_project_does_not_allow_is_not_asked(make_environment, web):
    environment = make_environment(model_is_vision=True)

    called = await read(environment, web.serve("/a.png", PNG))

    failed_with(called, "127.0.0.1", "loopback", "images.allowed_hosts")
    assert web.asked == []


async def test_slow_server_is_left_at_once_when_interrupted(seeing, web):
    web.pages["/a.png"] = lambda answer: answer.hang()
    signal = AbortSignal()
    loop = asyncio.get_running_loop()
    loop.call_later(0.2, signal.abort)
    began = loop.time()

    called = await read(seeing, web.url("/a.png"), signal=signal)

    assert called.stop_reason is StopReason.ABORTED
    assert called.output == "[interrupted: tool aborted by user]"
    assert loop.time() - began < 1  # the second an unwilling tool is given
    assert web.has_left.wait(5)


async def test_slow_server_is_left_when_the_time_is_up(make_environment, web):
    web.pages["/a.png"] = lambda answer: answer.hang()
    tools = [replace(tool, timeout_ms=400) for tool in default_tool_definitions()]
    environment = make_environment(
        tools, model_is_vision=True, image_hosts=["127.0.0.1"]
    )

    called = await read(environment, web.url("/a.png"))

    assert called.stop_reason is StopReason.TIMEOUT
    assert called.output == "[timeout: the tool did not end within 400 ms]"
