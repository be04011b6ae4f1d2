"""Sets the models of a conversation, and the tools that a person allows: /model and /tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from config.model_options import Ability
from core.errors import Refused
from core.text.normalize import comparison_form, is_unspaced
from core.tools.switches import CALENDAR, WEB, find_tool_group
from core.types import Account, Answer, Button, Command, Scope, Tool
from gateway.commands.registry import CommandContext, load_specs, make_button, split_action
from gateway.services import Services
from gateway.texts.catalog import Texts

DEFAULT_WORD = "default"
HELPER_WORD = "helper"


class ModelCommands:
    specs = load_specs("model")
    suggests = ("models",)

    def __init__(self, services: Services) -> None:
        self._options = services.settings.model
        self._has_model = services.settings.has_model
        self._conversations = services.conversations
        self._limits = services.model_limits
        self._outages = services.model_outages
        self._helper_choices = services.helper_choices

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Show the models of the conversation, or set one of them.

        Raises Refused if no model is configured, if the settings don't offer the model, or if this
        person may not choose it.
        """
        texts = context.texts
        if not self._has_model:
            raise Refused(texts.MODEL_MISSING)
        name = command.arguments.strip()
        if not name:
            return await self._show(context)
        if context.is_member:
            raise Refused(texts.MODEL_BY_OWNER)
        first_word, helper_name = split_action(name)
        if first_word == HELPER_WORD:
            if not helper_name:
                return await self._show_helper(context)
            return await self._choose_helper(helper_name, context)
        return await self._choose(name, context)

    async def autocomplete(
        self, source: str, typed: str, scope: Scope, account: Account | None
    ) -> Mapping[str, str]:
        """Return the offered models whose names contain `typed`.

        Helpers have the form "helper NAME".
        """
        names = [*self._options.offered_models]
        helpers = self._options.offered_helpers
        if len(helpers) > 1:
            names += [f"{HELPER_WORD} {name}" for name in helpers]
        return {name: name for name in names if typed.lower() in name.lower()}

    async def _show(self, context: CommandContext) -> Answer:
        """Show this conversation's chat and helper models, with a button for each alternative."""
        texts = context.texts
        options = self._options
        current = options.keep_name(context.session.model)
        others = [name for name in options.offered_models if name != current]
        text = self._describe_model(current, context)
        lacks = await self._load_lacks(current)
        if lacks:
            names = ", ".join(texts.table("ABILITIES")[ability] for ability in sorted(lacks))
            text += f" {texts.MODEL_LACKS.format(abilities=names)}"
        helper = await self._load_helper(context)
        other_helpers = [name for name in options.offered_helpers if name != helper]
        if other_helpers:
            text += f" {texts.HELPER_SHOWN.format(model=helper)}"
        if not (others or other_helpers):
            return Answer(text=f"{text} {texts.NO_OTHER_MODEL}")
        if context.is_member:
            return Answer(text=text)
        buttons = [make_button(name, "model", name) for name in others]
        arguments = [*others, *(f"{HELPER_WORD} {name}" for name in other_helpers)]
        buttons += [_make_helper_button(texts, name) for name in other_helpers]
        listed = ", ".join(f"`/model {argument}`" for argument in arguments)
        text = f"{text} {texts.OTHER_MODELS.format(models=listed)}"
        return Answer(text=text, buttons=tuple(buttons))

    def _describe_model(self, name: str, context: CommandContext) -> str:
        """Return a sentence about the chat model.

        If the model fails, the sentence says why and which model answers instead.
        """
        texts = context.texts
        session = context.session
        conversation_id = session.root_id or session.id
        outage = self._outages.find(name, conversation_id)
        if outage is None:
            return texts.MODEL_SHOWN.format(model=name)
        text = texts.MODEL_OUT_OF_REACH.format(model=name, reason=texts.word(outage.reason))
        fallback = outage.answered_by.get(conversation_id)
        if fallback is not None:
            text += f" {texts.MODEL_STANDS_IN.format(model=fallback)}"
        return text

    async def _load_lacks(self, name: str) -> frozenset[Ability]:
        """Return the features that a model doesn't support.

        The settings list them, or the model's server has rejected requests that use them.
        """
        lacks = self._options.known_lacks(name)
        if self._options.has_all_abilities(name):
            return lacks
        return lacks | await self._limits.load_lacks(name)

    async def _show_helper(self, context: CommandContext) -> Answer:
        """Show the helper model of this conversation, with a button for each alternative."""
        texts = context.texts
        helper = await self._load_helper(context)
        others = [name for name in self._options.offered_helpers if name != helper]
        text = texts.HELPER_SHOWN.format(model=helper)
        if not others:
            return Answer(text=f"{text} {texts.NO_OTHER_HELPER}")
        listed = ", ".join(f"`/model {HELPER_WORD} {name}`" for name in others)
        text = f"{text} {texts.OTHER_MODELS.format(models=listed)}"
        return Answer(text=text, buttons=tuple(_make_helper_button(texts, name) for name in others))

    async def _load_helper(self, context: CommandContext) -> str:
        """Return the helper model of the conversation."""
        name = await self._helper_choices.find(context.session.id)
        if name is None or name not in self._options.offered_helpers:
            return self._options.helper
        return name

    async def _choose_helper(self, name: str, context: CommandContext) -> Answer:
        """Set the helper model of the conversation.

        Raises Refused if the settings don't offer it.
        """
        texts = context.texts
        if name.lower() == DEFAULT_WORD:
            await self._helper_choices.choose(context.session, None)
            return Answer(text=texts.HELPER_SET.format(model=self._options.helper))
        model = _find(texts, name, self._options.offered_helpers)
        await self._helper_choices.choose(context.session, model)
        return Answer(text=texts.HELPER_SET.format(model=model))

    async def _choose(self, name: str, context: CommandContext) -> Answer:
        """Set the chat model of the conversation. Raises Refused if that isn't possible."""
        texts = context.texts
        model = self._options.chat
        if name.lower() != DEFAULT_WORD:
            model = _find(texts, name, self._options.offered_models)
        await self._conversations.set_model(context.session.id, model, context.epoch)
        return Answer(text=texts.MODEL_SET.format(model=model))


