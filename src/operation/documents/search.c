/* search: runs a search in SQL that the schema declares (searches.md).
 * param {"name","args":{…}} → out {"rows":[{column:value…}…],"more":true}.  The rows are not judged one by
 * one: the caller must be able to read all documents, with all items, of the class that the search names.  To
 * all others it is not there.  True at one instant, by itself. */
#include "operation/builtin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edge/pg/pg_params.h"
#include "model/rules/rules_schema.h"
#include "operation/access/access.h"
#include "operation/classes.h"
#include "operation/judge/filters.h"
#include "operation/reader.h"
#include "store/collections/store_search.h"

enum { LIST_MOST = 100 };

static bool may_call(const struct call *call, const struct named_search *search)
{
    if (access_is_administrator(call))
        return true;
    if (filters_cover(call->filters, search->class)) /* a module decides for each document */
        return false;
    return !call->rules || rules_outline_whole(call->rules, &call->caller, search->class);
}

/* --- arguments --- */

static enum fault wrong(const struct reader *reader, const struct json *value,
                        const struct named_search_value *param)
{
    struct arena *arena = reader->call->arena;
    return reader_wrong_value(
        reader, value, arena_copy(arena, param->name.data, param->name.size),
        arena_printf(arena, "A value of type %s, or null, is expected.", named_search_type_name(param)));
}

static enum fault add_list(const struct reader *reader, const struct json *list,
                           const struct named_search_value *param, struct pg_params *params)
{
    struct arena *arena = reader->call->arena;
    struct bytes *texts = ARENA_ARRAY(arena, struct bytes, LIST_MOST);
    int64_t *numbers = ARENA_ARRAY(arena, int64_t, LIST_MOST);
    size_t count = 0;
    if (list->kind != JSON_ARRAY || list->is_shallow || list->count > LIST_MOST)
        return wrong(reader, list, param);
    for (const struct json *one = list->first; one; one = one->next, count++) {
        texts[count] = one->value;
        bool fits =
            param->type == NAMED_STRING ? one->kind == JSON_STRING : json_is_i64(one, &numbers[count]);
        if (!fits)
            return wrong(reader, one, param);
    }
    if (param->type == NAMED_STRING)
        pg_params_add_text_array(params, texts, count);
    else
        pg_params_add_i64_array(params, numbers, count);
    return FAULT_NONE;
}

static enum fault add_number(const struct reader *reader, const struct json *value,
                             const struct named_search_value *param, struct pg_params *params)
{
    int64_t number;
    if (param->type == NAMED_DOUBLE) {
        double real = value->kind == JSON_NUMBER
                          ? strtod(arena_copy(params->arena, value->value.data, value->value.size), NULL)
                          : HUGE_VAL;
        if (!isfinite(real))
            return wrong(reader, value, param);
        pg_params_add_f64(params, real);
        return FAULT_NONE;
    }
    if (!json_is_i64(value, &number) || (param->type == NAMED_INT && (int32_t)number != number))
        return wrong(reader, value, param);
    if (param->type == NAMED_INT)
        pg_params_add_i32(params, (int32_t)number);
    else
        pg_params_add_i64(params, number);
    return FAULT_NONE;
}

static enum fault add_value(const struct reader *reader, const struct json *value,
                            const struct named_search_value *param, struct pg_params *params)
{
    struct bytes account = reader->call->caller.account;
    if (param->type == NAMED_ACCOUNT) {
        pg_params_add_text(params, account.size ? account : NO_BYTES);
        return FAULT_NONE;
    }
    if (!value || value->kind == JSON_NULL) {
        pg_params_add_text(params, NO_BYTES);
        return FAULT_NONE;
    }
    if (param->is_list)
        return add_list(reader, value, param, params);
    bool is_truth = value->kind == JSON_TRUE || value->kind == JSON_FALSE;
    switch (param->type) {
    case NAMED_STRING:
        if (value->kind != JSON_STRING)
            return wrong(reader, value, param);
        pg_params_add_text(params, value->value);
        return FAULT_NONE;
    case NAMED_BOOLEAN:
        if (!is_truth)
            return wrong(reader, value, param);
        pg_params_add_text(params, value->text);
        return FAULT_NONE;
    default:
        return add_number(reader, value, param, params);
    }
}

/* Nobody but the server says who the caller is. */
static const char *known_names(const struct call *call, const struct named_search *search)
{
    const char *names = "";
    for (size_t i = 0; i < search->param_count; i++)
        if (search->params[i].type != NAMED_ACCOUNT)
            names = arena_printf(call->arena, "%s%s%.*s", names, *names ? " " : "",
                                 (int)search->params[i].name.size, search->params[i].name.data);
    return names;
}

