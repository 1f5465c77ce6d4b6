/* record: members of an object, appended to a builder. */
#include "control/record.h"

#include <stdio.h>

#include "edge/json/json.h"

static void record_add_name(struct record *record, const char *name)
{
    builder_add(&record->text, record->text.size ? "," : "{", 1);
    json_add_string(&record->text, bytes_of(name));
    builder_add_text(&record->text, ":");
}

/* A path or a message of the system may be anything. */
static void add_unknown(struct record *record, struct bytes value)
{
    struct builder copy = {0};
    for (size_t i = 0; i < value.size; i++)
        builder_add(&copy, (unsigned char)value.data[i] < 0x80 ? value.data + i : "?", 1);
    json_add_string(&record->text, builder_bytes(&copy));
    builder_free(&copy);
}

void record_add_text(struct record *record, const char *name, struct bytes value)
{
    record_add_name(record, name);
    if (!value.data)
        builder_add_text(&record->text, "null");
    else if (bytes_is_utf8(value))
        json_add_string(&record->text, value);
    else
        add_unknown(record, value);
}

void record_add_word(struct record *record, const char *name, const char *value)
{
    record_add_text(record, name, bytes_of(value));
}

void record_add_i64(struct record *record, const char *name, int64_t value)
{
    record_add_name(record, name);
    builder_add_i64(&record->text, value);
}

void record_add_bool(struct record *record, const char *name, bool value)
{
    record_add_name(record, name);
    builder_add_bytes(&record->text, value ? BYTES("true") : BYTES("false"));
}

void record_add_json(struct record *record, const char *name, struct bytes json)
{
    record_add_name(record, name);
    size_t start = record->text.size;
    builder_add_bytes(&record->text, json);
    for (size_t i = start; i < record->text.size; i++) /* in a string a line end is written \n */
        if (record->text.data[i] == '\n' || record->text.data[i] == '\r')
            record->text.data[i] = ' ';
}

void record_print(struct record *record)
{
    if (!record->text.size)
        builder_add_text(&record->text, "{");
    builder_add_text(&record->text, "}\n");
    fwrite(record->text.data, 1, record->text.size, stdout);
    builder_free(&record->text);
}
