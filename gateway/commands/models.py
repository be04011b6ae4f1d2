"""/model: shows which model answers in a conversation, and chooses another one."""

from __future__ import annotations

from collections.abc import Mapping

from core.errors import Refused
from core.types import Answer, Command, Scope
from gateway import texts
from gateway.commands.registry import CommandContext, load_specs, make_button
from gateway.services import Services

DEFAULT_WORD = "default"


class ModelCommands:
    specs = load_specs("model")

    def __init__(self, services: Services) -> None:
        self._options = services.settings.model
        self._has_model = services.settings.has_model
        self._conversations = services.conversations

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Show the model of the conversation, or set it.

        Raises Refused if there is no model, if the settings don't offer the model, or if this
        person may not choose it.
        """
        if not self._has_model:
            raise Refused(texts.MODEL_MISSING)
        name = command.arguments.strip()
        if not name:
            return self._show(context)
        return await self._choose(name, context)

    async def autocomplete(self, typed: str, scope: Scope) -> Mapping[str, str]:
        """Return the offered models whose names contain `typed`."""
        names = [name for name in self._options.offered_models if typed.lower() in name.lower()]
        return {name: name for name in names}

    def _show(self, context: CommandContext) -> Answer:
        """Name the model that answers here, with a button for each other one."""
        current = self._options.keep_name(context.session.model)
        others = [name for name in self._options.offered_models if name != current]
        text = texts.MODEL_SHOWN.format(model=current)
        if not others:
            return Answer(text=f"{text} {texts.NO_OTHER_MODEL}")
        if context.is_member:
            return Answer(text=text)
        buttons = tuple(make_button(name, "model", name) for name in others)
        listed = ", ".join(f"`/model {name}`" for name in others)
        return Answer(text=f"{text} {texts.OTHER_MODELS.format(models=listed)}", buttons=buttons)

    async def _choose(self, name: str, context: CommandContext) -> Answer:
        """Set the model of the conversation. Raises Refused if that isn't possible."""
        if context.is_member:
            raise Refused(texts.MODEL_BY_OWNER)
        model = self._find(name)
        await self._conversations.set_model(context.session.id, model, context.epoch)
        return Answer(text=texts.MODEL_SET.format(model=model))

    def _find(self, name: str) -> str:
        """Return the offered model that `name` means. The part before the slash may be left out.

        Raises Refused if none or several match.
        """
        offered = self._options.offered_models
        if name.lower() == DEFAULT_WORD:
            return self._options.chat
        if name in offered:
            return name
        matches = [model for model in offered if model.lower().endswith(f"/{name.lower()}")]
        if len(matches) != 1:
            listed = ", ".join(f"`{model}`" for model in offered)
            raise Refused(texts.MODEL_UNKNOWN.format(name=name[:60], models=listed))
        return matches[0]
