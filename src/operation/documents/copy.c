/* copy: updates the copies of a document's items to the present items (copies.md): the task of a commit
 * that has changed some of them. param {"c","id"} → out {"copies","more"}: how many documents' items were
 * checked, and whether more remains, which a task continues by itself.
 *
 * A cycle takes the first items that are recorded as changed, and the documents that have older copies of
 * them.  Its commit writes those, and deletes the records of the items that have no others; its progress with
 * the next item is its checkpoint.  A commit that changes an item meanwhile records it again and creates
 * another task. */
#include "operation/builtin.h"

#include "operation/classes.h"
#include "operation/reader.h"
#include "store/collections/store_copies.h"
#include "operation/reply.h"
#include "document/transaction.h"

/* The contents of a batch, read and written, take about this many bytes. */
enum { CONTENTS_MOST = 16 << 20 };

static size_t clamp(size_t number, size_t most)
{
    return number < 1 ? 1 : number < most ? number : most;
}

/* Most copies of these sources that a commit may write. */
static size_t most_targets(const struct copy_batch *batch)
{
    size_t largest = 1;
    for (size_t i = 0; i < batch->source_count; i++)
        if (batch->sources[i].content.size > largest)
            largest = batch->sources[i].content.size;
    return clamp(CONTENTS_MOST / largest, COPIES_TARGETS_MOST);
}

/* Reads what is due, and where it is; a batch without sources: nothing is due. */
static enum fault copy_plan(struct attempt *attempt, struct copy_batch *batch, size_t most_sources,
                            struct copy_position *last_r)
{
    struct store *store = documents_store(attempt->worker_context->documents);
    struct arena *arena = attempt->call->arena;
    const struct task *task = attempt->call->task;
    const struct copy_position after = copies_read_position(arena, task ? task->checkpoint : NO_BYTES);
    const struct schema *schema;
    *last_r = (struct copy_position){0};
    enum fault fault = FAULT_FIRST(classes_schema(attempt, &schema),
                                   store_copies_read(store, attempt->ns, arena, schema, batch, most_sources));
    return fault || !batch->source_count
               ? fault
               : store_copies_find(store, attempt->ns, arena, batch, &after, most_targets(batch), last_r);
}

static enum fault copy_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct arena *arena = attempt->call->arena;
    struct copy_batch *batch = ARENA_NEW(arena, struct copy_batch);
    struct copy_position last;
    struct document_name name;
    enum fault fault = FAULT_FIRST(reader_members(&reader, attempt->call->param, "c id"),
                                   reader_name(&reader, attempt->call->param, &name));
    if (fault)
        return fault;
    *batch = (struct copy_batch){.class = name.class, .id = name.id};
    size_t most_sources =
        clamp((size_t)(CONTENTS_MOST / reader.settings->limit_content_bytes), COPIES_SOURCES_MOST);
    fault = copy_plan(attempt, batch, most_sources, &last);
    if (fault)
        return fault;
    bool has_more = last.class.data || batch->source_count == most_sources;
    if (batch->source_count)
        transaction_copy(attempt->transaction, batch);
    if (has_more)
        transaction_set_checkpoint(attempt->transaction, copies_write_position(arena, &last));
    builder_printf(attempt->reply->body, "{\"copies\":%zu,\"more\":%s}", batch->target_count,
                   has_more ? "true" : "false");
    return FAULT_NONE;
}

const struct operation builtin_copy = {.name = COPIES_OPERATION, .right = RIGHT_ADMIN, .work = copy_work};
