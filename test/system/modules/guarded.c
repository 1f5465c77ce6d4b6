/* guarded: operations of every kind of access, for the tests of what strangers get. */
#include <stampd.h>

#include <string.h>

static enum stampd_outcome hello(struct stampd_call *call)
{
    struct stampd_writer *result = stampd_write_object(call);
    stampd_add_text(result, "hello", stampd_namespace(call));
    return stampd_result(call, result);
}

static enum stampd_outcome text(struct stampd_call *call)
{
    return stampd_result_text(call, NULL, stampd_bytes("hello", 5));
}

/* {"id"}: changes a document of its own. */
static enum stampd_outcome count(struct stampd_call *call)
{
    const char *id = stampd_read_text_or(call, stampd_param(call), "id", 1, 64, "one");
    struct stampd_writer *value = stampd_write_object(call);
    stampd_add_text(value, "by", stampd_request_id(call));
    stampd_set_written(stampd_fetch(call, "Count", id), "Main", NULL, value);
    return hello(call);
}

/* {"class","id","who"}: ann may read the document, others may not. */
static enum stampd_outcome observation(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    if (strcmp(stampd_read_text_or(call, param, "who", 1, 64, "eve"), "ann") == 0)
        stampd_grant_read(call, stampd_read_text_or(call, param, "class", 1, 16, "Secret"),
                          stampd_read_text_or(call, param, "id", 1, 64, "one"));
    return hello(call);
}

/* The same, with a change, so that it is remembered under an Idempotency-Key. */
static enum stampd_outcome join(struct stampd_call *call)
{
    count(call);
    return observation(call);
}

static const struct stampd_search searches[] = {
    {.name = "Words",
     .sql = "select id, content from item where class = 'Secret' and id = $1",
     .arguments = 1},
    {.name = "Judged",
     .sql = "select class, id, content from item where class = 'Secret' and id = $1",
     .arguments = 1,
     .is_judged = true},
    {.name = NULL},
};

static const struct stampd_json *rows_of(struct stampd_call *call, const char *search)
{
    const char *id = stampd_read_text_or(call, stampd_param(call), "id", 1, 64, "one");
    return stampd_run_search(call, search, &id, 1);
}

/* {"id"}: what a search of the module's own finds, for administrators. */
static enum stampd_outcome rows(struct stampd_call *call)
{
    return stampd_result_value(call, rows_of(call, "Words"));
}

/* {"id"}: the same search by anybody, who is told nothing of it. */
static enum stampd_outcome rows_unseen(struct stampd_call *call)
{
    rows_of(call, "Words");
    return hello(call);
}

/* {"id"}: what a judged search finds, by anybody. */
static enum stampd_outcome rows_judged(struct stampd_call *call)
{
    return stampd_result_value(call, rows_of(call, "Judged"));
}

static const struct stampd_operation operations[] = {
    {.name = "RowsJudged", .access = STAMPD_PUBLIC, .work = rows_judged},
    {.name = "Rows", .work = rows},
    {.name = "RowsUnseen", .access = STAMPD_PUBLIC, .work = rows_unseen},
    {.name = "Hello", .access = STAMPD_PUBLIC, .work = hello},
    {.name = "HelloSafely", .access = STAMPD_PUBLIC, .is_read_only = true, .work = hello},
    {.name = "Text", .access = STAMPD_PUBLIC, .is_read_only = true, .work = text},
    {.name = "Count", .access = STAMPD_PUBLIC, .work = count},
    {.name = "Look",
     .access = STAMPD_PUBLIC,
     .is_read_only = true,
     .work = observation,
     .flags = STAMPD_GRANTS_READ},
    {.name = "Join", .access = STAMPD_PUBLIC, .work = join, .flags = STAMPD_GRANTS_READ},
    {.name = "Rule", .work = hello},
    {.name = NULL},
};

const struct stampd_module stampd_module = {
    .abi = STAMPD_ABI, .name = "guarded", .version = "1.0", .operations = operations, .searches = searches};
