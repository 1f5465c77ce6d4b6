/* find_totals: the database adds up; values come as texts that are JSON numbers, but for strings. */
#include "operation/documents/find_totals.h"

#include <stdio.h>
#include <stdlib.h>

#include "operation/documents/find_where.h"
#include "store/collections/store_search.h"

enum { FIELDS_MOST = 8 }; /* of one kind */

static const char *const kinds[TOTALS_KINDS] = {"sum", "min", "max", "avg"};

/* --- what is wanted ------------------------------------------------------------------------------ */

static enum fault read_field(const struct reader *reader, const struct search *search,
                             const struct json *element, const char *member, bool must_add,
                             const struct schema_field **field_r)
{
    if (element->kind != JSON_STRING)
        return reader_wrong_value(reader, element, member, "The name of a field is expected.");
    enum fault fault = find_where_field(reader, search, element->value, field_r);
    if (fault)
        return fault;
    enum field_type type = (*field_r)->type;
    if ((*field_r)->is_list || type == FIELD_HASH || type == FIELD_TEXT)
        return reader_wrong_value(reader, element, member, "A list, a hash and a text have no totals.");
    if (must_add && field_type_is_text(type))
        return reader_wrong_value(reader, element, member, "A field of numbers is expected.");
    return FAULT_NONE;
}

/* The elements of a member: a field, or a list of up to `most`; NULL: absent. */
static enum fault read_fields(const struct reader *reader, const struct json *want, const char *member,
                              uint32_t most, const struct json **first_r)
{
    const struct json *fields = json_member(want, member);
    *first_r = fields;
    if (!fields || fields->kind == JSON_STRING)
        return FAULT_NONE;
    if (fields->kind != JSON_ARRAY || fields->is_shallow || !fields->count || fields->count > most)
        return reader_wrong(reader, want, member,
                            most == FIELDS_MOST ? "A field, or a list of 1 to 8, is expected."
                                                : "A field, or two, are expected.");
    *first_r = fields->first;
    return FAULT_NONE;
}

static const struct json *next_of(const struct json *want, const char *member, const struct json *element)
{
    return element == json_member(want, member) ? NULL : element->next;
}

static enum fault read_kind(const struct reader *reader, const struct search *search, const struct json *want,
                            enum totals_kind kind, struct search_totals *totals)
{
    const char *member = kinds[kind];
    bool must_add = kind == TOTALS_SUM || kind == TOTALS_AVG;
    const struct json *one;
    enum fault fault = read_fields(reader, want, member, FIELDS_MOST, &one);
    for (; one && !fault; one = next_of(want, member, one)) {
        if (totals->count == TOTALS_MOST)
            return reader_wrong_value(reader, one, member, "At most 16 totals are expected.");
        struct totals_wish *wish = &totals->wishes[totals->count++];
        wish->kind = kind;
        fault = read_field(reader, search, one, member, must_add, &wish->field);
        for (const struct totals_wish *other = totals->wishes; other < wish && !fault; other++)
            if (other->kind == kind && other->field == wish->field)
                return reader_wrong_value(reader, one, member, "Each field is named once.");
    }
    return fault;
}

enum fault find_totals_read(const struct reader *reader, const struct search *search,
                            struct search_totals *totals_r)
{
    const struct json *want = json_member(reader->call->param, "want"), *one;
    *totals_r = (struct search_totals){.count = 0};
    enum fault fault = reader_members(reader, want, "sum min max avg by");
    if (!fault && want->is_shallow)
        return reader_wrong_value(reader, want, "want", "Names of fields are expected.");
    for (int kind = 0; kind < TOTALS_KINDS && !fault; kind++)
        fault = read_kind(reader, search, want, (enum totals_kind)kind, totals_r);
    if (!fault)
        fault = read_fields(reader, want, "by", TOTALS_GROUPS_MOST, &one);
    for (; !fault && one; one = next_of(want, "by", one)) {
        fault = read_field(reader, search, one, "by", false, &totals_r->groups[totals_r->group_count++]);
        if (!fault && totals_r->group_count == 2 && totals_r->groups[0] == totals_r->groups[1])
            return reader_wrong_value(reader, one, "by", "Each field is named once.");
    }
    return fault;
}

/* --- the answer ---------------------------------------------------------------------------------- */

