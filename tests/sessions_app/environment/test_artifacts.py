"""The file that holds the whole output of a call."""

import hashlib

import pytest

from sessions_app.environment import artifacts
from sessions_app.environment.artifacts import (
    HEAD_LENGTH,
    TAIL_LENGTH,
    ArtifactFolder,
    Spool,
)


@pytest.fixture
def folder(tmp_path):
    return ArtifactFolder(tmp_path / "artifacts")


async def content_of(spool: Spool) -> str:
    artifact = await spool.artifact()
    data = artifact.path.read_bytes()
    assert artifact.size == len(data)
    assert artifact.sha256 == hashlib.sha256(data).hexdigest()
    return data.decode()


async def test_small_text_is_written_when_it_is_asked_for(folder, tmp_path):
    spool = Spool(folder, "proc-1")
    spool.write("text")
    assert not (tmp_path / "artifacts").exists()

    assert await content_of(spool) == "text"


async def test_file_grows_with_the_text(folder):
    spool = Spool(folder, "proc-1")
    spool.write("one ")
    await content_of(spool)
    spool.write("two")

    assert await content_of(spool) == "one two"


async def test_nothing_written_is_an_empty_file(folder):
    assert await content_of(Spool(folder, "proc-1")) == ""


async def test_head_and_tail_meet_without_a_gap(folder):
    spool = Spool(folder, "proc-1")
    spool.write("h" * HEAD_LENGTH)
    spool.write("t" * TAIL_LENGTH)

    artifact = await spool.artifact()

    assert artifact.missing == 0
    assert artifact.size == HEAD_LENGTH + TAIL_LENGTH


async def test_middle_that_is_missing_is_counted(folder):
    spool = Spool(folder, "proc-1")
    spool.write("h" * HEAD_LENGTH + "é" * 5)
    for _ in range(9):
        spool.write("t" * 1024 * 1024)

    content = await content_of(spool)

    missing = 5 + 1024 * 1024
    gap = f"\n[{missing} characters missing here]\n"
    assert content == "h" * HEAD_LENGTH + gap + "t" * TAIL_LENGTH


async def test_tail_is_replaced_when_the_text_went_on(folder):
    spool = Spool(folder, "proc-1")
    spool.write("h" * HEAD_LENGTH + "first tail")
    await content_of(spool)
    spool.write("x" * TAIL_LENGTH)

    content = await content_of(spool)

    gap = "\n[10 characters missing here]\n"
    assert content[HEAD_LENGTH:] == gap + "x" * TAIL_LENGTH


async def test_named_file_stays_when_the_rest_is_forgotten(folder, tmp_path):
    spool = Spool(folder, "proc-1")
    spool.write("text")
    artifact = await spool.artifact()

    spool.discard()
    spool.write("more")

    assert artifact.path.read_text() == "text"
    assert await spool.artifact() is None


async def test_file_nobody_knows_goes(folder, tmp_path):
    spool = Spool(folder, "proc-1")
    spool.write("x" * 300_000)
    assert len(list((tmp_path / "artifacts").iterdir())) == 1

    spool.discard()

    assert list((tmp_path / "artifacts").iterdir()) == []


async def test_file_that_is_already_there_is_not_overwritten(folder, tmp_path):
    path = tmp_path / "artifacts" / "proc-1.txt"
    path.parent.mkdir()
    path.write_text("somebody else's")
    spool = Spool(folder, "proc-1")
    spool.write("text")

    assert await spool.artifact() is None
    assert path.read_text() == "somebody else's"


async def test_folder_that_vanishes_gives_no_artifact(folder, tmp_path):
    spool = Spool(folder, "proc-1")
    spool.write("h" * HEAD_LENGTH + "tail")
    artifact = await spool.artifact()
    artifact.path.unlink()

    assert await spool.artifact() is None


async def test_removed_folder_is_not_made_again():
    folder = ArtifactFolder(None)
    folder.remove_own()

    assert await Spool(folder, "proc-1").artifact() is None


def test_length_of_a_path_is_known_before_there_is_one(tmp_path):
    for folder in (ArtifactFolder(tmp_path), ArtifactFolder(None)):
        path = folder.new_file(artifacts.new_stem("proc"))
        assert folder.path_length == len(str(path))
        folder.remove_own()
