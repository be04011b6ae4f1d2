"""Describes Telegram's service messages in words, such as a new title or a pinned message.

Source: the fields of the object "Message" in the documentation of the Bot API. The texts come from
the platform and from other people, so the words count as inserted, not as typed.
"""

from __future__ import annotations

from telegram import Message, User

from core.errors import word_clause
from core.guard.origin_and_fence import insertion
from core.text.normalize import shorten, to_single_line

MAX_PINNED_CHARS = 300


def describe_service_message(message: Message, me: User) -> str:
    """Return a description of a service message: "Group: {Ana joined}".

    Changes of a checklist are described in every chat. Other kinds are described in groups only,
    because in a direct chat the person made the change. For kinds that needn't be stored, the
    result is "".
    """
    tasks = _describe_tasks(message)
    if tasks:
        return word_clause("inserted_checklist", content=insertion(tasks))
    if message.chat.type == "private":
        return ""
    event = _describe_members(message, me) or _describe_chat(message) or _describe_topic(message)
    return word_clause("inserted_group", content=insertion(event)) if event else ""


def _describe_tasks(message: Message) -> str:
    """Describe tasks of a checklist that were ticked, reopened or added."""
    if message.checklist_tasks_added is not None:
        tasks = message.checklist_tasks_added.tasks
        return word_clause("event_tasks_added", tasks="; ".join(task.text for task in tasks))
    change = message.checklist_tasks_done
    if change is None:
        return ""
    names: dict[int, str] = {}
    if change.checklist_message is not None and change.checklist_message.checklist is not None:
        names = {task.id: task.text for task in change.checklist_message.checklist.tasks}
    parts = []
    for key, task_ids in (
        ("event_tasks_done", change.marked_as_done_task_ids),
        ("event_tasks_open", change.marked_as_not_done_task_ids),
    ):
        if task_ids:
            task_names = (names.get(task_id, f"#{task_id}") for task_id in task_ids)
            parts.append(word_clause(key, tasks="; ".join(task_names)))
    return ". ".join(parts)


def _describe_members(message: Message, me: User) -> str:
    """Describe who joined or left.

    The bot's own arrival is left out, because the bot introduces itself.
    """
    joined = [user.full_name for user in message.new_chat_members if user != me]
    if joined:
        return word_clause("event_joined", names=", ".join(joined))
    if message.left_chat_member is not None and message.left_chat_member != me:
        return word_clause("event_left", name=message.left_chat_member.full_name)
    return ""


def _describe_chat(message: Message) -> str:
    """Describe a new title, a pinned message, or a video chat."""
    if message.new_chat_title:
        return word_clause("event_renamed", title=message.new_chat_title)
    if message.pinned_message is not None:
        pinned = message.pinned_message
        text = getattr(pinned, "text", None) or getattr(pinned, "caption", None)
        if not text:
            return word_clause("event_pinned_file")
        return word_clause("event_pinned", text=shorten(to_single_line(text), MAX_PINNED_CHARS))
    if message.video_chat_scheduled is not None:
        starts_at = message.video_chat_scheduled.start_date
        return word_clause("event_video_planned", at=f"{starts_at:%d %B %Y %H:%M %Z}")
    if message.video_chat_started is not None:
        return word_clause("event_video_began")
    if message.video_chat_ended is not None:
        # The attribute `duration` is a number of seconds today and a timedelta later.
        minutes = round(message.video_chat_ended.to_dict()["duration"] / 60)
        return word_clause("event_video_ended", minutes=minutes)
    return ""


def _describe_topic(message: Message) -> str:
    """Describe that a topic was opened, renamed or closed."""
    if message.forum_topic_created is not None:
        return word_clause("event_topic_began", name=message.forum_topic_created.name)
    if message.forum_topic_edited is not None and message.forum_topic_edited.name:
        return word_clause("event_topic_renamed", name=message.forum_topic_edited.name)
    if message.forum_topic_closed is not None:
        return word_clause("event_topic_closed")
    if message.forum_topic_reopened is not None:
        return word_clause("event_topic_reopened")
    return ""
