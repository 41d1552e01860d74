"""Settings come from variables; wrong ones are told in a sentence."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from penguin_web.variables import Variables, usable_folder

NAME = "PENGUIN_TRIED_OUT"


@pytest.fixture
def read():
    return Variables(Path("no-such-file"))


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("Yes", True), ("off", False), ("", False)]
)
def test_flag_is_yes_or_no(read, monkeypatch, text, value):
    monkeypatch.setenv(NAME, text)

    assert read.flag(NAME) is value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("flag", "maybe"),
        ("number", "eighty"),
        ("number", "-1"),
        ("number", "70000"),
        ("number", "٣"),
        ("origins", "penguin.example.org"),
        ("origins", "ftp://penguin.example.org"),
        ("origins", "https://penguin.example.org/path"),
        ("database", "oracle://host/name"),
        ("database", "postgresql://user@host"),
    ],
)
def test_wrong_value_is_told_in_one_sentence_naming_the_variable(
    read, monkeypatch, kind, text
):
    monkeypatch.setenv(NAME, text)
    more = {
        "number": {"default": 8000, "low": 0, "high": 65535},
        "database": {"default": Path("x")},
    }

    with pytest.raises(ImproperlyConfigured) as caught:
        getattr(read, kind)(NAME, **more.get(kind, {}))

    assert NAME in str(caught.value)
    assert "\n" not in str(caught.value)


def test_wrong_database_address_is_told_without_its_password(read, monkeypatch):
    monkeypatch.setenv(NAME, "mysql://user:hunter2@host/name")

    with pytest.raises(ImproperlyConfigured) as caught:
        read.database(NAME, Path("x"))

    assert "hunter2" not in str(caught.value)


def test_database_defaults_to_the_file_and_knows_postgresql(read, monkeypatch):
    assert read.database(NAME, Path("/folder/penguin.sqlite3"))["NAME"] == (
        "/folder/penguin.sqlite3"
    )

    monkeypatch.setenv(NAME, "postgresql://user:secret@host:5433/penguin")

    found = read.database(NAME, Path("x"))
    assert (found["HOST"], found["PORT"], found["NAME"]) == ("host", 5433, "penguin")


def test_list_is_written_with_commas(read, monkeypatch):
    monkeypatch.setenv(NAME, " a.example , b.example,")

    assert read.names(NAME, ["localhost"]) == ["a.example", "b.example"]


def test_file_gives_what_the_process_was_not_given(tmp_path, monkeypatch):
    monkeypatch.setenv(NAME, "from the process")
    monkeypatch.delenv("PENGUIN_ONLY_IN_FILE", raising=False)
    file = tmp_path / ".env"
    file.write_text(f"{NAME}=from the file\nPENGUIN_ONLY_IN_FILE=from the file\n")

    read = Variables(file)

    assert read.text(NAME) == "from the process"
    assert read.text("PENGUIN_ONLY_IN_FILE") == "from the file"
    monkeypatch.delenv("PENGUIN_ONLY_IN_FILE")


def test_folder_that_cannot_be_made_is_told_with_the_remedy(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(ImproperlyConfigured, match="set PENGUIN_DATA_DIR to a folder"):
        usable_folder(tmp_path / "file" / "data", name="PENGUIN_DATA_DIR")


def test_usable_folder_is_private_and_left_clean(tmp_path):
    folder = usable_folder(tmp_path / "data", name="PENGUIN_DATA_DIR")

    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(folder.iterdir()) == []
