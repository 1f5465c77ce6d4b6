/* couch_source: rows of the reader, written by the mapping. */
#include "control/foreign/couch/couch_source.h"

#include <string.h>

#include "control/foreign/couch/couch_text.h"
#include "control/message.h"

static struct couch_source *of(struct foreign_source *source)
{
    return (struct couch_source *)source;
}

static bool open_couch(struct foreign_source *source, struct control *control, struct arena *arena)
{
    struct couch_source *couch = of(source);
    const char *problem;
    source->line = source->last_line = 0;
    couch->mapping =
        couch_mapping_read(arena, &control->settings, source->mapping_text, couch->class, &problem);
    if (!couch->mapping)
        message_print("%s: %s", source->mapping_path ? source->mapping_path : "import-couchdb", problem);
    if (!couch->mapping || !couch_reader_open(&couch->reader, source->path))
        return false;
    if (couch->leaves_attachments)
        couch_mapping_leave_attachments(couch->mapping);
    source->size = couch->reader.size;
    couch->arena = arena_create("couch");
    return true;
}

/* Lines that pouchdb-dump and couchbackup write beside documents: {"version":…,"db_info":…}, {"seq":…},
 * {"name":"@cloudant/couchbackup",…}. */
static bool is_remark(struct bytes object)
{
    bool has_one_member = !memchr(object.data, ',', object.size);
    return !couch_text_member(object, BYTES("id")).size &&
           ((has_one_member && couch_text_member(object, BYTES("seq")).size) ||
            (couch_text_member(object, BYTES("db_info")).size &&
             couch_text_member(object, BYTES("version")).size) ||
            bytes_equal(couch_text_member(object, BYTES("name")), BYTES("\"@cloudant/couchbackup\"")));
}

static enum foreign_event next_row(struct foreign_source *source, struct importer_files *files,
                                   int64_t number, struct builder *lines, const char **problem_r)
{
    struct couch_source *couch = of(source);
    struct bytes row;
    arena_reset(couch->arena);
    enum couch_event event = couch_reader_next(&couch->reader, &row, problem_r);
    source->line = ++source->last_line;
    source->offset = couch->reader.offset;
    if (event == COUCH_END)
        couch_reader_digest(&couch->reader, source->digest);
    if (event != COUCH_ROW)
        return event == COUCH_END ? FOREIGN_END : FOREIGN_FAILED;
    *problem_r = NULL;
    if (!couch->reader.is_answer) {
        struct bytes id = couch_text_member(row, BYTES("_id"));
        if (!id.size && is_remark(row))
            return FOREIGN_LEFT_OUT;
        if (id.size) {
            couch_text_wrap(&couch->row, id, row, false);
            row = builder_bytes(&couch->row);
        }
    }
    source->id = couch_text_member(row, BYTES("id"));
    return couch_mapping_write(couch->mapping, couch->arena, row, number, files, lines, problem_r);
}

static void couch_source_sum_up(struct foreign_source *source)
{
    int64_t count = couch_mapping_left_out(of(source)->mapping);
    if (count)
        message_print("%s: %lld attachments are left out", source->path, (long long)count);
}

static void close_couch(struct foreign_source *source)
{
    builder_free(&of(source)->row);
    of(source)->row = (struct builder){0};
    couch_reader_close(&of(source)->reader);
    arena_destroy(of(source)->arena);
}

void couch_source_init(struct couch_source *couch, struct arena *arena, const char *class,
                       bool leaves_attachments)
{
    *couch = (struct couch_source){.class = class, .leaves_attachments = leaves_attachments};
    couch->calls = (struct foreign_calls){.kind = "couchdb",
                                          .unit = "documents",
                                          .attaches = !leaves_attachments,
                                          .open = open_couch,
                                          .next = next_row,
                                          .sum_up = couch_source_sum_up,
                                          .close = close_couch};
    couch->source.calls = &couch->calls;
    couch->source.options =
        arena_printf(arena, "%s\n%s", class ? class : "", leaves_attachments ? "without attachments\n" : "");
}
