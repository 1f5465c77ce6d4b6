/* store_shown: hashes of the data keys. */
#include "store/documents/store_shown.h"

#include "blob/blob_sealed.h"
#include "model/document/attachment.h"
#include "model/schema/shown.h"

static struct bytes hash(void *context, struct arena *arena, struct bytes class, struct bytes field,
                         struct bytes value)
{
    return data_keys_hash(context, arena, class, field, value);
}

/* What the table of references needs (sql/0017_blobs.sql): the file as the store has it, and its type. */
static struct bytes show_attachment(const struct data_keys *keys, struct arena *arena,
                                    const struct item_place *place, struct bytes content)
{
    struct attachment attachment;
    const struct sealed_file_keys of_files = data_keys_of_files(keys);
    if (!attachment_read(arena, content, &attachment))
        return BYTES(""); /* the database refuses it */
    attachment.digest = blob_sealed_name(&of_files, &attachment.digest);
    attachment.size = blob_sealed_size(&of_files, attachment.size);
    attachment.mime = data_keys_seal_mime(keys, arena, place, attachment.mime);
    return attachment_write(arena, &attachment);
}

void store_shown_add(const struct data_keys *keys, struct arena *arena, const struct schema *schema,
                     struct item_place *place, struct bytes content)
{
    struct data_keys copy = *keys;
    place->shown = BYTES("");
    if (keys->count && content.data && bytes_equal(place->iclass, ATTACHMENT_CLASS))
        place->shown = show_attachment(keys, arena, place, content);
    else if (keys->count && schema)
        place->shown = shown_write(arena, schema_find_class(schema, place->class), place->iclass, place->key,
                                   place->is_raw, content, hash, &copy);
}

struct bytes store_shown_value(const struct data_keys *keys, struct arena *arena, struct bytes class,
                               struct bytes value, size_t count)
{
    struct data_keys copy = *keys;
    return keys->count ? shown_value(arena, class, value, count, hash, &copy) : value;
}

static void hash_values(struct data_keys *keys, struct arena *arena, const struct search *search,
                        struct search_condition *condition)
{
    if (!condition->field || condition->field->type != FIELD_HASH)
        return;
    const struct schema_item *item = condition->item ? condition->item : search->item;
    struct search_value *list = ARENA_ARRAY(arena, struct search_value, condition->list_count);
    for (size_t v = 0; v < condition->list_count; v++)
        list[v].text = shown_field_value(arena, search->class, item, condition->field->name,
                                         condition->list[v].text, hash, keys);
    condition->list = list;
    if (condition->test == SEARCH_EQ)
        condition->values[0].text = shown_field_value(arena, search->class, item, condition->field->name,
                                                      condition->values[0].text, hash, keys);
}

struct search store_shown_search(const struct data_keys *keys, struct arena *arena,
                                 const struct search *search)
{
    struct data_keys copy = *keys;
    struct search hashed = *search;
    for (size_t b = 0; b < hashed.branch_count && keys->count; b++)
        for (size_t i = 0; i < hashed.branches[b].count; i++)
            hash_values(&copy, arena, search, &hashed.branches[b].conditions[i]);
    return hashed;
}
