"""Describes Telegram's service messages in words, such as a new title or a pinned message.

Source: the fields of the object "Message" in the documentation of the Bot API. The texts come from
the platform and from other people, so the words count as inserted, not as typed.
"""

from __future__ import annotations

from telegram import Message, User

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
        return f"Checklist: {insertion(tasks)}"
    if message.chat.type == "private":
        return ""
    event = _describe_members(message, me) or _describe_chat(message) or _describe_topic(message)
    return f"Group: {insertion(event)}" if event else ""


def _describe_tasks(message: Message) -> str:
    """Describe tasks of a checklist that were ticked, reopened or added."""
    if message.checklist_tasks_added is not None:
        tasks = message.checklist_tasks_added.tasks
        return f"added: {'; '.join(task.text for task in tasks)}"
    change = message.checklist_tasks_done
    if change is None:
        return ""
    names: dict[int, str] = {}
    if change.checklist_message is not None and change.checklist_message.checklist is not None:
        names = {task.id: task.text for task in change.checklist_message.checklist.tasks}
    parts = []
    for label, task_ids in (
        ("done", change.marked_as_done_task_ids),
        ("open again", change.marked_as_not_done_task_ids),
    ):
        if task_ids:
            tasks_named = (names.get(task_id, f"task {task_id}") for task_id in task_ids)
            parts.append(f"{label}: {'; '.join(tasks_named)}")
    return ". ".join(parts)


def _describe_members(message: Message, me: User) -> str:
    """Describe who joined or left.

    The bot's own arrival is left out, because the bot introduces itself.
    """
    joined = [user.full_name for user in message.new_chat_members if user != me]
    if joined:
        return f"{', '.join(joined)} joined"
    if message.left_chat_member is not None and message.left_chat_member != me:
        return f"{message.left_chat_member.full_name} left"
    return ""


def _describe_chat(message: Message) -> str:
    """Describe a new title, a pinned message, or a video chat."""
    if message.new_chat_title:
        return f"the new title is “{message.new_chat_title}”"
    if message.pinned_message is not None:
        pinned = message.pinned_message
        text = getattr(pinned, "text", None) or getattr(pinned, "caption", None)
        words = shorten(to_single_line(text), MAX_PINNED_CHARS) if text else "a message"
        return f"pinned: {words}"
    if message.video_chat_scheduled is not None:
        return f"video chat planned for {message.video_chat_scheduled.start_date:%d %B %Y %H:%M %Z}"
    if message.video_chat_started is not None:
        return "a video chat began"
    if message.video_chat_ended is not None:
        # The attribute `duration` is a number of seconds today and a timedelta later.
        minutes = round(message.video_chat_ended.to_dict()["duration"] / 60)
        return f"a video chat ended after {minutes} min"
    return ""


def _describe_topic(message: Message) -> str:
    """Describe that a topic was opened, renamed or closed."""
    if message.forum_topic_created is not None:
        return f"the topic “{message.forum_topic_created.name}” began"
    if message.forum_topic_edited is not None and message.forum_topic_edited.name:
        return f"the topic is now called “{message.forum_topic_edited.name}”"
    if message.forum_topic_closed is not None:
        return "the topic was closed"
    if message.forum_topic_reopened is not None:
        return "the topic was opened again"
    return ""
