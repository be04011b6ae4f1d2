"""Builds the memories: notes, history, facts, and the services that the settings switch on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from config.settings import Settings
from core.errors import to_sentence
from core.facts.evidence import EvidenceSearch
from core.facts.extraction import FactReader
from core.facts.provider import FactRanking, FactSearch, FactsProvider
from core.memory.manager import MemoryManager
from core.memory.provider import MemoryProvider, sync_hooks_of
from core.notes.curator import Curator
from core.notes.provider import NotesProvider
from core.notes.verdicts import Verifier
from core.ports import Model
from core.search.expansion import ExpandedRecall
from core.search.recall import HistoryProvider
from core.store.facts.rows import FactKind
from core.store.sync import SyncQueue
from gateway.receipts import ReceiptWriter
from gateway.services import Services, load_providers


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Contains the memories and the searches in them."""

    manager: MemoryManager
    evidence: EvidenceSearch
    recall: ExpandedRecall


def build_memory(
    services: Services, helper: Model | None, wake_delivery: Callable[[], None]
) -> Memory:
    """Build the built-in memories and the memory services that the settings switch on.

    If a service can't be loaded, a warning is logged and the others are still used.
    """
    evidence = EvidenceSearch(services.conversations)
    recall = _build_recall(services, helper)
    builtins = [
        _build_notes(services, helper, evidence),
        _build_history(services, helper, recall),
    ]
    if services.settings.memory.facts:
        builtins.append(_build_facts(services, helper, evidence))
    manager = _build_manager(services, builtins, wake_delivery)
    return Memory(manager=manager, evidence=evidence, recall=recall)


def _build_recall(services: Services, helper: Model | None) -> ExpandedRecall:
    """Build the search in the history that the helper model may expand and rerank."""
    settings = services.settings
    return ExpandedRecall(
        services.recall,
        services.conversations,
        helper,
        settings.model.helper,
        services.clock,
        services.zone,
        settings.recall.expand,
        settings.recall.rerank,
    )


def _build_notes(
    services: Services, helper: Model | None, evidence: EvidenceSearch
) -> MemoryProvider:
    """Build the memory of notes."""
    curator = Curator(
        services.notebook,
        services.notes,
        services.facts,
        services.clock,
        services.zone,
        helper,
        services.settings.model.helper,
    )
    verifier = _build_verifier(services, helper, evidence)
    return NotesProvider(services.notebook, evidence, curator, verifier)


def _build_history(
    services: Services, helper: Model | None, recall: ExpandedRecall
) -> MemoryProvider:
    """Build the memory of all messages.

    The helper model expands its searches if the settings say so.
    """
    settings = services.settings
    is_expanded = helper is not None and settings.recall.background
    return HistoryProvider(services.recall, settings.general.zone, recall if is_expanded else None)


def _build_facts(
    services: Services, helper: Model | None, evidence: EvidenceSearch
) -> MemoryProvider:
    """Build the memory of facts."""
    reader = FactReader(
        services.facts,
        services.notebook.review,
        services.clock,
        services.zone,
        helper,
        services.settings.model.helper,
        services.owner_notices.notify_closing,
        services.is_ours,
    )
    search = FactSearch(services.facts, _create_fact_ranking(services.settings), services.zone)
    return FactsProvider(services.facts, search, reader, evidence)


def _build_manager(
    services: Services, builtins: list[MemoryProvider], wake_delivery: Callable[[], None]
) -> MemoryManager:
    """Load the memory services of the settings, and build the manager of all memories."""
    settings = services.settings
    externals, problems = load_providers(settings)
    queue = SyncQueue(
        services.database,
        services.clock,
        wake_delivery,
        {provider.name: sync_hooks_of(provider) for provider in externals},
        {provider.name: provider.every_turns for provider in externals},
    )
    manager = MemoryManager(
        builtins,
        services.clock,
        settings.memory.prefetch_timeout_s,
        queue,
        externals,
        settings.home,
        services.owner_notices.notify_memory_problem,
    )
    for problem in problems.values():
        manager.warn(to_sentence(problem))
    return manager


def _build_verifier(
    services: Services, helper: Model | None, evidence: EvidenceSearch
) -> Verifier | None:
    """Build the check of proposed notes by the helper model. Returns None without a helper."""
    if helper is None:
        return None
    return Verifier(
        services.notebook,
        services.notes,
        evidence,
        helper,
        services.settings.model.helper,
        ReceiptWriter(services).show_verdict,
        services.is_ours,
    )


def _create_fact_ranking(settings: Settings) -> FactRanking:
    """Build the ranking of facts from settings such as `memory.project_half_life_days`."""
    kinds: tuple[FactKind, ...] = ("project", "episode", "working")
    half_lives = {kind: getattr(settings.memory, f"{kind}_half_life_days") for kind in kinds}
    return FactRanking(hrr=settings.facts.hrr_weight, half_life_days=half_lives)
