"""The role table, and everything that answers from it."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.http import Http404

from sessions_app.models import Membership, Project, Role
from sessions_app.permissions import (
    Action,
    confine,
    forget,
    may,
    mode_action,
    project_for,
    projects_of,
    require,
    session_for,
    trace_for,
)
from traces_app.models import Trace

pytestmark = pytest.mark.django_db

TABLE = {
    Role.VIEWER: {Action.READ},
    Role.OPERATOR: {Action.READ, Action.OPERATE, Action.TIGHTEN_MODE},
    Role.APPROVER: {
        Action.READ,
        Action.OPERATE,
        Action.DECIDE,
        Action.LOOSEN_MODE,
        Action.TIGHTEN_MODE,
    },
    Role.CONFIG_EDITOR: {Action.READ, Action.EDIT_CONFIG},
    Role.AUDITOR: {Action.READ, Action.AUDIT},
    Role.PROJECT_ADMIN: set(Action),
}


@pytest.fixture
def project() -> Project:
    return Project.objects.create(slug="acme")


def member(project: Project, *roles: Role, name: str = "ann") -> User:
    user = User.objects.create_user(name)
    for role in roles:
        Membership.objects.create(project=project, user=user, role=role)
    return user


@pytest.mark.parametrize("role", list(Role))
def test_role_allows_what_the_table_says(project: Project, role: Role) -> None:
    user = member(project, role)

    assert {action for action in Action if may(user, action, project)} == TABLE[role]


def test_roles_of_one_person_add_up(project: Project) -> None:
    user = member(project, Role.CONFIG_EDITOR, Role.AUDITOR)

    assert may(user, Action.EDIT_CONFIG, project)
    assert may(user, Action.AUDIT, project)
    assert not may(user, Action.OPERATE, project)


def test_role_counts_in_its_own_project_only(project: Project) -> None:
    other = Project.objects.create(slug="beta")
    user = member(project, Role.PROJECT_ADMIN)

    assert not may(user, Action.READ, other)
    assert list(projects_of(user)) == [project]


def test_superuser_may_everything_everywhere(project: Project) -> None:
    user = User.objects.create_superuser("root")

    assert all(may(user, action, project) for action in Action)
    assert list(projects_of(user)) == [project]


@pytest.mark.parametrize("is_superuser", [False, True])
def test_inactive_user_may_nothing(project: Project, is_superuser: bool) -> None:
    user = member(project, Role.PROJECT_ADMIN)
    user.is_active, user.is_superuser = False, is_superuser

    assert not any(may(user, action, project) for action in Action)
    assert list(projects_of(user)) == []


def test_anonymous_may_nothing(project: Project) -> None:
    assert not may(AnonymousUser(), Action.READ, project)
    assert list(projects_of(AnonymousUser())) == []


def test_project_of_others_does_not_exist(project: Project) -> None:
    stranger = User.objects.create_user("eve")

    with pytest.raises(Http404):
        require(stranger, Action.READ, project)
    with pytest.raises(Http404):
        project_for(stranger, Action.READ, "no-such-project")


def test_member_without_the_role_is_refused(project: Project) -> None:
    user = member(project, Role.VIEWER)

    with pytest.raises(PermissionDenied):
        project_for(user, Action.OPERATE, "acme")


def test_missing_session_and_trace_do_not_exist() -> None:
    user = User.objects.create_superuser("root")

    with pytest.raises(Http404):
        session_for(user, Action.READ, "session-none")
    with pytest.raises(Http404):
        trace_for(user, Action.READ, "session-none")


def test_confined_superuser_sees_one_project(project: Project) -> None:
    Project.objects.create(slug="beta")
    user = User.objects.create_superuser("root")

    confine(user, "acme")

    assert may(user, Action.READ, "acme")
    assert not may(user, Action.READ, "beta")
    assert list(projects_of(user)) == [project]


def test_roles_are_read_once_until_forgotten(
    project: Project, django_assert_num_queries
) -> None:
    user = member(project, Role.VIEWER)
    with django_assert_num_queries(1):
        may(user, Action.READ, project)
        may(user, Action.DECIDE, project)
    Membership.objects.all().delete()

    assert may(user, Action.READ, project)
    forget(user)
    assert not may(user, Action.READ, project)


@pytest.mark.parametrize(
    ("old", "new", "action"),
    [
        ("deny-all", "always-ask", Action.LOOSEN_MODE),
        ("always-ask", "read-only", Action.LOOSEN_MODE),
        ("read-only", "allow-all", Action.LOOSEN_MODE),
        ("allow-all", "read-only", Action.TIGHTEN_MODE),
        ("always-ask", "deny-all", Action.TIGHTEN_MODE),
        ("always-ask", "always-ask", Action.TIGHTEN_MODE),
    ],
)
def test_change_of_mode_loosens_or_tightens(old: str, new: str, action: Action) -> None:
    assert mode_action(old, new) == action


@pytest.mark.parametrize(
    ("role", "granted"),
    [
        (Role.VIEWER, {"view_trace"}),
        (Role.AUDITOR, {"view_trace", "export_trace", "verify_trace", "add_trace"}),
        (
            Role.PROJECT_ADMIN,
            {"view_trace", "export_trace", "verify_trace", "add_trace", "erase_trace"},
        ),
    ],
)
def test_django_permission_of_a_trace_follows_the_role(
    project: Project, role: Role, granted: set[str]
) -> None:
    user = member(project, role)
    trace = Trace.objects.create(session_id="session-1", project="acme")
    names = ["view", "export", "verify", "add", "erase", "change", "delete"]

    held = {
        f"{name}_trace"
        for name in names
        if user.has_perm(f"traces_app.{name}_trace", trace)
    }

    assert held == granted


def test_django_permission_without_a_trace_is_not_ours(project: Project) -> None:
    user = member(project, Role.PROJECT_ADMIN)

    assert not user.has_perm("traces_app.view_trace")
    assert not user.has_perm("traces_app.view_trace", project)
