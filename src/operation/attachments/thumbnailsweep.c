/* thumbnailsweep: the task that finds documents whose images may lack thumbnails: those that were there
 * before the declaration, came by an import or by SQL, or whose task was dropped.  No param → out
 * {"found","more"}.
 *
 * It walks over the documents with attachments of each class that declares thumbnails, in the order of class
 * and id, a page for each cycle, and creates the task `thumbnail` of those that are not noted as done
 * (sql/0022_thumbnails.sql).  After SWEEP_MOST tasks it notes where it stopped, and ends: a scan goes on when
 * few of them wait (tasks/task_scan.c). */
#include "operation/builtin.h"

#include <inttypes.h>

#include "document/transaction.h"
#include "model/document/thumbnails.h"
#include "operation/classes.h"
#include "operation/reader.h"
#include "store/store_sealing.h"
#include "store/blobs/store_thumbnails.h"

enum {
    PAGE_MOST = 100,
    SWEEP_MOST = 1000, /* tasks of one run */
};

/* Where the run is. */
struct thumbnail_walk {
    int64_t found;
    struct thumbnails_sweep at; /* class NO_BYTES: all is visited */
};

static bool thumbnailsweep_read_text(const struct json *root, const char *name, struct bytes *text_r)
{
    *text_r = json_text_of(root, name, NO_BYTES);
    return text_r->data != NULL;
}

/* Of an earlier cycle; false: this is the first, or the schema has changed. */
static bool read_checkpoint(const struct attempt *attempt, int64_t number, struct thumbnail_walk *sweep)
{
    const struct task *task = attempt->call->task;
    struct json *root;
    if (!task || !task->checkpoint.data || !json_is_tree(attempt->call->arena, task->checkpoint, 1, 1, &root))
        return false;
    bool is_whole = json_is_i64(json_member(root, "found"), &sweep->found) &&
                    json_is_i64(json_member(root, "number"), &sweep->at.number) &&
                    json_is_i64(json_member(root, "began"), &sweep->at.began);
    if (thumbnailsweep_read_text(root, "class", &sweep->at.class))
        is_whole = is_whole && thumbnailsweep_read_text(root, "id", &sweep->at.id);
    return is_whole && sweep->at.number == number;
}

static void thumbnailsweep_keep(struct attempt *attempt, const struct thumbnail_walk *sweep)
{
    struct arena *arena = attempt->call->arena;
    struct builder text = {0};
    builder_printf(&text, "{\"found\":%" PRId64 ",\"number\":%" PRId64 ",\"began\":%" PRId64, sweep->found,
                   sweep->at.number, sweep->at.began);
    if (sweep->at.class.data) {
        json_add_text(&text, ",\"class\":", sweep->at.class);
        json_add_text(&text, ",\"id\":", sweep->at.id);
    }
    builder_add_text(&text, "}");
    transaction_set_checkpoint(attempt->transaction, builder_take(&text, arena));
}

/* The run goes on where the last one stopped, or begins. */
static enum fault thumbnailsweep_begin(struct attempt *attempt, int64_t number, struct thumbnail_walk *sweep)
{
    *sweep = (struct thumbnail_walk){0};
    if (read_checkpoint(attempt, number, sweep))
        return FAULT_NONE;
    *sweep = (struct thumbnail_walk){0};
    enum fault fault = store_thumbnails_sweep(documents_store(attempt->worker_context->documents),
                                              attempt->ns, attempt->call->arena, &sweep->at);
    if (fault || (sweep->at.number == number && sweep->at.began && sweep->at.class.data))
        return fault;
    sweep->at = (struct thumbnails_sweep){
        .number = number, .began = stamp_now(), .class = BYTES(""), .id = BYTES("")};
    return store_thumbnails_swept(documents_store(attempt->worker_context->documents), attempt->ns,
                                  attempt->call->arena, &sweep->at, true);
}

/* The class that the sweep is in; NULL: it has visited all. */
static const struct schema_class *thumbnailsweep_find_class(const struct schema *schema, struct bytes from)
{
    for (size_t i = 0; i < schema->class_count; i++)
        if (schema->classes[i].thumbnail_count && bytes_compare(schema->classes[i].name, from) >= 0)
            return &schema->classes[i];
    return NULL;
}

/* The class after this one, if there is one, from its beginning. */
static void move_on(const struct schema *schema, const struct schema_class *class,
                    struct thumbnail_walk *sweep)
{
    const struct schema_class *next = class + 1 < schema->classes + schema->class_count
                                          ? thumbnailsweep_find_class(schema, class[1].name)
                                          : NULL;
    sweep->at.class = next ? next->name : NO_BYTES;
    sweep->at.id = next ? BYTES("") : NO_BYTES;
}

/* One page. */
static enum fault thumbnailsweep_visit(struct attempt *attempt, const struct schema *schema,
                                       struct thumbnail_walk *sweep)
{
    struct arena *arena = attempt->call->arena;
    struct thumbnails_page page;
    const struct schema_class *class = thumbnailsweep_find_class(schema, sweep->at.class);
    if (!class) {
        sweep->at.class = sweep->at.id = NO_BYTES;
        return FAULT_NONE;
    }
    struct bytes last = bytes_equal(class->name, sweep->at.class) ? sweep->at.id : BYTES("");
    struct store *store = documents_store(attempt->worker_context->documents);
    enum fault fault = store_thumbnails_page(store, attempt->ns, arena, class->name,
                                             thumbnails_form(arena, class), last, PAGE_MOST, &page);
    for (size_t i = 0; i < page.count && !fault; i++) {
        if (!page.are_due[i])
            continue;
        struct task task = task_of_document(
            arena, attempt->worker_context->settings, BYTES(THUMBNAILS_OPERATION), THUMBNAILS_QUEUE,
            class->name, page.ids[i], store_sealing_id(store, attempt->ns, arena, class->name, page.ids[i]));
        task.priority = TASK_PRIORITY_MOST; /* those of new images go first */
        transaction_schedule(attempt->transaction, &task);
        sweep->found++;
    }
    if (fault)
        return fault;
    sweep->at.class = class->name;
    sweep->at.id = page.count ? page.ids[page.count - 1] : last;
    if (page.count < PAGE_MOST)
        move_on(schema, class, sweep);
    return FAULT_NONE;
}

static enum fault thumbnailsweep_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    const struct schema *schema;
    struct thumbnail_walk sweep;
    enum fault fault = FAULT_FIRST(reader_members(&reader, attempt->call->param, ""),
                                   classes_schema(attempt, &schema), classes_confirm(attempt, FAULT_NONE),
                                   thumbnailsweep_begin(attempt, schema->number, &sweep));
    if (fault)
        return fault;
    /* What the cycles before have scheduled is committed: so far the sweep has come. */
    bool is_over = !sweep.at.class.data, is_full = sweep.found >= SWEEP_MOST;
    if (is_over || is_full) {
        fault = store_thumbnails_swept(documents_store(attempt->worker_context->documents), attempt->ns,
                                       attempt->call->arena, &sweep.at, false);
    } else {
        fault = thumbnailsweep_visit(attempt, schema, &sweep);
        thumbnailsweep_keep(attempt, &sweep);
    }
    builder_printf(attempt->reply->body, "{\"found\":%" PRId64 ",\"more\":%s}", sweep.found,
                   is_over ? "false" : "true");
    return fault;
}

const struct operation builtin_thumbnailsweep = {.name = THUMBNAILS_SWEEP,
                                                 .right = RIGHT_ADMIN,
                                                 .work = thumbnailsweep_work,
                                                 .task = {.is_internal = true}};
