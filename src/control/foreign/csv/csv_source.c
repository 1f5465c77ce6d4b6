/* csv_source: records of the reader, written by the mapping. */
#include "control/foreign/csv/csv_source.h"

#include "control/message.h"

static struct csv_source *of(struct foreign_source *source)
{
    return (struct csv_source *)source;
}

static void take_place(struct csv_source *csv)
{
    csv->source.line = csv->reader.line;
    csv->source.last_line = csv->reader.input.line;
    csv->source.offset = csv->reader.input.offset;
}

static bool csv_source_read_header(struct csv_source *csv, struct arena *arena)
{
    struct csv_record header;
    const char *problem = "expected a header, the names of the columns";
    if (csv_reader_header(&csv->reader, &header, &problem) == CSV_RECORD) {
        for (size_t i = 0; i < header.count; i++)
            header.fields[i] = (struct bytes){arena_copy(arena, header.fields[i].data, header.fields[i].size),
                                              header.fields[i].size};
        csv->header_line = csv->reader.input.line;
        csv->is_joined = csv->header_line > csv->reader.line;
        csv->has_rows = false;
        if (csv_mapping_bind(csv->mapping, &header, &problem))
            return true;
    }
    message_print("%s:%lld: %s", csv->source.path, (long long)csv->reader.line, problem);
    return false;
}

static bool open_csv(struct foreign_source *source, struct control *control, struct arena *arena)
{
    struct csv_source *csv = of(source);
    const char *problem;
    csv->mapping =
        csv_mapping_read(arena, &control->settings, source->mapping_text, csv->class, csv->id, &problem);
    if (!csv->mapping) {
        message_print("%s: %s", source->mapping_path ? source->mapping_path : "import-csv", problem);
        return false;
    }
    if (!csv_reader_open(&csv->reader, source->path, csv_mapping_separator(csv->mapping)))
        return false;
    source->size = csv->reader.input.size;
    if (csv_source_read_header(csv, arena))
        return true;
    csv_reader_close(&csv->reader);
    return false;
}

/* A header of several lines and nothing else is a quote that was forgotten. */
static enum foreign_event end_rows(struct csv_source *csv, const char **problem_r)
{
    csv_reader_digest(&csv->reader, csv->source.digest);
    if (csv->has_rows || !csv->is_joined)
        return FOREIGN_END;
    *problem_r = "no rows: a quoted field makes all lines one header";
    return FOREIGN_FAILED;
}

static enum foreign_event next_row(struct foreign_source *source, struct importer_files *files UNUSED,
                                   int64_t number, struct builder *lines, const char **problem_r)
{
    struct csv_source *csv = of(source);
    struct csv_record record;
    enum csv_event event = csv_reader_next(&csv->reader, &record, problem_r);
    take_place(csv);
    if (event == CSV_END)
        return end_rows(csv, problem_r);
    csv->has_rows = true;
    if (event != CSV_RECORD)
        return event == CSV_WRONG ? FOREIGN_WRONG : FOREIGN_FAILED;
    if (!csv_mapping_write(csv->mapping, csv->reader.arena, &record, number, lines, problem_r))
        return FOREIGN_WRONG;
    source->id = csv_mapping_id(csv->mapping, &record);
    return FOREIGN_DOCUMENT;
}

static void csv_source_sum_up(struct foreign_source *source)
{
    const struct csv_source *csv = of(source);
    if (!csv->has_rows)
        message_print("%s: the file ends after its header, on line %lld: it has no rows", source->path,
                      (long long)csv->header_line);
}

static void close_csv(struct foreign_source *source)
{
    csv_reader_close(&of(source)->reader);
}

void csv_source_init(struct csv_source *csv, struct arena *arena, const char *class, const char *id)
{
    static const struct foreign_calls calls = {.kind = "csv",
                                               .unit = "rows",
                                               .open = open_csv,
                                               .next = next_row,
                                               .sum_up = csv_source_sum_up,
                                               .close = close_csv};
    *csv = (struct csv_source){.class = class, .id = id};
    csv->source.calls = &calls;
    csv->source.options = arena_printf(arena, "%s\n%s\n", class ? class : "", id ? id : "");
}