static enum fault read_values(const struct reader *reader, const struct named_search *search,
                              struct pg_params *params)
{
    struct arena *arena = reader->call->arena;
    const struct json *args = json_member(reader->call->param, "args");
    enum fault fault = FAULT_NONE;
    if (args && (args->kind != JSON_OBJECT || args->is_shallow))
        return reader_wrong(reader, reader->call->param, "args", "An object of parameters is expected.");
    if (args)
        fault = reader_members(reader, args, known_names(reader->call, search));
    pg_params_start(params, arena);
    for (size_t i = 0; i < search->param_count && !fault; i++) {
        const struct named_search_value *param = &search->params[i];
        const char *name = arena_copy(arena, param->name.data, param->name.size);
        fault = add_value(reader, json_member(args, name), param, params);
    }
    return fault;
}

/* --- the operation --- */

/* Does the search read a view of this item by its name, as far as its text shows? */
static bool names_view(const struct named_search *search, struct bytes class, struct bytes item)
{
    char name[80];
    int size =
        snprintf(name, sizeof name, "item_%.*s_%.*s", (int)class.size, class.data, (int)item.size, item.data);
    return memmem(search->sql.data, search->sql.size, name, (size_t)size) != NULL;
}

/* The class whose items the search would read while they are filled or rewritten; NO_BYTES: there is none. */
static struct bytes find_unready(const struct schema *schema, const struct named_search *search)
{
    for (size_t c = 0; c < schema->class_count; c++) {
        const struct schema_class *class = &schema->classes[c];
        if (class->is_old)
            return class->name;
        for (size_t i = 0; i < class->item_count; i++)
            for (size_t f = 0; f < class->items[i].field_count; f++)
                if (!class->items[i].fields[f].is_ready &&
                    names_view(search, class->name, class->items[i].name))
                    return class->name;
    }
    return NO_BYTES;
}

static enum fault write_rows(struct attempt *attempt, const struct named_rows *rows)
{
    struct builder *body = attempt->reply->body;
    builder_add_text(body, "{\"rows\":[");
    for (size_t i = 0; i < rows->count; i++) {
        if (i)
            builder_add_text(body, ",");
        builder_add_bytes(body, rows->rows[i]);
    }
    builder_add_bytes(body, bytes_of(rows->has_more ? "],\"more\":true}" : "]}"));
    return FAULT_NONE;
}

static enum fault refuse(const struct reader *reader, const struct named_search *search, enum fault fault)
{
    const char *name = arena_copy(reader->call->arena, search->name.data, search->name.size);
    if (fault == FAULT_OBUILDING)
        return reply_fault(reader->call, reader->reply, fault, NULL, name, NULL);
    if (fault == FAULT_AARG)
        return reader_wrong(reader, reader->call->param, "args",
                            "Values that the search can compute with are expected.");
    if (fault == FAULT_ALIMIT)
        return reply_fault(reader->call, reader->reply, fault, "It needs too much space on disk.",
                           "temp_file_limit", NULL);
    return fault;
}

static enum fault run(struct attempt *attempt, const struct reader *reader, const struct schema *schema,
                      const struct named_search *search)
{
    struct pg_params params;
    struct named_rows rows;
    enum fault fault = read_values(reader, search, &params);
    if (fault)
        return fault;
    if (find_unready(schema, search).size)
        return classes_confirm(attempt, refuse(reader, search, FAULT_OBUILDING));
    fault = store_search_named(documents_store(attempt->worker_context->documents), attempt->ns,
                               attempt->call->arena, search, schema->number, &params, &rows);
    if (fault == FAULT_STALE) /* its function is gone, under this schema or because there is a newer one */
        fault = classes_confirm(attempt, FAULT_OBUILDING);
    return fault ? refuse(reader, search, fault) : write_rows(attempt, &rows);
}

static enum fault search_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    const struct json *param = attempt->call->param;
    const struct schema *schema;
    struct bytes name;
    enum fault fault =
        FAULT_FIRST(reader_members(&reader, param, "name args"), reader_text(&reader, param, "name", &name));
    if (!fault && !name.data)
        fault = reader_wrong(&reader, param, "name", "The name of a search is expected.");
    if (!fault)
        fault = classes_schema(attempt, &schema);
    if (fault)
        return fault;
    const struct named_search *search = schema_find_search(schema, name);
    if (search && may_call(attempt->call, search))
        return run(attempt, &reader, schema, search);
    fault = reply_fault(attempt->call, attempt->reply, FAULT_NSEARCH, NULL,
                        arena_copy(attempt->call->arena, name.data, name.size), NULL);
    return classes_confirm(attempt, fault);
}

const struct operation builtin_search = {
    .name = "search", .right = RIGHT_READ, .is_safe = true, .obeys_rules = true, .work = search_work};
