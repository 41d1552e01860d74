"""What a browser sends to make a session."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict

from sessions_app.chat_view import MODEL_NAMES
from sessions_app.models import ApprovalMode, Project
from sessions_app.permissions import Action, mode_action
from sessions_app.runtime import configs
from sessions_app.runtime.sessions import LEVELS

MODE_HINTS = {
    "deny-all": "deny-all: nothing runs",
    "always-ask": "always-ask: you decide every call",
    "read-only": "read-only: reading runs, the rest asks",
    "allow-all": "allow-all: everything runs at once",
}


class NewSessionForm(forms.Form):
    """The wishes for a new session; its choices are the project's."""

    title = forms.CharField(required=False, max_length=200)
    agent = forms.ChoiceField()
    model = forms.ChoiceField()
    thinking_level = forms.ChoiceField(required=False)
    approval_mode = forms.ChoiceField()
    workspace = forms.CharField(required=False, max_length=4096)

    default_mode = ApprovalMode.ALWAYS_ASK.value

    @classmethod
    def of(cls, project: Project, posted: QueryDict | None) -> NewSessionForm:
        """Return the form with the project's agents and models on offer."""
        config, _version = configs.current(project)
        agents = list(project.agents.values_list("name", flat=True))
        initial = {
            "agent": config.default_agent,
            "model": config.default_model,
            "approval_mode": config.approval.mode,
        }
        form = cls(posted, initial=initial)
        form.default_mode = config.approval.mode
        form._offer("agent", {name: name for name in agents})
        names = [f"{entry.provider}/{entry.model_id}" for entry in config.models]
        form._offer("model", {name: MODEL_NAMES.get(name, name) for name in names})
        form._offer("approval_mode", MODE_HINTS)
        levels = {"": "as the agent says", **{level: level for level in LEVELS}}
        form._offer("thinking_level", levels)
        return form

    def _offer(self, name: str, choices: dict[str, str]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = list(choices.items())

    @property
    def loosens(self) -> bool:
        """Return whether the mode is more permissive than the project's default."""
        mode = self.cleaned_data["approval_mode"]
        return mode_action(self.default_mode, mode) is Action.LOOSEN_MODE

    def wish(self) -> dict[str, Any]:
        """Return the wishes as `runtime.create_session` takes them."""
        asked = dict(self.cleaned_data)
        for name in ("workspace", "thinking_level"):
            asked[name] = asked[name] or None
        return asked