/* The shortest text of the quotient, of a sum, a slash and a number of values. */
static void write_average(struct builder *body, struct arena *arena, struct bytes value)
{
    char *end, text[32];
    double sum = strtod(arena_copy(arena, value.data, value.size), &end),
           average = sum / strtod(end + 1, NULL);
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, average);
        if (strtod(text, NULL) >= average && strtod(text, NULL) <= average)
            break;
    }
    builder_add_bytes(body, bytes_of(text));
}

static void write_value(struct builder *body, struct arena *arena, const struct schema_field *field,
                        enum totals_kind kind, struct bytes value)
{
    json_add_string(body, field->name);
    builder_add_text(body, ":");
    if (!value.data)
        builder_add_text(body, "null");
    else if (kind == TOTALS_AVG)
        write_average(body, arena, value);
    else if (field_type_is_text(field->type))
        json_add_string(body, value);
    else
        builder_add_bytes(body, value);
}

/* The members of one group; with its values if there are groups. */
static void write_group(struct builder *body, struct arena *arena, const struct search_totals *totals,
                        const struct search_total *total)
{
    const char *before = "{";
    if (totals->group_count)
        builder_add_text(body, "{\"by\":");
    for (size_t i = 0; i < totals->group_count; i++, before = ",") {
        builder_add_bytes(body, bytes_of(before));
        write_value(body, arena, totals->groups[i], TOTALS_MIN, total->values[i]);
    }
    builder_printf(body, "%s\"count\":%lld", totals->group_count ? "}," : "{", (long long)total->count);
    for (size_t i = 0; i < totals->count; i++) {
        const struct totals_wish *wish = &totals->wishes[i];
        bool is_first = !i || wish[-1].kind != wish->kind;
        builder_printf(body, is_first ? ",\"%s\":{" : ",", kinds[wish->kind]);
        write_value(body, arena, wish->field, wish->kind, total->values[totals->group_count + i]);
        if (i + 1 == totals->count || wish[1].kind != wish->kind)
            builder_add_text(body, "}");
    }
}

enum fault find_totals_write(struct attempt *attempt, const struct search *search,
                             const struct search_totals *totals, const struct search_approved *approved,
                             bool has_more)
{
    struct builder *body = attempt->reply->body;
    struct search_sums sums;
    enum fault fault = store_search_totals(documents_store(attempt->worker_context->documents), attempt->ns,
                                           attempt->call->arena, search, totals, approved, &sums);
    if (fault)
        return fault;
    if (approved && sums.found != (int64_t)approved->count)
        return FAULT_STALE;
    if (totals->group_count)
        builder_add_text(body, "{\"groups\":[");
    for (size_t i = 0; i < sums.count; i++) {
        if (i)
            builder_add_text(body, ",");
        write_group(body, attempt->call->arena, totals, &sums.list[i]);
        if (totals->group_count)
            builder_add_text(body, "}");
    }
    if (totals->group_count)
        builder_add_text(body, "]");
    has_more |= sums.has_more || sums.found > search->limit;
    builder_add_bytes(body, bytes_of(has_more ? ",\"more\":true}" : "}"));
    return FAULT_NONE;
}

/* As write_group writes the totals of one kind; what cannot be the name of a field is left out. */
static void write_nulls(const struct json *want, const char *member, struct builder *body)
{
    const struct json *fields = json_member(want, member),
                      *one = fields && fields->kind == JSON_ARRAY ? fields->first : fields;
    const char *before = "";
    if (!one)
        return;
    builder_printf(body, ",\"%s\":{", member);
    for (; one; one = next_of(want, member, one)) {
        if (one->kind != JSON_STRING)
            continue;
        builder_add_bytes(body, bytes_of(before));
        json_add_string(body, one->value);
        builder_add_text(body, ":null");
        before = ",";
    }
    builder_add_text(body, "}");
}

enum fault find_totals_write_none(const struct reader *reader, struct builder *body)
{
    const struct json *want = json_member(reader->call->param, "want");
    enum fault fault = reader_members(reader, want, "sum min max avg by");
    if (fault)
        return fault;
    if (json_member(want, "by")) {
        builder_add_text(body, "{\"groups\":[]}");
        return FAULT_NONE;
    }
    builder_add_text(body, "{\"count\":0");
    for (int kind = 0; kind < TOTALS_KINDS; kind++)
        write_nulls(want, kinds[kind], body);
    builder_add_text(body, "}");
    return FAULT_NONE;
}
