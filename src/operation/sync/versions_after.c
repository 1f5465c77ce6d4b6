/* versions_after: a list, bounded by limit_documents. */
#include "operation/sync/versions_after.h"

#include "model/document/stamp.h"
#include "edge/json/json.h"
#include "operation/judge/judge.h"
#include "document/transaction.h"

enum { PACK_DEPTH = 2, PACK_PARTS = 3, PACK_NODES = 4096 };

/* Where rules decide, a document that was not written has the version that the caller sees. */
static enum fault judge_versions(struct attempt *attempt)
{
    enum fault fault = FAULT_NONE;
    size_t position = 0;
    for (size_t i = 0; !fault && i < attempt->versions_after_count; i++) {
        struct version_after *after = &attempt->versions_after[i];
        const struct document *shown = draft_base(transaction_next_draft(attempt->transaction, &position));
        struct view view;
        if (after->is_written)
            continue;
        fault = judge_show(attempt, &shown, &view);
        after->version = view_version(&view, shown);
    }
    return fault;
}

enum fault versions_after_note(struct attempt *attempt)
{
    enum fault fault = transaction_versions_after(attempt->transaction, &attempt->versions_after,
                                                  &attempt->versions_after_count);
    return fault || !call_is_judged(attempt->call) ? fault : judge_versions(attempt);
}

/* --- the text: [[class, id, version]…], null: the version of the commit --- */

struct bytes versions_after_pack(const struct attempt *attempt)
{
    struct arena *arena = attempt->call->arena;
    struct builder text = {0};
    builder_add_text(&text, "[");
    for (size_t i = 0; i < attempt->versions_after_count; i++) {
        const struct version_after *after = &attempt->versions_after[i];
        if (i)
            builder_add_text(&text, ",");
        builder_add_text(&text, "[");
        json_add_string(&text, after->name.class);
        builder_add_text(&text, ",");
        json_add_string(&text, after->name.id);
        builder_add_text(&text, ",");
        if (after->is_written)
            builder_add_text(&text, "null");
        else
            builder_add_i64(&text, after->version);
        builder_add_text(&text, "]");
    }
    builder_add_text(&text, "]");
    return builder_take(&text, arena);
}

static bool unpack_one(const struct json *element, struct version_after *after)
{
    if (element->kind != JSON_ARRAY || element->count != PACK_PARTS)
        return false;
    const struct json *class = element->first, *id = class->next, *version = id->next;
    after->name = (struct document_name){class->value, id->value};
    after->is_written = version->kind == JSON_NULL;
    return class->kind == JSON_STRING && id->kind == JSON_STRING &&
           (after->is_written ||
            (json_is_i64(version, &after->version) && (after->version >= 0 && after->version <= STAMP_MAX)));
}

bool versions_after_unpack(struct attempt *attempt, struct bytes text)
{
    const struct json_limits limits = {.depth = PACK_DEPTH, .tree_depth = PACK_DEPTH, .nodes = PACK_NODES};
    struct json *root;
    struct json_problem problem;
    attempt->versions_after = NULL;
    attempt->versions_after_count = 0;
    if (!text.size)
        return true;
    if (json_read(attempt->call->arena, text, &limits, &root, &problem) || root->kind != JSON_ARRAY)
        return false;
    attempt->versions_after = ARENA_ARRAY(attempt->call->arena, struct version_after, root->count);
    for (const struct json *element = root->first; element; element = element->next)
        if (!unpack_one(element, &attempt->versions_after[attempt->versions_after_count++]))
            return false;
    return true;
}

bool versions_after_find(const struct attempt *attempt, struct document_name name, int64_t *version_r)
{
    for (size_t i = 0; i < attempt->versions_after_count; i++) {
        const struct version_after *after = &attempt->versions_after[i];
        if (bytes_equal(after->name.id, name.id) && bytes_equal(after->name.class, name.class)) {
            *version_r = after->is_written ? attempt->version : after->version;
            return true;
        }
    }
    return false;
}
