"""Each statement that reads what people said or noted has the scope as a condition.

The scope is also the key by which a cluster of servers would distribute the rows. The exceptions
are listed with their reasons.
"""

from __future__ import annotations

from itertools import chain

from tests.fixtures.store_reads import list_reads

# Parts of statements. The statements that contain them are also listed, with their scope.
PARTS = {
    "core.store.erasure.personal_data.EXPORT_STATEMENTS",
    "core.store.erasure.statements._TITLE_MESSAGE_ID",
    "core.store.facts.rows.ENTITY_NAMES",
    "core.store.facts.rows.FACT_COLUMNS",
    "core.store.postgres.text_index._RANK_FILE_PARTS",
    "core.store.media.files.SELECT_FILES",
    "core.store.messages._FROM_CHAT",
    "core.store.messages._FROM_CHAT_BY_EXTERNAL_ID",
    "core.store.notes.SELECT_CHANGES",
    "core.store.notes._FROM_CHANGES",
    "core.store.notes._FROM_PENDING",
    "core.store.search.excerpts._FIRST_MESSAGE_ID",
    "core.store.search.excerpts._FROM_SESSION",
    "core.store.search.excerpts._recent_sessions_sql",
    "core.store.search.excerpts._select_bookend",
    "core.store.search.narrowing._HAS_FILE",
    "core.store.search.narrowing._in_messages",
    "core.store.search.text_search._NEXT_CHUNK_PLACE",
    "core.store.visibility._HAS_FILE",
}
# The ids, sessions or hashes come from a row that the person may see, or from the turn itself.
BY_KNOWN_ID = {
    "core.store.archive._SELECT_WITHOUT_ID",
    "core.store.facts.contradictions._SELECT_EARLIER_MESSAGES",
    "core.store.facts.contradictions.has_lost_source",
    "core.store.facts.contradictions.undo_last_change",
    "core.store.facts.facts._DELETE_REREAD",
    "core.store.facts.facts._IS_UNREAD",
    "core.store.facts.facts._SELECT_UNREAD",
    "core.store.facts.feedback._SELECT_MEMORY",
    "core.store.facts.rows.store_fact_names",
    "core.store.lineage.WITH_TURN_PARTS",
    "core.store.lineage._COUNT_MESSAGES",
    "core.store.lineage._RECORD_UNDONE",
    "core.store.lineage._SELECT_AFFECTED_SESSIONS",
    "core.store.lineage._SELECT_DELEGATED",
    "core.store.lineage._SELECT_FROM_UNDONE",
    "core.store.lineage._SELECT_REDONE",
    "core.store.lineage._SELECT_UNDONE",
    "core.store.lineage._SHOW_MESSAGES",
    "core.store.lineage.undo",
    "core.store.media.files.Files.find_content",
    "core.store.media.files._COUNT_SCOPES",
    "core.store.media.files._INSERT_MADE_FILE",
    "core.store.media.files._SELECT_PARTS",
    "core.store.media.files._drop_shared_description",
    "core.store.media.files._make_hit",
    "core.store.media.files._match_parts",
    "core.store.media.files._store_content",
    "core.store.messages._DELETE_DERIVED_TITLE",
    "core.store.messages._SELECT_ERASED",
    "core.store.messages._SELECT_HISTORY_SINCE",
    "core.store.notes.Notes.drop",
    "core.store.search.chunks._CHUNKS_FROM",
    "core.store.search.chunks._LAST_CHUNK",
    "core.store.search.chunks._SHOWN_MESSAGES",
    "core.store.search.chunks._delete_chunk",
    "core.store.search.vectors._INSERT_VECTOR",
    "core.store.tool_calls._DELETE_UNDONE",
}
# An event of a platform is looked up in its own chat. Only what the chat has shown is read.
IN_THE_CHAT_OF_AN_EVENT = {
    "core.store.actions._SELECT_LAST_ANSWER",
    "core.store.jobs._SELECT_DELIVERY_IDS",
    "core.store.mailbox._INSERT_ENTRY",
    "core.store.media.files._DELETE_REPLACED_FILE",
    "core.store.media.files._SELECT_ROW",
    "core.store.media.files.INSERT_FILE",
    "core.store.media.files._load_of_message",
    "core.store.message_ids.REMEMBER_IDS",
    "core.store.message_ids._SELECT_AUTHOR",
    "core.store.message_ids._SELECT_LAST_IDS",
    "core.store.message_ids._SELECT_LATEST_QUESTION",
    "core.store.message_ids._SELECT_NEWEST_IDS",
    "core.store.message_ids._SELECT_OTHER",
    "core.store.messages._SELECT_KNOWN",
    "core.store.messages._SELECT_TO_AMEND",
    "core.store.sessions._SELECT_LAST_MESSAGE_TIME",
}
# An erasure follows copies by their ids, whoever has them.
ERASURE = {
    "core.privacy.file_quotes._SELECT_FILE_TEXTS",
    "core.store.erasure.epoch._SELECT_CONTENT",
    "core.store.erasure.expiry.SELECT_SPARED",
    "core.store.erasure.statements.COPY_STATEMENTS",
    "core.store.erasure.statements.SELECT_LISTED_MESSAGES",
    "core.store.erasure.statements.erase_messages",
    "core.store.media.sent_forms._SELECT_CALL",
    "core.store.media.sent_forms._SELECT_RESULTS",
    "core.store.media.sent_forms.forget_results_of_message",
}
# The upkeep of the whole store: indexes, services that are told everything, copies, checks.
UPKEEP = {
    "core.store.archive._SELECT_NEXT_ID",
    "core.store.media.files.Files.drop_orphans",
    "core.store.media.files._SELECT_ORPHANS",
    "core.store.media.unfinished.UnfinishedFiles.list_downloads",
    "core.store.media.unfinished._SELECT_UNSPOKEN",
    "core.store.media.unfinished._SELECT_ERASED",
    "core.store.media.unfinished._SELECT_ROW",
    "core.store.notes._SELECT_PROPOSED",
    "core.store.notes._SELECT_UNFINISHED",
    "core.store.postgres.indexing._CHUNK_MESSAGES",
    "core.store.postgres.indexing._COUNT_DIFFERENCES",
    "core.store.postgres.indexing._FACT",
    "core.store.postgres.indexing._MESSAGES",
    "core.store.postgres.indexing.begin_rebuild",
    "core.store.reviews._SELECT_DUE",
    "core.store.search.chunks._CHANGED_CHUNKS",
    "core.store.search.chunks._NEW_MESSAGES",
    "core.store.search.chunks.rebuild_step",
    "core.store.search.vectors._SELECT_LAST_TO_SEARCH",
    "core.store.search.vectors._SELECT_WITHOUT_VECTOR",
    "core.store.sync.SyncQueue.load_arguments",
    "core.store.sync._SELECT_MESSAGES",
    "core.store.sync._SELECT_SYNCED_ROWS",
    "core.store.sync._SELECT_SYNC_STATES",
    "core.transfer.hermes._SELECT_MESSAGES",
    "core.transfer.store_copy._COUNTED_BY_TRIGGER",
    "core.transfer.store_copy._FIRST_SAMPLE",
    "core.transfer.store_copy._choose_samples",
}
# Numbers about the whole store: a highest id, a count, or whether there is any row.
NUMBERS = {
    "core.store.media.files.Files.measure_usage",
    "core.store.reviews.MemoryReviews.propose.write",
    "core.store.search.text_search.has_files",
    "core.store.search.text_search.is_behind",
    "core.store.search.text_search.latest_message_id",
    "core.store.search.vectors._COUNT_UNSEARCHED",
    "core.store.usage_limits._COUNT_FILES_SINCE",
    "core.store.usage_limits._COUNT_RAISES_SINCE",
    "gateway.upkeep.metrics._COUNT_MESSAGES",
    "gateway.upkeep.metrics._LAST_MESSAGE",
}
EXCEPTIONS = (
    PARTS,
    BY_KNOWN_ID,
    IN_THE_CHAT_OF_AN_EVENT,
    ERASURE,
    UPKEEP,
    NUMBERS,
)


def test_every_statement_that_reads_personal_data_has_the_scope_or_a_listed_reason() -> None:
    unscoped = {read.name for read in list_reads() if not read.has_scope}
    listed = list(chain.from_iterable(EXCEPTIONS))
    assert sorted(unscoped - set(listed)) == []
    # An exception whose statement is gone, or has a scope now, must leave the list.
    assert sorted(set(listed) - unscoped) == []
    assert len(listed) == len(set(listed))
