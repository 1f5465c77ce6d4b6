/* transaction_adjust: what the schema adds to the changes of a try, and the states that its documents then
 * have.
 *
 * A commit that removes or replaces an image removes its thumbnails, and one that adds an image creates the
 * task that makes them (model/document/thumbnails.h). */
#include "document/transaction_private.h"

#include "model/document/mutation.h"
#include "model/document/thumbnails.h"
#include "store/documents/store_schema.h"
#include "store/store_sealing.h"

/* --- releases --- */

struct mutating {
    struct arena *arena;
    const struct schema_class *class;
};

static struct bytes mutate(void *whose, const struct item *item)
{
    const struct mutating *mutating = whose;
    return mutation_apply(mutating->arena, mutating->class, item->iclass, item->content);
}

static void mutate_drafts(struct transaction *transaction, const struct schema *schema)
{
    for (size_t i = 0; i < transaction->count; i++) {
        struct transaction_entry *entry = &transaction->entries[i];
        if (!entry->draft || !draft_is_changed(entry->draft))
            continue;
        struct mutating mutating = {transaction->arena,
                                    schema_find_class(schema, draft_base(entry->draft)->header.class)};
        if (mutating.class && mutation_applies(mutating.class))
            draft_mutate(entry->draft, mutate, &mutating);
    }
}

/* --- thumbnails --- */

static void follow_images(struct transaction *transaction, const struct schema *schema)
{
    const struct settings *settings = transaction->documents->settings;
    for (size_t i = 0; i < transaction->count; i++) {
        const struct transaction_entry *entry = &transaction->entries[i];
        if (!entry->draft || !draft_is_changed(entry->draft))
            continue;
        const struct header *header = &draft_base(entry->draft)->header;
        const struct schema_class *class = schema_find_class(schema, header->class);
        if (!class || !class->thumbnail_count || !thumbnails_follow(transaction->arena, class, entry->draft))
            continue;
        const struct task task =
            task_of_document(transaction->arena, settings, BYTES(THUMBNAILS_OPERATION), THUMBNAILS_QUEUE,
                             header->class, header->id,
                             store_sealing_id(transaction->documents->store, transaction->ns,
                                              transaction->arena, header->class, header->id));
        transaction_schedule(transaction, &task); /* a task that already waits for the document is enough */
    }
}

void transaction_adjust(struct transaction *transaction, const struct schema *schema)
{
    if (schema->has_old)
        mutate_drafts(transaction, schema);
    if (schema->has_thumbnails)
        follow_images(transaction, schema);
}

/* --- states after the commit --------------------------------------------------------------------- */

static bool is_any_changed(const struct transaction *transaction)
{
    for (size_t i = 0; i < transaction->count; i++)
        if (transaction->entries[i].draft && draft_is_changed(transaction->entries[i].draft))
            return true;
    return false;
}

static struct version_after version_after(const struct transaction_entry *entry)
{
    const struct header *header = &entry->found.document->header;
    struct version_after after = {.name = {header->class, header->id}};
    if (draft_is_changed(entry->draft))
        after.is_written = draft_exists(entry->draft);
    else if (document_exists(entry->found.document))
        after.version = header->version;
    return after;
}

enum fault transaction_versions_after(struct transaction *transaction, struct version_after **versions_r,
                                      size_t *count_r)
{
    struct documents *documents = transaction->documents;
    *versions_r = NULL;
    *count_r = 0;
    if (is_any_changed(transaction)) {
        enum fault fault =
            store_schema(documents->store, transaction->ns, transaction->arena, &transaction->stood);
        if (fault)
            return fault;
        transaction_adjust(transaction, transaction->stood);
    }
    *versions_r = ARENA_ARRAY(transaction->arena, struct version_after, transaction->fetched);
    for (size_t i = 0; i < transaction->count; i++)
        if (transaction->entries[i].draft)
            (*versions_r)[(*count_r)++] = version_after(&transaction->entries[i]);
    return FAULT_NONE;
}
