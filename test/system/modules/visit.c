/* visit: reads, changes and finds documents in each way that stampd.h has, by the ids that clients have. */
#include <stampd.h>

enum { ID = 255, AGE_S = 60, MANY = 100 };

static void describe(struct stampd_call *call, struct stampd_writer *result, struct stampd_document *document)
{
    struct stampd_item item = {0};
    stampd_open_object(result, NULL);
    stampd_add_text(result, "c", stampd_document_class(document));
    stampd_add_text(result, "id", stampd_document_id(document));
    stampd_add_boolean(result, "exists", stampd_exists(document));
    stampd_add_integer(result, "v", stampd_version(document));
    stampd_add_integer(result, "volume", stampd_volume(document));
    stampd_add_boolean(result, "may", stampd_may_read(document) && stampd_may_list(document));
    stampd_open_array(result, "items");
    while (!stampd_failed(call) && stampd_next_item(document, NULL, &item)) {
        stampd_open_object(result, NULL);
        stampd_add_text(result, "k", item.key);
        stampd_add_content(result, "j", &item);
        stampd_close(result);
    }
    stampd_close(result);
    stampd_close(result);
}

/* {"id","to","ns"}: reads Person/id in each way, in `ns` too; copies its line `a` to Person/to, creates
 * Plan/to and deletes Paper/id; requests a task. */
static enum stampd_outcome visit(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    const char *id = stampd_read_text(call, param, "id", 1, ID),
               *to = stampd_read_text(call, param, "to", 1, ID);
    const struct stampd_name names[] = {{"Person", id}, {"Person", to}, {"Plan", to}, {"Paper", id}};
    struct stampd_document *found[4];
    struct stampd_writer *result = stampd_write_object(call), *task = stampd_write_object(call);
    stampd_fetch_many(call, names, 4, found);
    stampd_open_array(result, "seen");
    for (size_t i = 0; i < 4; i++)
        describe(call, result, found[i]);
    describe(call, result, stampd_read(call, "Note", "plain", AGE_S));
    describe(call, result,
             stampd_read_other(call, stampd_read_text(call, param, "ns", 1, ID), "Person", id, AGE_S));
    stampd_close(result);
    stampd_copy_item(found[1], "Line", "copied", found[0], "Line", "a");
    stampd_set_json(found[2], "Info", NULL, stampd_bytes("{\"day\":7}", 9));
    stampd_delete(found[3]);
    stampd_add_text(task, "id", id);
    stampd_schedule(call, &(struct stampd_task){.operation = "Walk",
                                                .param = stampd_written(task),
                                                .resource = "walk",
                                                .domain = "visits",
                                                .info = "a walk"});
    stampd_grant_read(call, "Person", to);
    return stampd_result(call, result);
}

static enum stampd_outcome after_visit(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    const char *id = stampd_read_text(call, param, "id", 1, ID),
               *to = stampd_read_text(call, param, "to", 1, ID);
    struct stampd_writer *result = stampd_write_object(call);
    stampd_add_value(result, "seen", stampd_member(call, stampd_result_of_work(call), "seen"));
    stampd_add_integer(result, "person", stampd_version_after(call, "Person", to));
    stampd_add_integer(result, "plan", stampd_version_after(call, "Plan", to));
    stampd_add_integer(result, "paper", stampd_version_after(call, "Paper", id));
    return stampd_result(call, result);
}

static const struct stampd_json *found_by(struct stampd_call *call, const char *search, const char *class)
{
    return stampd_run_search(call, search, &class, 1);
}

/* A task: goes through all of Person by a search, fetches each by the id that its row has, and writes those
 * that were there into Note/walked. */
static enum stampd_outcome walk(struct stampd_call *call)
{
    const struct stampd_json *rows = found_by(call, "Documents", "Person");
    struct stampd_document *note = stampd_fetch(call, "Note", "walked");
    struct stampd_writer *seen = stampd_write_array(call);
    if (stampd_is_task(call) && !stampd_checkpoint(call)) {
        struct stampd_writer *checkpoint = stampd_write_object(call);
        stampd_add_text(checkpoint, "id", stampd_read_text(call, stampd_param(call), "id", 1, ID));
        stampd_set_checkpoint(call, checkpoint);
        return STAMPD_DONE;
    }
    for (const struct stampd_json *row = stampd_first(call, rows); row; row = stampd_next(row)) {
        const char *id = stampd_read_text(call, row, "id", 1, ID);
        if (stampd_exists(stampd_fetch(call, "Person", id)))
            stampd_add_text(seen, NULL, id);
    }
    stampd_set_written(note, "Main", NULL, seen);
    return STAMPD_DONE;
}

/* {"search","c"}: its rows. */
static enum stampd_outcome rows(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    return stampd_result_value(call, found_by(call, stampd_read_text(call, param, "search", 1, MANY),
                                              stampd_read_text(call, param, "c", 1, ID)));
}

static const struct stampd_search searches[] = {
    {.name = "Documents",
     .sql = "select class, id, version from doc where class = $1 and ctime <> 0",
     .arguments = 1},
    {.name = "Judged",
     .sql = "select version, id, 'x' as more, class from doc where class = $1 and ctime <> 0",
     .arguments = 1,
     .is_judged = true},
    {.name = "Nameless", .sql = "select id from doc where class = $1 and ctime <> 0", .arguments = 1},
    {.name = "Wrong", .sql = "select $1 as class, 'no id of it' as id", .arguments = 1},
    {.name = NULL},
};

static const struct stampd_operation operations[] = {
    {.name = "Visit",
     .access = STAMPD_PUBLIC,
     .work = visit,
     .afterwork = after_visit,
     .flags = STAMPD_GRANTS_READ},
    {.name = "Walk", .access = STAMPD_PUBLIC, .work = walk},
    {.name = "Rows", .access = STAMPD_PUBLIC, .is_read_only = true, .work = rows},
    {.name = NULL},
};

const struct stampd_module stampd_module = {
    .abi = STAMPD_ABI, .name = "visit", .version = "1.0", .operations = operations, .searches = searches};
