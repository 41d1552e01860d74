"""The Django admin: documents become versions, nobody is overwritten unseen."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from sessions_app import tokens
from sessions_app.models import Agent, ApiToken, ConfigVersion, Membership, Project
from sessions_app.runtime import configs

pytestmark = pytest.mark.django_db

NO_MEMBERS = {
    "memberships-TOTAL_FORMS": "0",
    "memberships-INITIAL_FORMS": "0",
}
READ_ONLY = [
    "session",
    "approvalrequest",
    "configversion",
    "commandsession",
    "owner",
    "queuedmessage",
    "artifact",
]


@pytest.fixture
def root(client: Client) -> User:
    user = User.objects.create_superuser("root")
    client.force_login(user)
    return user


def address(row: Project | Agent | Membership) -> str:
    name = type(row)._meta.model_name
    return reverse(f"admin:sessions_app_{name}_change", args=[row.pk])


def form_of(client: Client, url: str) -> dict[str, str]:
    response = client.get(url)
    assert response.status_code == 200
    form = response.context["adminform"].form
    return {name: form[name].value() or "" for name in form.fields} | NO_MEMBERS


def errors(response) -> str:
    assert response.status_code == 200
    return str(response.context["errors"])


def test_changed_document_becomes_a_version(client, root, project) -> None:
    data = form_of(client, address(project))
    data |= {"yaml": "approval: {mode: read-only}\r\n# end\r\n", "reason": "trust"}

    response = client.post(address(project), data)

    assert response.status_code == 302
    version = ConfigVersion.objects.get(project=project, agent=None, number=2)
    assert version.yaml == "approval: {mode: read-only}\n# end\n"
    assert (version.author, version.reason) == (root, "trust")


def test_untouched_document_makes_no_version(client, root, project) -> None:
    data = form_of(client, address(project)) | {"title": "Renamed"}
    data["yaml"] = data["yaml"].replace("\n", "\r\n")

    assert client.post(address(project), data).status_code == 302

    project.refresh_from_db()
    assert project.title == "Renamed"
    assert configs.document_text(project)[1] == 1


def test_faulty_document_is_refused_with_line_and_column(client, root, project) -> None:
    data = form_of(client, address(project)) | {"yaml": "\napprovl: {}\n"}

    response = client.post(address(project), data)

    assert "Line 2, column 1: approvl: unknown key" in errors(response)
    assert configs.document_text(project)[1] == 1
    assert b"approvl: {}" in response.content


def test_stale_document_is_refused_once_and_nothing_is_lost(
    client, root, project
) -> None:
    data = form_of(client, address(project)) | {
        "yaml": "default_agent: default_agent\n"
    }
    configs.save(project, "{}\n", base_version=1, user=root)

    refused = client.post(address(project), data)

    assert "Version 2 was saved by root" in errors(refused)
    assert b"default_agent: default_agent" in refused.content
    assert configs.document_text(project) == ("{}\n", 2)

    again = form_of_refused(refused)
    assert client.post(address(project), again).status_code == 302
    assert configs.document_text(project) == ("default_agent: default_agent\n", 3)


def form_of_refused(response) -> dict[str, str]:
    form = response.context["adminform"].form
    return {name: form[name].value() or "" for name in form.fields} | NO_MEMBERS


def test_stale_row_is_refused_once_and_nothing_is_lost(client, root, project) -> None:
    data = form_of(client, address(project)) | {"title": "Mine"}
    Project.objects.update(title="Theirs")

    refused = client.post(address(project), data)

    assert "Somebody changed this" in errors(refused)
    project.refresh_from_db()
    assert project.title == "Theirs"
    assert client.post(address(project), form_of_refused(refused)).status_code == 302
    project.refresh_from_db()
    assert project.title == "Mine"


def test_agent_document_is_edited_like_the_project_document(
    client, root, project
) -> None:
    agent = project.agents.get()
    data = form_of(client, address(agent)) | {"yaml": "system_prompt: ''\n"}
    assert "system_prompt: must not be empty" in errors(
        client.post(address(agent), data)
    )

    data["yaml"] = "system_prompt: Work.\n"
    assert client.post(address(agent), data).status_code == 302

    assert configs.document_text(agent) == ("system_prompt: Work.\n", 2)


def test_new_project_gets_document_and_agent(client, root) -> None:
    url = reverse("admin:sessions_app_project_add")
    data = form_of(client, url) | {"slug": "beta", "title": "Beta"}

    assert client.post(url, data).status_code == 302

    project = Project.objects.get(slug="beta")
    assert configs.current(project)[1] == 1
    assert [agent.name for agent in project.agents.all()] == ["default_agent"]


def test_new_agent_gets_its_document(client, root, project) -> None:
    url = reverse("admin:sessions_app_agent_add")
    data = form_of(client, url) | {"project": str(project.pk), "name": "coder"}

    assert client.post(url, data).status_code == 302

    assert configs.current_agent(project.agents.get(name="coder"))[1] == 1


def test_slug_stays_what_records_and_addresses_hold(client, root, project) -> None:
    data = form_of(client, address(project)) | {"slug": "other"}

    client.post(address(project), data)

    project.refresh_from_db()
    assert project.slug == "default"


def test_role_is_given_beside_the_project(client, root, project) -> None:
    user = User.objects.create_user("ann")
    data = form_of(client, address(project)) | {
        "memberships-TOTAL_FORMS": "1",
        "memberships-0-user": str(user.pk),
        "memberships-0-role": "viewer",
        "memberships-0-project": str(project.pk),
    }

    assert client.post(address(project), data).status_code == 302

    assert Membership.objects.get().role == "viewer"


def test_stale_membership_is_refused(client, root, project) -> None:
    user = User.objects.create_user("ann")
    row = Membership.objects.create(project=project, user=user, role="viewer")
    data = form_of(client, address(row)) | {"role": "operator"}
    Membership.objects.update(role="auditor")

    assert "Somebody changed this" in errors(client.post(address(row), data))
    assert Membership.objects.get().role == "auditor"


def test_token_is_shown_once_and_stored_hashed(client, root, project) -> None:
    url = reverse("admin:sessions_app_apitoken_add")
    response = client.post(
        url, {"user": str(root.pk), "project": "", "scope": ""}, follow=True
    )

    text = re.search(r"penguin_[\w-]+", response.content.decode())
    assert text is not None
    row = tokens.find(text.group())
    assert row is not None
    page = client.get(reverse("admin:sessions_app_apitoken_change", args=[row.pk]))
    assert row.sha256.encode() not in page.content
    assert text.group().encode() not in page.content


def test_token_of_an_unknown_scope_is_refused(client, root) -> None:
    url = reverse("admin:sessions_app_apitoken_add")

    response = client.post(url, {"user": str(root.pk), "project": "", "scope": "x"})

    assert "scope" in response.context["adminform"].form.errors
    assert not ApiToken.objects.exists()


def test_token_is_revoked_from_the_list(client, root) -> None:
    row, text = tokens.issue(root)
    url = reverse("admin:sessions_app_apitoken_changelist")

    client.post(url, {"action": "revoke", "_selected_action": [str(row.pk)]})

    assert tokens.find(text) is None
    assert ApiToken.objects.get().revoked_at is not None


@pytest.mark.parametrize("name", READ_ONLY)
def test_record_can_be_looked_at_but_not_written(client, root, project, name) -> None:
    assert (
        client.get(reverse(f"admin:sessions_app_{name}_changelist")).status_code == 200
    )
    assert client.get(reverse(f"admin:sessions_app_{name}_add")).status_code == 403


def test_version_cannot_be_changed_or_deleted(client, root, project) -> None:
    version = ConfigVersion.objects.filter(agent=None).get()
    for page in ("change", "delete"):
        url = reverse(f"admin:sessions_app_configversion_{page}", args=[version.pk])
        assert client.post(url, {"yaml": "x", "post": "yes"}).status_code == 403

    version.refresh_from_db()
    assert version.number == 1


@pytest.mark.parametrize("name", ["project", "agent"])
def test_what_records_name_cannot_be_deleted(client, root, project, name) -> None:
    row = project if name == "project" else project.agents.get()
    url = reverse(f"admin:sessions_app_{name}_delete", args=[row.pk])

    assert client.post(url, {"post": "yes"}).status_code == 403


@pytest.mark.parametrize(
    "name", [*READ_ONLY, "project", "agent", "membership", "apitoken"]
)
def test_list_costs_a_bounded_number_of_queries(
    client, root, project, name, django_assert_max_num_queries
) -> None:
    with django_assert_max_num_queries(10):
        client.get(reverse(f"admin:sessions_app_{name}_changelist"), {"q": "x"})


def test_member_without_staff_status_gets_the_login_page(client, operator) -> None:
    client.force_login(operator)

    response = client.get(reverse("admin:sessions_app_project_changelist"))

    assert response.status_code == 302
