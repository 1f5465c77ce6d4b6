/* fuzz_csv: csv_record_read, and a mapping of its fields: the first line of the input is a mapping, the
 * second the header, the rest a record.  What a record gives is a line that import reads, with contents that
 * are JSON; fields, written again, are read as the same. */
#include "fuzz.h"

#include "control/archive/archive_line.h"
#include "control/foreign/csv/csv_mapping.h"
#include "edge/json/json.h"

const char fuzz_target[] = "csv";

static void check_again(struct arena *arena, const struct csv_record *record)
{
    struct builder text = {0};
    struct csv_record again;
    const char *why;
    for (size_t i = 0; i < record->count; i++) {
        struct bytes rest = record->fields[i];
        if (i)
            builder_add_text(&text, ",");
        builder_add_text(&text, "\"");
        while (rest.size) {
            bool has_quote = memchr(rest.data, '"', rest.size) != NULL;
            builder_add_bytes(&text, bytes_cut(&rest, '"'));
            if (has_quote)
                builder_add_text(&text, "\"\"");
        }
        builder_add_text(&text, "\"");
    }
    assert(!csv_record_is_open(builder_bytes(&text), ',', false));
    bool is_good = csv_record_read(arena, builder_bytes(&text), ',', &again, &why);
    assert(is_good && again.count == record->count);
    for (size_t i = 0; i < record->count; i++)
        assert(bytes_equal(again.fields[i], record->fields[i]));
    builder_free(&text);
}

static void check_line(struct arena *arena, struct bytes line)
{
    static const struct json_limits limits = {.depth = 128, .tree_depth = 1};
    struct archive_document document;
    struct json *root;
    struct json_problem problem;
    const char *why;
    assert(line.size && line.data[line.size - 1] == '\n');
    line.size--;
    assert(!memchr(line.data, '\n', line.size));
    bool is_good = archive_line_read(arena, line, &document, &why);
    assert(is_good && !document.is_deleted && json_read(arena, line, &limits, &root, &problem) == FAULT_NONE);
    for (size_t i = 0; i < document.count; i++)
        assert(!document.items[i].is_raw &&
               json_read(arena, document.items[i].content, &limits, &root, &problem) == FAULT_NONE);
}

static void check(struct arena *arena, struct bytes rest)
{
    static const struct settings settings = {.limit_content_bytes = 1024,
                                             .limit_depth = 32,
                                             .limit_document_bytes = 4096,
                                             .limit_items = 100,
                                             .limit_name_bytes = 255};
    struct bytes mapping_text = bytes_cut(&rest, '\n'), header_text = bytes_cut(&rest, '\n');
    struct csv_record header, record;
    struct builder lines = {0};
    const char *why = NULL;
    bool is_good = csv_record_read(arena, rest, ',', &record, &why);
    assert(!is_good || !csv_record_is_open(rest, ',', false));
    if (is_good)
        check_again(arena, &record);
    else
        assert(why && *why);
    struct csv_mapping *mapping = csv_mapping_read(arena, &settings, mapping_text, NULL, NULL, &why);
    if (!mapping) {
        assert(why && *why);
        return;
    }
    char separator = csv_record_separator(arena, header_text, csv_mapping_separator(mapping), &why);
    if (separator && csv_record_read(arena, header_text, separator, &header, &why) &&
        csv_mapping_bind(mapping, &header, &why) && csv_record_read(arena, rest, separator, &record, &why) &&
        csv_mapping_write(mapping, arena, &record, 1, &lines, &why))
        check_line(arena, builder_bytes(&lines));
    else
        assert(why && *why && !lines.size);
    builder_free(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_create("fuzz");
    check(arena, (struct bytes){(const char *)data, size});
    arena_destroy(arena);
    return 0;
}
