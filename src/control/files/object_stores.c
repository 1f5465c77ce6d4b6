/* object_stores: one section for each store, of lines `name = value`. */
#include "control/files/object_stores.h"

#include <string.h>

#include "base/secret.h"
#include "control/message.h"

enum { TEXT_MOST = 180 };

struct stores_reader {
    struct control *control;
    const char *name;
    struct object_store_place *place;
    const char *problem; /* of the section; NULL: none */
    bool is_found;
};

/* All letters, digits and those of `more`. */
static bool is_of(const char *text, const char *more)
{
    for (const char *byte = text; *byte; byte++)
        if (!((*byte >= '0' && *byte <= '9') || ((*byte | 0x20) >= 'a' && (*byte | 0x20) <= 'z') ||
              strchr(more, *byte)))
            return false;
    return *text && strlen(text) <= TEXT_MOST;
}

static bool is_endpoint(const char *text)
{
    const char *host = strstr(text, "://");
    return host && (strncmp(text, "https://", 8) == 0 || strncmp(text, "http://", 7) == 0) &&
           is_of(host + 3, "-.:[]");
}

static bool is_printable(const char *text)
{
    for (const char *byte = text; *byte; byte++)
        if (*byte <= ' ' || *byte > '~')
            return false;
    return *text && strlen(text) <= TEXT_MOST;
}

static bool set_style(struct object_store_place *place, const char *value)
{
    place->is_path_style = strcmp(value, "on") == 0;
    return place->is_path_style || strcmp(value, "off") == 0;
}

/* Keeps the first problem: an unknown name, or an invalid value. */
static void take_line(struct stores_reader *reader, const char *name, const char *value)
{
    struct object_store_place *place = reader->place;
    const struct {
        const char *name, **text;
        bool is_right;
    } texts[] = {
        {"endpoint", &place->endpoint, is_endpoint(value)},
        {"bucket", &place->bucket, is_of(value, "-.")},
        {"region", &place->region, is_of(value, "-")},
        {"prefix", &place->prefix, is_of(value, "-_./") && *value != '/'},
        {"key_id", &place->key_id, is_of(value, "-_.+=@")},
        {"secret_key", &place->secret_key, is_printable(value)},
        {"ca_file", &place->ca_file, *value == '/'},
    };
    bool is_right = strcmp(name, "path_style") == 0 && set_style(place, value);
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (strcmp(name, texts[i].name) == 0 && texts[i].is_right) {
            *texts[i].text = value;
            is_right = true;
        }
    if (!is_right && !reader->problem)
        reader->problem = name;
}

static struct bytes trimmed(struct bytes text)
{
    while (text.size && strchr(" \t\r", *text.data))
        text = (struct bytes){text.data + 1, text.size - 1};
    while (text.size && strchr(" \t\r", text.data[text.size - 1]))
        text.size--;
    return text;
}

/* The number of the first line that is neither a section nor a setting; 0: there is none. */
static int take_text(struct stores_reader *reader, struct bytes text)
{
    struct arena *arena = reader->control->arena;
    bool is_inside = false, has_section = false;
    for (int number = 1; text.size; number++) {
        struct bytes value = trimmed(bytes_cut(&text, '\n'));
        if (!value.size || *value.data == '#' || *value.data == ';')
            continue;
        bool is_section = *value.data == '[' && value.data[value.size - 1] == ']';
        bool is_setting = has_section && memchr(value.data, '=', value.size);
        if (is_section) {
            has_section = true;
            is_inside = bytes_equal((struct bytes){value.data + 1, value.size - 2}, bytes_of(reader->name));
            reader->is_found = reader->is_found || is_inside;
        } else if (!is_setting || memchr(value.data, '\0', value.size)) {
            return number;
        } else if (is_inside) {
            struct bytes name = trimmed(bytes_cut(&value, '='));
            value = trimmed(value);
            take_line(reader, arena_copy(arena, name.data, name.size),
                      arena_copy(arena, value.data, value.size));
        }
    }
    return 0;
}

static bool read_section(const char *path, struct stores_reader *reader)
{
    const struct object_store_place *place = reader->place;
    struct bytes text;
    if (!control_read_file(reader->control->arena, path, &text))
        return false;
    int line = take_text(reader, text);
    if (line)
        message_print("%s: line %d is neither a section nor a setting", path, line);
    else if (!reader->is_found)
        message_print("%s: there is no store [%s]", path, reader->name);
    else if (reader->problem) /* a value may be a key: it is not shown */
        message_print("%s: [%s]: %s: unknown name or invalid value", path, reader->name, reader->problem);
    else if (!place->endpoint || !place->bucket || !place->key_id || !place->secret_key)
        message_print("%s: [%s]: endpoint, bucket, key_id and secret_key are required", path, reader->name);
    else
        return true;
    return false;
}

bool object_stores_read(struct control *control, const char *name, struct object_store_place *place_r)
{
    const char *path = control->settings.object_stores_file;
    struct stores_reader reader = {.control = control, .name = name, .place = place_r};
    char problem[400];
    *place_r = (struct object_store_place){.region = "us-east-1", .prefix = "", .is_path_style = true};
    if (!*path) {
        message_print("%s: there are no object stores: the setting object_stores_file is empty", name);
        return false;
    }
    if (secret_is_closed("object_stores_file", path, problem, sizeof problem))
        return read_section(path, &reader);
    message_print("%s", problem);
    return false;
}
