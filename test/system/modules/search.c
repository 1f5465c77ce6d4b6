/* search: a class with a schema, and searches of its own, good and bad. */
#include <stampd.h>

#include <stddef.h>

static const struct stampd_item_class book_items[] = {
    {.name = "Main", .is_singleton = true}, {.name = "Copy"}, {.name = NULL}};
static const struct stampd_item_class shared_cache_items[] = {{.name = "Main", .is_singleton = true},
                                                              {.name = NULL}};
static const struct stampd_document_class classes[] = {
    {.name = "Book",
     .items = book_items,
     .schema = "{\"items\":{\"Main\":{\"singleton\":true,\"fields\":{\"title\":\"string\",\"year\":\"int\"}},"
               "\"Copy\":{}},"
               "\"collections\":{\"year\":{\"key\":[\"Main.year\"],\"mutable\":true}}}"},
    {.name = "Shelf", .items = shared_cache_items},
    {.name = NULL},
};

static const struct stampd_search searches[] = {
    {.name = "Since",
     .sql = "select id, title, year from \"x_Book_Main\" where year >= $1::int order by year, id -- oldest "
            "first",
     .arguments = 1},
    {.name = "Echo",
     .sql = "select $1 as a, '$2' as literal, $2 is null as is_null, $3::int + 1 as c",
     .arguments = 3},
    {.name = "Many", .sql = "select g from generate_series(1, $1::int) g", .arguments = 1},
    {.name = "Large", .sql = "select repeat('x', $1::int) as x", .arguments = 1},
    {.name = "Deep",
     .sql = "select (repeat('[', $1::int) || repeat(']', $1::int))::json as x",
     .arguments = 1},
    {.name = "Sleep", .sql = "select pg_sleep($1::float8)::text as x", .arguments = 1},
    {.name = "Lock", .sql = "select id from doc for update"},
    {.name = "Write", .sql = "select member_write('Book', array['b1'])::text as x"},
    {.name = "Unbind", .sql = "select set_config('transaction_read_only', 'off', true) as x"},
    {.name = "Wrong", .sql = "select nothing from nowhere where x = $1", .arguments = 1},
    {.name = "Lacking", .sql = "select $1 as a, $2 as b", .arguments = 1},
    {.name = NULL},
};

/* param {"name", "args": [string | null …]} */
static enum stampd_outcome search(struct stampd_call *call)
{
    const char *arguments[16];
    size_t count = 0;
    const struct stampd_json *param = stampd_param(call),
                             *list = stampd_read_array(call, param, "args", 0, 16);
    for (const struct stampd_json *one = stampd_first(call, list); one; one = stampd_next(one))
        arguments[count++] = stampd_read_text_or(call, one, NULL, 0, 1000, NULL);
    const struct stampd_json *rows =
        stampd_run_search(call, stampd_read_text(call, param, "name", 1, 32), arguments, count);
    return stampd_result_value(call, rows);
}

static enum stampd_outcome nothing(struct stampd_call *call)
{
    (void)call;
    return STAMPD_DONE;
}

static enum stampd_outcome search_late(struct stampd_call *call)
{
    stampd_run_search(call, "Many", (const char *const[]){"1"}, 1);
    return STAMPD_DONE;
}

static const struct stampd_operation operations[] = {
    {.name = "Search", .access = STAMPD_PUBLIC, .work = search},
    {.name = "SearchBriefly", .access = STAMPD_PUBLIC, .work = search, .seconds = 1},
    {.name = "SearchLate", .access = STAMPD_PUBLIC, .work = nothing, .afterwork = search_late},
    {.name = NULL},
};

const struct stampd_module stampd_module = {.abi = STAMPD_ABI,
                                            .name = "search",
                                            .version = "1",
                                            .classes = classes,
                                            .operations = operations,
                                            .searches = searches};
