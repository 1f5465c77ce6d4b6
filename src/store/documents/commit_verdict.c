/* commit_verdict: reads the details of refusals. */
#include "store/documents/commit_verdict.h"

#include <string.h>

#include "edge/json/json.h"
#include "store/refusal.h"
#include "store/documents/schema_cache.h"
#include "store/store_sealing.h"
#include "edge/pg/pg_pipeline.h"

static void flag_all(struct commit *commit)
{
    for (size_t i = 0; i < commit->count; i++)
        commit->documents[i].moved = true;
}

size_t commit_verdict_flag_listed(struct commit *commit, const struct data_keys *keys, struct arena *arena,
                                  const char *detail)
{
    struct json *list;
    if (!detail || !json_is_tree(arena, bytes_of(detail), 2, 2, &list))
        return 0;
    size_t flagged = 0;
    for (const struct json *entry = list->first; entry; entry = entry->next) {
        const struct json *class = entry->first, *id = class ? class->next : NULL;
        struct bytes name = id ? id->value : NO_BYTES;
        if (!id || !data_keys_open_id(keys, arena, class->value, &name))
            continue;
        for (size_t i = 0; i < commit->count; i++) {
            const struct header *header = &commit->documents[i].base->header;
            if (bytes_equal(header->class, class->value) && bytes_equal(header->id, name)) {
                commit->documents[i].moved = true;
                flagged++;
            }
        }
    }
    return flagged;
}

/* The detail of UNIQUE, FIXED, MANY_VALUES, ACCOUNT_BYTES and MANY_TASKS: a JSON list that begins with these
 * parts. */
static enum fault note_refused(struct commit *commit, struct arena *arena, const char *detail,
                               enum fault fault)
{
    struct json *list;
    if (!detail || !json_is_tree(arena, bytes_of(detail), 2, 2, &list))
        return fault;
    size_t part = 0;
    for (const struct json *one = list->first; one && part < COMMIT_REFUSED_PARTS; one = one->next)
        commit->refused[part++] = one->value;
    return fault;
}

/* The detail of UNIQUE and FIXED has the class of the document and its id as it is stored. */
static void open_refused(struct commit *commit, const struct data_keys *keys, struct arena *arena)
{
    enum { CLASS = 1, ID };
    struct bytes *id = &commit->refused[ID];
    if (id->data && !data_keys_open_id(keys, arena, commit->refused[CLASS], id))
        *id = NO_BYTES;
}

/* Flags the fences listed in the detail of FENCED; all if it is unknown which. */
static void flag_fences(struct commit *commit, struct arena *arena, const char *detail)
{
    struct json *list = NULL;
    size_t flagged = 0;
    if (detail && !json_is_tree(arena, bytes_of(detail), 1, 1, &list))
        list = NULL;
    for (const struct json *id = list ? list->first : NULL; id; id = id->next)
        for (size_t i = 0; i < commit->fence_count; i++)
            if (bytes_equal(commit->fences[i].id, id->value)) {
                commit->fences[i].is_lost = true;
                flagged++;
            }
    for (size_t i = 0; !flagged && i < commit->fence_count; i++)
        commit->fences[i].is_lost = true;
}

/* Does a row with this primary key exist already? */
static bool is_taken(const struct pg_verdict *verdict, const char *constraint)
{
    return strcmp(verdict->sqlstate, "23505") == 0 && verdict->constraint &&
           strcmp(verdict->constraint, constraint) == 0;
}

/* The columns of an index may have more together than one of its entries can (schema.md, "Indexes"). */
static enum fault judge_other(const struct pg_verdict *verdict, struct commit *commit)
{
    if (is_taken(verdict, "doc_pkey")) /* the document was created without the lock on its absence */
        return FAULT_STALE;
    if (strcmp(verdict->sqlstate, "54000") != 0)
        return verdict->fault;
    commit->refused[0] = BYTES("index");
    commit->refused[1] = BYTES("2704");
    return FAULT_ALIMIT;
}

enum fault commit_verdict_judge(struct store *store, int ns, const struct pg_verdict *verdict,
                                struct arena *arena, struct commit *commit)
{
    const struct data_keys *keys = store_sealing_keys(store, ns);
    enum fault refused;
    switch (refusal_of(verdict->sqlstate)) {
    case REFUSAL_MOVED:
        if (commit_verdict_flag_listed(commit, keys, arena, verdict->detail) == 0)
            flag_all(commit);
        return FAULT_STALE;
    case REFUSAL_FENCED:
        flag_fences(commit, arena, verdict->detail);
        return FAULT_FENCED;
    case REFUSAL_ANSWERED:
    case REFUSAL_FORGOTTEN:
    case REFUSAL_NOT_TAKEN:
        return FAULT_STALE; /* already done, or to be looked at: possibly no document has moved */
    case REFUSAL_UNIQUE:
    case REFUSAL_FIXED:
        refused = refusal_of(verdict->sqlstate) == REFUSAL_UNIQUE ? FAULT_AUNIQUE : FAULT_AFIXED;
        refused = note_refused(commit, arena, verdict->detail, refused);
        open_refused(commit, keys, arena);
        return refused;
    case REFUSAL_MANY_VALUES:
    case REFUSAL_ACCOUNT_BYTES:
        return note_refused(commit, arena, verdict->detail, FAULT_ALIMIT);
    case REFUSAL_NO_BLOB:
        return note_refused(commit, arena, verdict->detail, FAULT_NATTACHMENT);
    case REFUSAL_MANY_TASKS:
        return note_refused(commit, arena, verdict->detail, FAULT_XBUSY);
    default:
        break;
    }
    if (schema_cache_judge(store, ns, verdict->sqlstate, FAULT_NONE))
        return FAULT_STALE; /* the same */
    if (commit->spool && is_taken(verdict, "spool_record_pkey"))
        return FAULT_STALE; /* of a batch that arrives twice; no document has moved */
    enum fault fault = judge_other(verdict, commit);
    if (fault == FAULT_STALE)
        flag_all(commit);
    return fault;
}
