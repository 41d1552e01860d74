"""What a browser loads: ours, small, unchanged, and from nowhere else."""

import gzip
import hashlib
import re
from pathlib import Path

import pytest
from django.template.loader import get_template

ROOT = Path(__file__).parent.parent
STATIC = ROOT / "static"
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SCRIPTS = sorted((STATIC / "js").glob("*.js"))
STYLES = sorted((STATIC / "css").glob("*.css"))
OWN = [*TEMPLATES, *SCRIPTS, *STYLES]
LONGEST_SCRIPT = 120
LONGEST_TEMPLATE = 60


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def zipped(*paths: Path) -> int:
    return sum(len(gzip.compress(path.read_bytes())) for path in paths)


def loaded_by(template: str) -> list[Path]:
    """Return the static files a page loads, those of its base included."""
    source = (ROOT / "templates" / template).read_text()
    files = [STATIC / path for path in re.findall(r"{% static '([^']+)' %}", source)]
    bases = re.findall(r"{% (?:extends|include) \"([^\"]+)\" %}", source)
    for base in bases:
        files += loaded_by(base)
    return files


def test_vendored_files_are_those_of_the_list():
    listed = dict(
        re.findall(
            r"^\| `([^`]+)` \|.*`([0-9a-f]{64})` \|$",
            (STATIC / "vendor" / "README.md").read_text(),
            re.M,
        )
    )
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (STATIC / "vendor").glob("*.js")
    }

    assert found == listed
    for file in found:
        version = re.search(r"-(\d+\.\d+\.\d+)\.min\.js$", file)
        assert version
        assert (STATIC / "vendor" / f"{file[: -len('.min.js')]}.LICENSE.txt").exists()


@pytest.mark.parametrize("path", OWN, ids=name)
def test_nothing_is_loaded_from_another_site(path):
    text = path.read_text()

    assert not re.search(
        r"""(?:src|href|action|url\()\s*=?\s*["']?(?:https?:)?//""", text
    )
    assert "@import" not in text


@pytest.mark.parametrize("path", TEMPLATES, ids=name)
def test_template_holds_no_script_or_style_of_its_own(path):
    text = path.read_text()

    assert not re.search(r"<script(?![^>]* src=)", text)
    assert "<style" not in text
    assert not re.search(r"\sstyle=", text)
    assert not re.search(r"\son[a-z]+=", text)
    assert "|safe" not in text


@pytest.mark.parametrize("path", TEMPLATES, ids=name)
def test_template_is_short_and_sound(path):
    assert len(path.read_text().splitlines()) <= LONGEST_TEMPLATE

    get_template(str(path.relative_to(ROOT / "templates")))


@pytest.mark.parametrize("path", TEMPLATES, ids=name)
def test_every_form_that_posts_carries_the_token(path):
    for form in re.findall(
        r"<form[^>]*method=\"post\".*?</form>", path.read_text(), re.S
    ):
        assert "{% csrf_token %}" in form


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_script_is_short_and_says_what_it_is_for(path):
    text = path.read_text()

    assert text.startswith("// ")
    assert len(text.splitlines()) <= LONGEST_SCRIPT
    assert ".innerHTML" not in text
    assert "eval(" not in text


@pytest.mark.parametrize("path", STYLES, ids=name)
def test_style_says_what_it_is_for_and_forces_nothing(path):
    text = path.read_text()

    assert text.startswith("/* ")
    assert "!important" not in text
    assert text.count("{") == text.count("}")


def test_every_icon_that_is_named_is_in_the_sprite():
    sprite = (ROOT / "templates" / "partials" / "sprite.html").read_text()
    drawn = set(re.findall(r'<symbol id="i-([a-z]+)"', sprite))
    sources = [*TEMPLATES, *(ROOT / "traces_app").glob("*.py")]
    named = {
        icon
        for path in sources
        for icon in re.findall(
            r'(?:{% icon(?:_named)? |"icon": )"([a-z]+)"', path.read_text()
        )
    }

    assert named
    assert named <= drawn


def test_chat_loads_little_script():
    scripts = [
        path for path in loaded_by("sessions_app/chat.html") if path.suffix == ".js"
    ]
    scripts.append(STATIC / "js" / "live-text.js")  # imported by another

    assert len(scripts) > 10
    assert zipped(*scripts) < 40_000


def test_login_page_is_light():
    files = loaded_by("registration/login.html")
    sprite = (ROOT / "templates" / "partials" / "sprite.html").stat().st_size

    assert not [path for path in files if path.suffix == ".js"]
    assert zipped(*files) + sprite < 40_000