def _make_helper_button(texts: Texts, name: str) -> Button:
    """Return a button that chooses a helper model."""
    return make_button(texts.HELPER_BUTTON.format(model=name), "model", f"{HELPER_WORD} {name}")


def _find(texts: Texts, name: str, offered: Sequence[str]) -> str:
    """Return the offered model with this name. The part before the slash may be left out.

    Raises Refused if no model matches, or more than one.
    """
    if name in offered:
        return name
    matches = [model for model in offered if model.lower().endswith(f"/{name.lower()}")]
    if len(matches) != 1:
        listed = ", ".join(f"`{model}`" for model in offered)
        raise Refused(texts.MODEL_UNKNOWN.format(name=name[:60], models=listed))
    return matches[0]


class ToolCommands:
    """Answers /tools, with which each person can switch web, calendar and MCP servers on and off.

    A tool that is switched off stays in the prompt, because removing it would invalidate the prompt
    cache. Calls of the tool are refused, and the model explains why.
    """

    specs = load_specs("tools")
    suggests = ("tools",)

    def __init__(self, services: Services, tools: Iterable[Tool]) -> None:
        self._services = services
        groups = {find_tool_group(tool.name, {}) for tool in tools} | set(services.settings.mcp)
        self._groups = sorted(groups - {""})

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """List the groups of tools with a button for each, or switch a group on or off.

        Raises Refused if there is no such group.
        """
        texts = context.texts
        if not self._groups:
            return Answer(text=texts.TOOLS_NONE)
        switched_off = (await self._services.load_preference(context.account)).switched_off
        words = comparison_form(command.arguments).split()
        if not words:
            return self._show(texts, switched_off)
        switch = self._read_switch(words, texts)
        if switch is None:
            labels = [_name_group(group, texts) for group in self._groups]
            raise Refused(texts.TOOLS_USAGE.format(groups=texts.join_list(labels)))
        group, is_on = switch
        changed = switched_off - {group} if is_on else switched_off | {group}
        await self._save(context.account, changed)
        text = texts.TOOLS_ON if is_on else texts.TOOLS_OFF
        return Answer(text=text.format(group=_name_group(group, texts)))

    def _read_switch(self, words: Sequence[str], texts: Texts) -> tuple[str, bool] | None:
        """Return the group that the words name, and whether they switch it on.

        The words are in the person's language or in English, such as "off web" and "web off".
        Returns None if they name no group or no state.
        """
        groups = {comparison_form(_name_group(group, texts)): group for group in self._groups}
        groups |= {comparison_form(group): group for group in self._groups}
        states = dict.fromkeys(comparison_form(texts.TOOLS_WORDS_ON).split(), True)
        states |= dict.fromkeys(comparison_form(texts.TOOLS_WORDS_OFF).split(), False)
        states |= {"on": True, "off": False}
        typed = " ".join(words)
        for state, is_on in states.items():
            for name, group in groups.items():
                forms = [f"{state} {name}", f"{name} {state}"]
                if is_unspaced(name):
                    # Chinese and Japanese need no space.
                    forms += [f"{state}{name}", f"{name}{state}"]
                if typed in forms:
                    return group, is_on
        return None

    async def autocomplete(
        self, source: str, typed: str, scope: Scope, account: Account | None
    ) -> Mapping[str, str]:
        """Return the groups whose names contain `typed`, named in the language of the chat."""
        texts = self._services.languages.of_scope(scope)
        wanted = comparison_form(typed)
        names = {group: _name_group(group, texts) for group in self._groups}
        return {
            group: name
            for group, name in names.items()
            if wanted in comparison_form(group) or wanted in comparison_form(name)
        }

    def _show(self, texts: Texts, switched_off: frozenset[str]) -> Answer:
        lines = [texts.TOOLS_HEADING]
        buttons: list[Button] = []
        for group in self._groups:
            is_off = group in switched_off
            state = texts.TOOLS_STATE_OFF if is_off else texts.TOOLS_STATE_ON
            name = _name_group(group, texts)
            lines.append(f"- {texts.pair(name, state)}")
            label = texts.TOOLS_SWITCH_ON if is_off else texts.TOOLS_SWITCH_OFF
            arguments = f"{'on' if is_off else 'off'} {group}"
            buttons.append(make_button(label.format(group=name), "tools", arguments))
        return Answer(text="\n".join(lines), buttons=tuple(buttons))

    async def _save(self, account: Account, switched_off: frozenset[str]) -> None:
        """Store the choice for all accounts of the person."""
        linked_accounts = await self._services.links.list_accounts(account)
        accounts = {account, *(entry.account for entry in linked_accounts)}
        tools_off = ",".join(sorted(switched_off))
        for linked_account in sorted(accounts, key=lambda other: other.key):
            await self._services.preferences.save(linked_account, tools_off=tools_off)


def _name_group(group: str, texts: Texts) -> str:
    """Return the name of a group of tools in the person's language. Servers have their own."""
    names = {WEB: texts.TOOLS_GROUP_WEB, CALENDAR: texts.TOOLS_GROUP_CALENDAR}
    return names.get(group, group)
