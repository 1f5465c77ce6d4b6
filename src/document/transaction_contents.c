/* transaction_contents: the one place through which each content passes that an operation, a task, a module
 * or the mutation of a release writes: the changed items of the drafts, behind the last change, under the
 * schema that the database compares with its own in the commit.  Copies are not checked: their source was. */
#include "document/transaction_private.h"

#include "model/content/content.h"
#include "store/documents/store_schema.h"

/* Beside limit_content_steps, for each byte. */
enum { STEPS_OF_BYTE = 16 };

struct checking {
    const struct schema_class *class;
    struct arena *arena; /* emptied after each content */
    int64_t steps;
    enum content_verdict verdict;
    struct content_violation violation;
};

static bool is_wrong(void *whose, const struct item *item)
{
    struct checking *checking = whose;
    const struct schema_item *declared = schema_find_item(checking->class, item->iclass);
    if (!declared || !declared->content || declared->is_raw != item->raw)
        return false;
    checking->steps += STEPS_OF_BYTE * (int64_t)item->content.size;
    checking->verdict = content_check(declared->content, checking->arena, item->content, &checking->steps,
                                      &checking->violation);
    if (checking->verdict != CONTENT_CONFORMS)
        return true;
    arena_reset(checking->arena);
    return false;
}

static struct bytes transaction_contents_keep(struct arena *arena, const char *text)
{
    size_t size = strlen(text);
    return (struct bytes){arena_copy(arena, text, size), size};
}

static enum fault transaction_contents_refuse(struct transaction *transaction, const struct header *header,
                                              const struct item *item, const struct checking *checking)
{
    struct arena *arena = transaction->arena;
    const int64_t most = transaction->documents->settings->limit_content_steps;
    if (checking->verdict == CONTENT_COSTLY) {
        transaction->refused[0] = BYTES("limit_content_steps");
        transaction->refused[1] = bytes_of(arena_printf(arena, "%lld", (long long)most));
        transaction->refused[2] = bytes_of(arena_printf(arena, "%lld", (long long)most + 1));
        return FAULT_ALIMIT;
    }
    const struct content_violation *violation = &checking->violation;
    const struct bytes parts[TRANSACTION_REFUSED_PARTS] = {
        header->class,
        header->id,
        item->iclass,
        item->key.data ? item->key : BYTES(""),
        transaction_contents_keep(arena, violation->place),
        transaction_contents_keep(arena, violation->keyword),
        transaction_contents_keep(arena, violation->rule),
    };
    memcpy(transaction->refused, parts, sizeof parts);
    transaction->expected = transaction_contents_keep(arena, violation->expected).data;
    return FAULT_ACONTENT;
}

enum fault transaction_check_contents(struct transaction *transaction, const struct schema *schema)
{
    struct documents *documents = transaction->documents;
    struct checking checking = {.arena = arena_create("contents"),
                                .steps = documents->settings->limit_content_steps};
    enum fault fault = FAULT_NONE;
    for (size_t i = 0; i < transaction->count && !fault; i++) {
        const struct draft *draft = transaction->entries[i].draft;
        if (!draft || !draft_is_changed(draft))
            continue;
        const struct header *header = &draft_base(draft)->header;
        checking.class = schema_find_class(schema, header->class);
        const struct item *wrong = checking.class ? draft_find_changed(draft, is_wrong, &checking) : NULL;
        if (wrong)
            fault = transaction_contents_refuse(transaction, header, wrong, &checking);
    }
    arena_destroy(checking.arena);
    if (!fault)
        return FAULT_NONE;
    enum fault moved = store_schema_confirm(documents->store, transaction->ns, transaction->arena, schema);
    return moved ? moved : fault;
}
