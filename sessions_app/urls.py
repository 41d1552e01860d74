"""Addresses of the product's pages and of what people do on them."""

from __future__ import annotations

from django.urls import path

from sessions_app.views import (
    actions,
    attachments,
    chat,
    pages,
    preferences,
    session_list,
)

SESSION = "p/<slug:project>/s/<str:session>/"

urlpatterns = [
    path("", pages.home, name="home"),
    path("theme/", preferences.set_theme, name="set_theme"),
    path("p/<slug:project>/sessions/", session_list.session_list, name="session_list"),
    path("p/<slug:project>/sessions/new/", actions.session_new, name="session_new"),
    path("p/<slug:project>/approvals/", pages.approvals, name="approvals"),
    path("p/<slug:project>/settings/", pages.settings, name="settings"),
    path(SESSION, chat.chat, name="chat"),
    path(f"{SESSION}send/", actions.send, name="send"),
    path(f"{SESSION}attach/", attachments.attach, name="attach"),
    path(f"{SESSION}detach/", attachments.detach, name="detach"),
    path(
        f"{SESSION}attached/<int:image>/",
        attachments.attached_image,
        name="attached_image",
    ),
    path(f"{SESSION}stop/", actions.stop, name="stop"),
    path(f"{SESSION}decide/", actions.decide, name="decide"),
    path(f"{SESSION}mode/", actions.set_mode, name="set_mode"),
    path(f"{SESSION}draft/", actions.save_draft, name="save_draft"),
    path(f"{SESSION}recall/", actions.recall, name="recall"),
    path(f"{SESSION}retry/", actions.retry, name="retry"),
    path(f"{SESSION}compact/", actions.compact, name="compact"),
    path(f"{SESSION}kill/", actions.kill_process, name="kill_process"),
    path(f"{SESSION}input/", actions.send_input, name="send_input"),
    path(f"{SESSION}rename/", actions.rename, name="session_rename"),
    path(f"{SESSION}archive/", actions.archive, name="session_archive"),
    path(f"{SESSION}outputs/<int:seq>/", pages.output_file, name="output_file"),
]
