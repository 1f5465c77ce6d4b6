/* standing: a list, bounded by limit_documents. */
#include "operation/standing.h"

#include "model/stamp.h"
#include "edge/json.h"
#include "document/transaction.h"

enum { PACK_DEPTH = 2, PACK_PARTS = 3, PACK_NODES = 4096 };

enum fault standing_note(struct attempt *attempt)
{
    return transaction_stand(attempt->transaction, &attempt->standings, &attempt->standing_count);
}

/* --- the text: [[class, id, version]…], null: the version of the commit --- */

struct bytes standing_pack(const struct attempt *attempt)
{
    struct arena *arena = attempt->call->arena;
    struct builder text = {0};
    builder_add_text(&text, "[");
    for (size_t i = 0; i < attempt->standing_count; i++) {
        const struct standing *standing = &attempt->standings[i];
        if (i)
            builder_add_text(&text, ",");
        builder_add_text(&text, "[");
        json_add_string(&text, standing->name.class);
        builder_add_text(&text, ",");
        json_add_string(&text, standing->name.id);
        builder_add_text(&text, ",");
        if (standing->is_written)
            builder_add_text(&text, "null");
        else
            builder_add_i64(&text, standing->version);
        builder_add_text(&text, "]");
    }
    builder_add_text(&text, "]");
    struct bytes packed = {arena_copy(arena, text.data, text.size), text.size};
    builder_free(&text);
    return packed;
}

static bool unpack_one(const struct json *element, struct standing *standing)
{
    if (element->kind != JSON_ARRAY || element->count != PACK_PARTS)
        return false;
    const struct json *class = element->first, *id = class->next, *version = id->next;
    standing->name = (struct document_name){class->value, id->value};
    standing->is_written = version->kind == JSON_NULL;
    return class->kind == JSON_STRING && id->kind == JSON_STRING &&
           (standing->is_written || (json_is_i64(version, &standing->version) &&
                                     (standing->version >= 0 && standing->version <= STAMP_MAX)));
}

bool standing_unpack(struct attempt *attempt, struct bytes text)
{
    const struct json_limits limits = {.depth = PACK_DEPTH, .tree_depth = PACK_DEPTH, .nodes = PACK_NODES};
    struct json *root;
    struct json_problem problem;
    attempt->standings = NULL;
    attempt->standing_count = 0;
    if (!text.size)
        return true;
    if (json_read(attempt->call->arena, text, &limits, &root, &problem) || root->kind != JSON_ARRAY)
        return false;
    attempt->standings = ARENA_ARRAY(attempt->call->arena, struct standing, root->count);
    for (const struct json *element = root->first; element; element = element->next)
        if (!unpack_one(element, &attempt->standings[attempt->standing_count++]))
            return false;
    return true;
}

bool standing_find(const struct attempt *attempt, struct document_name name, int64_t *version_r)
{
    for (size_t i = 0; i < attempt->standing_count; i++) {
        const struct standing *standing = &attempt->standings[i];
        if (bytes_equal(standing->name.id, name.id) && bytes_equal(standing->name.class, name.class)) {
            *version_r = standing->is_written ? attempt->version : standing->version;
            return true;
        }
    }
    return false;
}
