"""Keys are made once, whole, and for the server's user alone."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.exceptions import ImproperlyConfigured

from penguin_web.keys import key_text, make_key


def test_key_is_made_once_and_readable_by_its_owner_alone(tmp_path):
    path = tmp_path / "keys" / "secret_key"

    first = key_text("", path, name="SECRET_KEY_FILE")

    assert len(first) >= 50
    assert key_text("", path, name="SECRET_KEY_FILE") == first
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["secret_key"]


def test_starts_at_the_same_moment_agree_on_one_key(tmp_path):
    path = tmp_path / "secret_key"

    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(lambda _: _made(path), range(8)))

    assert len(set(keys)) == 1


def _made(path):
    make_key(path)
    return path.read_text()


@pytest.mark.parametrize("content", [None, " \n"])
def test_given_file_without_a_key_stops_the_start(tmp_path, content):
    path = tmp_path / "given"
    if content is not None:
        path.write_text(content)

    with pytest.raises(ImproperlyConfigured, match=f"SECRET_KEY_FILE: {path}"):
        key_text(str(path), tmp_path / "default", name="SECRET_KEY_FILE")
    assert not (tmp_path / "default").exists()


def test_given_file_wins(tmp_path):
    (tmp_path / "given").write_text("from the file\n")

    assert (
        key_text(str(tmp_path / "given"), tmp_path / "x", name="N") == "from the file"
    )
