"""Fixtures for all tests: people, a project, a served site and a browser."""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from channels.layers import channel_layers
from playwright.sync_api import Browser, Page, sync_playwright

from tests import site as sites
from tests.site import Site

pytest_plugins = ["tests.append_only_flush"]

CHROMIUM_NAMES = ["chromium", "chromium-browser", "google-chrome"]
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NO_BROWSER = "No Chromium on this machine: NO BROWSER TEST WAS RUN."


@pytest.fixture(autouse=True)
def fresh_channel_layer() -> Iterator[None]:
    """An in-memory layer belongs to one event loop, and each test has its own."""
    yield
    channel_layers.backends = {}


@pytest.fixture
def project(db):
    """The project a new installation starts with."""
    from sessions_app import runtime
    from sessions_app.models import Project

    runtime.ensure_default_project()
    return Project.objects.get(slug="default")


@pytest.fixture
def make_member(project, django_user_model) -> Callable:
    """Make a user with roles in the project; without roles they see nothing of it."""
    from sessions_app.models import Membership

    def make(username: str, *roles: str):
        user = django_user_model.objects.create_user(username, password="penguin-pass")
        for role in roles:
            Membership.objects.create(project=project, user=user, role=role)
        return user

    return make


@pytest.fixture
def viewer(make_member):
    return make_member("vera", "viewer")


@pytest.fixture
def operator(make_member):
    return make_member("oskar", "operator")


@pytest.fixture
def approver(make_member):
    return make_member("anna", "approver")


@pytest.fixture
def auditor(make_member):
    return make_member("aldo", "auditor")


@pytest.fixture
def project_admin(make_member):
    return make_member("paula", "project_admin")


@pytest.fixture
def stranger(make_member):
    """A user who belongs to no project."""
    return make_member("stan")


@pytest.fixture(scope="session")
def installed_site(tmp_path_factory) -> Iterator[Site]:
    """An installation to copy from; it is never served."""
    site = sites.install(tmp_path_factory.mktemp("installed") / "site")
    yield site
    site.remove()


@pytest.fixture
def make_site(installed_site, tmp_path_factory) -> Iterator[Callable[..., Site]]:
    """Make installations that are not started yet; keywords are variables."""
    made: list[Site] = []

    def make(**variables: str) -> Site:
        folder = tmp_path_factory.mktemp("made") / "site"
        made.append(sites.copy(installed_site, folder, **variables))
        return made[-1]

    yield make
    for site in made:
        site.remove()


@pytest.fixture(scope="module")
def served(installed_site, tmp_path_factory) -> Iterator[Site]:
    """A served installation of the module's own; its tests may restart it."""
    site = sites.copy(installed_site, tmp_path_factory.mktemp("served") / "site")
    site.start()
    yield site
    site.remove()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium for one module: it holds the thread's event loop while it lives."""
    with sync_playwright() as playwright:
        name = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
        name = name or playwright.chromium.executable_path
        if not Path(name).exists():
            pytest.skip(NO_BROWSER)
        browser = playwright.chromium.launch(executable_path=name, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def make_page_of(browser) -> Iterator[Callable[..., Page]]:
    """Open pages on a site, each like a browser of its own; logged in if a name is given.

    When the test ends, none of them may have broken the content security policy or
    have thrown an error.
    """
    contexts = []
    problems: list[str] = []

    def watch_console(message) -> None:
        if "Content Security Policy" in message.text:
            problems.append(message.text)

    def make(site: Site, username: str | None = None, password: str = "", **more):
        context = browser.new_context(base_url=site.base_url, **more)
        contexts.append(context)
        context.set_default_timeout(15_000)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(f"thrown: {error}"))
        page.on("console", watch_console)
        if username != "":
            page.goto("/login/")
            fields = {
                "Username": username or site.username,
                "Password": password or site.password,
            }
            for name, text in fields.items():
                page.get_by_role("textbox", name=name, exact=True).fill(text)
            page.get_by_role("button", name="Log in", exact=True).click()
            page.wait_for_url(lambda url: "/login/" not in url)
        return page

    yield make
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def make_page(make_page_of, served) -> Callable[..., Page]:
    """Open pages on the served site; `username=""` for one who is not logged in."""
    return partial(make_page_of, served)


@pytest.fixture
def page(make_page) -> Page:
    """A page of the admin, logged in, at the address a login leads to."""
    return make_page()


def pytest_terminal_summary(terminalreporter) -> None:
    """Say loudly that the browser tests did not run."""
    skipped = terminalreporter.stats.get("skipped", [])
    if any(NO_BROWSER in str(report.longrepr) for report in skipped):
        terminalreporter.section(NO_BROWSER, sep="!", red=True, bold=True)
