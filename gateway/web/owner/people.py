"""Shows who has access and who requests it on the page "People", which only the owner can see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from core.errors import Refused
from core.store.ownership.people import TERMINAL, KnownAccount
from core.store.usage_limits import Spending
from core.types import LOCAL_SCOPE, Account, Answer, BillingScope, Scope
from gateway.commands.stranger_approvals_and_links import ACCOUNT_KEY, format_sides
from gateway.services import load_persons
from gateway.web.views import (
    Action,
    Page,
    PageRequest,
    Values,
    View,
    read_field,
    run_command,
)

# The limits of a group are asked for with a member who doesn't exist.
NO_USER = "0"


@dataclass(frozen=True, slots=True)
class Person:
    """A person with their linked accounts, as the page "People" shows them."""

    accounts: Sequence[KnownAccount]
    # When one of the accounts wrote last in a private chat.
    seen_at: datetime | None
    # Since the beginning of the month.
    spending: Spending
    # What they have used today of each of their limits, in words.
    limits: Sequence[str]

    @property
    def is_owner(self) -> bool:
        return any(account.account.platform == "terminal" for account in self.accounts)


@dataclass(frozen=True, slots=True)
class Group:
    """A group, or a role on Discord, whose members have access."""

    key: str
    # Who that is, in words.
    why: str
    # What the group as a whole has used today of each of its limits, in words.
    limits: Sequence[str] = ()


async def load_people(request: PageRequest) -> Values:
    """Return everyone who has access, and everyone who requests it."""
    services = request.services
    now = services.clock.now()
    listed = services.settings.access.people
    people = []
    for members in await load_persons(services.people, listed):
        if any(member.why for member in members):
            people.append(await _load_person(request, members, now))
    return {
        "people": people,
        "groups": await _list_groups(request, now),
        "requests": await services.people.list_pending(now),
        "links": [
            (link.token, request.words["LINK_REQUEST"].format(**format_sides(request.texts, link)))
            for link in await services.links.list_for_owner(now)
        ],
        "describe_access": lambda account: _describe_access(request, account),
    }


async def _list_groups(request: PageRequest, now: datetime) -> list[Group]:
    """Return the groups and roles that have access by the settings."""
    settings, words = request.services.settings, request.words
    groups = [Group(room, words["WHY_OWN_ROOM"]) for room in settings.owner.rooms]
    for room in settings.access.rooms:
        platform, _, chat_id = room.partition(":")
        payer = BillingScope(scope=Scope.group(platform, chat_id), user_id=NO_USER)
        limits = await _describe_limits(request, payer, now)
        groups.append(Group(room, words["WHY_ROOM"], limits))
    return groups + [Group(role, words["WHY_ROLE"]) for role in settings.access.roles]


def _describe_access(request: PageRequest, account: KnownAccount) -> str:
    """Return why an account has access or has lost it, and since when."""
    if account.why in ("settings", "listed"):
        return request.words[f"WHY_{account.why.upper()}"]
    day = request.texts.format_day(account.at, request.zone) if account.at else None
    return request.texts.table("PEOPLE_WHY")[account.why].format(day=day).replace("`", "")


async def _load_person(
    request: PageRequest, members: Sequence[KnownAccount], now: datetime
) -> Person:
    scopes = frozenset(
        Scope.account(member.account.platform, member.account.user_id) for member in members
    )
    spending, _ = await request.services.usage_log.load_month(scopes, now)
    seen_times = [member.seen_at for member in members if member.seen_at is not None]
    account = members[0].account
    scope = LOCAL_SCOPE if account == TERMINAL else Scope.account(account.platform, account.user_id)
    payer = BillingScope(scope=scope, user_id=account.user_id)
    limits = await _describe_limits(request, payer, now)
    return Person(members, max(seen_times, default=None), spending, limits)


async def _describe_limits(request: PageRequest, payer: BillingScope, now: datetime) -> list[str]:
    """Return what a person, or a group as a whole, has used today of each limit, in words.

    An example is "3 of 300 answers".
    """
    assert payer.scope is not None
    limits = []
    for budget in await request.services.usage_log.load_budgets(payer, now):
        if budget.scope.is_group == payer.scope.is_group:
            limits += [
                request.texts.format_used(budget.usage_of(name)) for name in budget.limited_names
            ]
    return limits


async def add_person(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Let a person in by their account, such as "telegram:42". Raises Refused if it isn't one."""
    match = ACCOUNT_KEY.fullmatch(read_field(request, form, "text").lower())
    if match is None:
        raise Refused(request.words["NO_ACCOUNT"])
    services = request.services
    account = Account(platform=match[1], user_id=match[2])
    await services.people.give_access(account, services.clock.now(), "page")
    services.on_change()
    return Answer(text=request.words["PERSON_ADDED"].format(account=account.key))


PEOPLE = Page(
    "people",
    views=(View("/people", "people.html", load_people),),
    actions=(
        Action("add-person", add_person),
        Action("approve-person", run_command("approve", "{code}")),
        Action("reject-link", run_command("approve", "no {code}")),
        Action("remove-person", run_command("people", "remove {account}")),
        Action("block-person", run_command("people", "block {account}")),
        Action("revoke-account", run_command("people", "revoke {account}")),
    ),
    is_for_owner=True,
)
