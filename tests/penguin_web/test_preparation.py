"""What is done once before serving is done again only when it must be."""

import os

import pytest
from django.conf import settings as site_settings
from django.core.management import call_command

from penguin_web import one_time_password, preparation


@pytest.fixture
def static(settings, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "page.css").write_text("a { color: red }")
    settings.STATICFILES_DIRS = [source]
    settings.STATIC_ROOT = tmp_path / "collected"
    settings.DATA_DIR = tmp_path
    settings.STORAGES = {
        **site_settings.STORAGES,
        "staticfiles": {
            "BACKEND": "servestatic.storage.CompressedManifestStaticFilesStorage"
        },
    }
    return source


def test_static_files_are_collected_when_one_changed(static, settings):
    preparation.collect_static()
    manifest = settings.STATIC_ROOT / "staticfiles.json"
    first = manifest.stat().st_mtime_ns

    preparation.collect_static()
    assert manifest.stat().st_mtime_ns == first

    (static / "page.css").write_text("a { color: blue }")
    os.utime(static / "page.css", ns=(1, 1))
    preparation.collect_static()
    assert manifest.stat().st_mtime_ns != first


def test_collected_files_have_names_that_change_with_them(static, settings):
    preparation.collect_static()

    names = [path.name for path in settings.STATIC_ROOT.glob("page.*.css")]
    assert len(names) == 1


def test_keys_are_there_before_anybody_needs_them(settings, tmp_path):
    settings.SECRETS_KEY_FILE = tmp_path / "secrets"
    settings.SIGNING_KEY_FILE = tmp_path / "signing.pem"

    preparation.make_keys()

    for path in (settings.SECRETS_KEY_FILE, settings.SIGNING_KEY_FILE):
        assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.django_db
def test_first_admin_is_made_once_and_printed_in_one_line(capsys, django_user_model):
    call_command("first_admin")
    printed = capsys.readouterr().out
    call_command("first_admin")

    name, _, password = printed.removeprefix("First admin: ").strip().partition(" / ")
    assert printed == f"First admin: admin / {password}\n"
    user = django_user_model.objects.get()
    assert (user.username, user.is_superuser) == (name, True)
    assert user.check_password(password)
    assert capsys.readouterr().out == ""


@pytest.mark.django_db
def test_nobody_is_made_beside_a_user_who_exists(capsys, django_user_model):
    django_user_model.objects.create_user("vera")

    call_command("first_admin")

    assert capsys.readouterr().out == ""
    assert django_user_model.objects.count() == 1


@pytest.mark.django_db
def test_one_time_password_is_told_until_it_is_changed_in_whatever_way(
    django_user_model,
):
    call_command("first_admin", verbosity=0)
    user = django_user_model.objects.get()
    assert one_time_password.is_one_time(user)

    user.set_password("my own penguin")
    user.save()

    assert not one_time_password.is_one_time(django_user_model.objects.get())
    assert not one_time_password.is_one_time(
        django_user_model.objects.create_user("vera", password="x")
    )
