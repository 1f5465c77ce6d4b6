/* couch_position: the row, and its JSON. */
#include "control/foreign/couch/couch_position.h"

#include "control/archive/import_progress.h"
#include "control/foreign/couch/couch_text.h"
#include "control/message.h"

static struct bytes couch_position_keep(struct arena *arena, struct bytes text)
{
    return text.data ? (struct bytes){arena_copy(arena, text.data, text.size), text.size} : NO_BYTES;
}

static void couch_position_read_text(struct arena *arena, struct bytes text, struct couch_position *position)
{
    struct bytes own = couch_position_keep(arena, text);
    position->made = couch_text_member(own, BYTES("made"));
    position->since = couch_text_member(own, BYTES("since"));
    position->after = couch_text_member(own, BYTES("after"));
    position->is_copying = couch_text_member(own, BYTES("copies")).size > 0;
}

bool couch_position_take(struct control *control, struct pg *pg, const char *code,
                         struct couch_position *position, bool *is_there_r)
{
    struct import_progress other;
    struct pg_params params;
    struct pg_result *row;
    bool is_other;
    if (!import_progress_lock(control, pg) || !import_progress_read(control, pg, &is_other, &other))
        return false;
    if (is_other) {
        message_print(
            "an import of an archive or a file was interrupted: complete it, or give it up with import "
            "--abandon %s",
            code);
        return false;
    }
    pg_params_start(&params, control->arena);
    pg_params_add_text(&params, bytes_of(position->source));
    if (!control_query(control, pg, "reading how far the import has come",
                       "select position, documents from stampd.import_source where source = $1::text",
                       &params, &row))
        return false;
    *is_there_r = pg_rows(row) > 0;
    if (*is_there_r) {
        couch_position_read_text(control->arena, pg_get_text(row, 0, 0), position);
        position->documents = pg_get_i64(row, 0, 1);
    }
    return true;
}

static void couch_position_add(struct builder *json, const char *name, struct bytes text)
{
    if (!text.data)
        return;
    builder_printf(json, "%s\"%s\":", json->size > 1 ? "," : "", name);
    builder_add_bytes(json, text);
}

bool couch_position_store(struct control *control, struct pg *pg, const struct couch_position *position)
{
    struct pg_params params;
    struct pg_result *row;
    struct builder json = {0};
    builder_add_text(&json, "{");
    couch_position_add(&json, "made", position->made);
    couch_position_add(&json, "since", position->since);
    couch_position_add(&json, "copies", position->is_copying ? BYTES("true") : NO_BYTES);
    couch_position_add(&json, "after", position->is_copying ? position->after : NO_BYTES);
    builder_add_text(&json, "}");
    pg_params_start(&params, control->arena);
    pg_params_add_text(&params, bytes_of(position->source));
    pg_params_add_text(&params, builder_bytes(&json));
    pg_params_add_i64(&params, position->documents);
    bool is_stored = control_query(
        control, pg, "recording how far the import has come",
        "insert into stampd.import_source (source, position, documents) values ($1::text, $2::text, "
        "$3::bigint)"
        " on conflict (source) do update set position = excluded.position, documents = excluded.documents,"
        " moved = now()",
        &params, &row);
    builder_free(&json);
    return is_stored;
}

bool couch_position_forget(struct control *control, struct pg *pg, const char *source)
{
    struct pg_params params;
    struct pg_result *row;
    pg_params_start(&params, control->arena);
    pg_params_add_text(&params, bytes_of(source));
    return control_query(control, pg, "beginning anew",
                         "delete from stampd.import_source where source = $1::text", &params, &row);
}
