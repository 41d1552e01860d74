"""Logging in with the one-time password, changing it, logging out."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.fixture
def fresh(make_site, browser, make_page_of):
    """A page of a site that no other test changes the password of."""
    site = make_site()
    site.start()
    return site, make_page_of(site)


def test_one_time_password_is_pointed_out_until_it_is_changed(fresh):
    site, page = fresh
    notice = page.get_by_text("one-time password", exact=False)
    expect(notice).to_be_visible()

    page.goto("/password/")
    page.get_by_label("Old password").fill(site.password)
    page.get_by_label("New password", exact=True).fill("icy-penguin-42")
    page.get_by_label(re.compile("confirmation", re.I)).fill("icy-penguin-42")
    page.get_by_role("button", name="Change password").click()
    page.wait_for_url("**/password/done/")
    page.goto("/")

    expect(notice).to_have_count(0)


def test_wrong_password_says_so_and_lets_nobody_in(make_page):
    page = make_page(username="")
    page.goto("/login/")
    page.get_by_role("textbox", name="Username", exact=True).fill("admin")
    page.get_by_role("textbox", name="Password", exact=True).fill("wrong")
    page.get_by_role("button", name="Log in", exact=True).click()

    expect(page.get_by_role("alert")).to_contain_text("Wrong username or password")
    page.goto("/")
    expect(page).to_have_url(re.compile("/login/"))


def test_admin_pages_work_under_the_strict_policy(page):
    page.goto("/admin/")

    expect(page.get_by_role("link", name="Users")).to_be_visible()
    styled = page.evaluate(
        "getComputedStyle(document.querySelector('#header')).display"
    )
    assert styled == "flex"
