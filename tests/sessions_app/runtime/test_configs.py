"""Versions of documents: which is in force, and how a new one comes to be."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from sessions_app.config.documents import DocumentError, default_document
from sessions_app.models import Agent, ConfigVersion, Project
from sessions_app.runtime import configs

pytestmark = pytest.mark.django_db

PROJECT = "# mine\napproval: {mode: read-only}   # why not\n"
AGENT = "system_prompt: Work.\n"


@pytest.fixture
def agent(project: Project) -> Agent:
    return project.agents.get()


def test_first_start_makes_the_default_project(project: Project) -> None:
    config, number = configs.current(project)

    assert number == 1
    assert config.default_agent == "default_agent"
    assert [agent.name for agent in project.agents.all()] == ["default_agent"]
    assert config.default_model == "demo/demo"
    assert config.approval.mode == "always-ask"


def test_default_project_is_made_only_where_there_is_none() -> None:
    Project.objects.create(slug="mine")

    configs.ensure_default_project()

    assert [project.slug for project in Project.objects.all()] == ["mine"]


def test_default_agent_has_the_six_tools(agent: Agent) -> None:
    config, number = configs.current_agent(agent)

    assert number == 1
    assert len(config.tools) == 6
    assert config.max_turns == -1


def test_save_makes_a_version_that_is_in_force(project: Project, operator) -> None:
    version = configs.save(
        project, PROJECT, base_version=1, reason="less asking", user=operator
    )

    assert (version.number, version.author, version.reason) == (
        2,
        operator,
        "less asking",
    )
    config, number = configs.current(project)
    assert (config.approval.mode, number) == ("read-only", 2)


def test_text_comes_back_exactly_as_it_was_saved(project: Project) -> None:
    text = "approval:\r\n  mode:   'read-only'  # why\r\n\r\n\r\n"
    configs.save(project, text, base_version=1)

    assert configs.document_text(project) == (text, 2)


def test_old_version_stays_as_it_was(project: Project) -> None:
    configs.save(project, PROJECT, base_version=1)

    first = ConfigVersion.objects.get(project=project, agent=None, number=1)
    assert first.yaml == default_document("project")


def test_stale_base_is_refused_and_names_who_saved(project: Project, operator) -> None:
    configs.save(project, PROJECT, base_version=1, user=operator)

    with pytest.raises(
        configs.StaleBase, match="version 2 was saved by oskar"
    ) as caught:
        configs.save(project, "{}\n", base_version=1)

    assert caught.value.number == 2
    assert configs.document_text(project) == (PROJECT, 2)


@pytest.mark.parametrize("base", [-1, 0, 2])
def test_base_that_never_was_the_newest_is_refused(project: Project, base: int) -> None:
    with pytest.raises(configs.StaleBase):
        configs.save(project, PROJECT, base_version=base)


def test_faulty_document_is_never_saved(project: Project, agent: Agent) -> None:
    with pytest.raises(DocumentError):
        configs.save(project, "approval: {mode: none}\n", base_version=1)
    with pytest.raises(DocumentError):
        configs.save(agent, "max_turns: 1\n", base_version=1)

    assert ConfigVersion.objects.filter(number=2).count() == 0


def test_default_agent_must_exist(project: Project) -> None:
    with pytest.raises(DocumentError) as caught:
        configs.save(project, "\ndefault_agent: defaultagent\n", base_version=1)

    (problem,) = caught.value.problems
    assert (problem.line, problem.column, problem.path) == (2, 16, "default_agent")
    assert "did you mean default_agent?" in problem.message


def test_agent_and_project_count_their_versions_apart(
    project: Project, agent: Agent
) -> None:
    configs.save(agent, AGENT, base_version=1)
    configs.save(agent, AGENT, base_version=2)

    assert configs.config_version(agent) == {"project": 1, "agent": 3}


def test_earlier_agent_version_can_be_read(agent: Agent) -> None:
    configs.save(agent, AGENT, base_version=1)

    assert configs.agent_at(agent, 2).system_prompt == "Work."
    assert configs.agent_at(agent, 1).system_prompt.startswith("You are")
    with pytest.raises(ConfigVersion.DoesNotExist):
        configs.agent_at(agent, 3)


def test_project_without_a_version_has_the_factory_setting() -> None:
    project = Project.objects.create(slug="bare")
    agent = Agent.objects.create(project=project, name="worker")

    assert configs.current(project)[1] == 0
    assert configs.current_agent(agent)[1] == 0
    assert configs.current(project)[0].approval.mode == "always-ask"
    assert configs.save(agent, AGENT, base_version=0).number == 1


def test_entry_of_an_old_document_is_left_out_with_a_warning(agent: Agent) -> None:
    text = AGENT + "tools: {builtin: [{name: gone, description: x, parameters: {}}]}\n"
    ConfigVersion.objects.create(
        project=agent.project, agent=agent, number=2, yaml=text
    )

    config, number = configs.current_agent(agent)

    assert number == 2
    assert list(config.tools) == []
    assert [warning.path for warning in config.warnings] == ["tools.builtin[0].name"]


def test_new_project_gets_the_agent_its_document_names() -> None:
    text = "default_agent: coder\n"

    project = configs.create_project("beta", title="Beta", text=text)

    assert [agent.name for agent in project.agents.all()] == ["coder"]
    assert configs.document_text(project) == (text, 1)


def test_agent_with_an_impossible_name_is_refused(project: Project) -> None:
    with pytest.raises(ValidationError):
        configs.create_agent(project, "../up")
