/* archive_filter: what selects documents is passed in settings of the session. */
#include "control/archive/archive_filter.h"

#include "control/message.h"
#include "edge/pg/pg_copy.h"

/* COPY has no parameters: what selects documents is passed in settings of the session. */
static bool archive_filter_set(struct control *control, struct pg *pg, const char *name,
                               const char *const *texts, size_t count)
{
    struct pg_result *row;
    struct bytes *values = ARENA_ARRAY(control->arena, struct bytes, count + 1);
    for (size_t i = 0; i < count; i++)
        values[i] = bytes_of(texts[i]);
    return control_query(control, pg, "selecting documents",
                         "select set_config($1::text, ($2::text[])::text, false)",
                         PG_PARAMS(control->arena, PG_TEXT(bytes_of(name)), PG_TEXTS(values, count)), &row);
}

static bool set_all(struct control *control, struct pg *pg, const struct archive_filter *filter)
{
    const char *version = arena_printf(control->arena, "%lld", (long long)filter->since_version);
    return archive_filter_set(control, pg, "stampd.archive_classes", filter->classes, filter->class_count) &&
           archive_filter_set(control, pg, "stampd.archive_ids", filter->ids, filter->id_count) &&
           archive_filter_set(control, pg, "stampd.archive_version", &version, 1) &&
           archive_filter_set(control, pg, "stampd.archive_snapshot", &filter->since_snapshot, 1) &&
           archive_filter_set(control, pg, "stampd.archive_code", &filter->configuration, 1);
}

static const char of_classes[] = " and d.class = any (current_setting('stampd.archive_classes')::text[])";
static const char of_ids[] = " and d.id = any (current_setting('stampd.archive_ids')::text[])";
static const char since_version[] =
    " and d.version > (current_setting('stampd.archive_version')::text[])[1]::bigint";
/* The low half of the number of a transaction stands in each row; older than 2^31 transactions is as good as
 * newer: it is included once more. */
static const char since_snapshot[] =
    " and mod(d.xmin::text::bigint - mod(pg_snapshot_xmin((current_setting('stampd.archive_snapshot')"
    "::text[])[1]::pg_snapshot)::text::bigint, 4294967296) + 4294967296, 4294967296) < 2147483648";
static const char of_configuration[] =
    " and ((d.class in ('Namespace', 'Schema', 'Resources') and"
    " d.id = (current_setting('stampd.archive_code')::text[])[1]) or (d.class = 'Resource' and"
    " starts_with(d.id, (current_setting('stampd.archive_code')::text[])[1] || '/')))";

static void archive_filter_add(struct builder *sql, bool is_wanted, const char *text)
{
    if (is_wanted)
        builder_add_bytes(sql, bytes_of(text));
}

bool archive_filter_copy(struct control *control, struct pg *pg, const struct archive_filter *filter,
                         const char *start, const char *order)
{
    struct builder sql = {0};
    if (!set_all(control, pg, filter))
        return false;
    archive_filter_add(&sql, true, start);
    archive_filter_add(&sql, filter->class_count > 0, of_classes);
    archive_filter_add(&sql, filter->id_count > 0, of_ids);
    archive_filter_add(&sql, filter->since_version > 0, since_version);
    archive_filter_add(&sql, filter->since_snapshot != NULL, since_snapshot);
    archive_filter_add(&sql, filter->configuration != NULL, of_configuration);
    builder_printf(&sql, " order by %s) to stdout (format binary)", order);
    enum fault fault = pg_copy_out(pg, sql.data);
    builder_free(&sql);
    if (fault)
        message_print("reading the documents: %s", pg_message(pg));
    return fault == FAULT_NONE;
}

bool archive_filter_store(struct control *control, const struct data_keys *keys,
                          const struct archive_filter *filter, struct archive_filter *stored_r)
{
    struct arena *arena = control->arena;
    *stored_r = *filter;
    if (!filter->id_count || !data_keys_has_ids(keys))
        return true;
    size_t encrypted = 0;
    for (size_t c = 0; c < filter->class_count; c++)
        encrypted += data_keys_encrypts_ids(keys, bytes_of(filter->classes[c]));
    if (!filter->class_count || (encrypted && encrypted < filter->class_count)) {
        /* the database would read the id in clear, for the other classes */
        return message_refuse("--id is expected with --class, of classes with encrypted ids or of others");
    }
    const char **ids = ARENA_ARRAY(arena, const char *, filter->class_count * filter->id_count);
    size_t count = 0;
    for (size_t c = 0; c < filter->class_count; c++)
        for (size_t i = 0; i < filter->id_count; i++) {
            struct bytes stored =
                data_keys_seal_id(keys, arena, bytes_of(filter->classes[c]), bytes_of(filter->ids[i]));
            ids[count++] = arena_copy(arena, stored.data, stored.size);
        }
    stored_r->ids = ids;
    stored_r->id_count = count;
    return true;
}
