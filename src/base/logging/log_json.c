/* log_json: members are added one after the other; the message is last, with the room that they leave. */
#include "base/logging/log_json.h"

#include <stdio.h>

enum { CHARACTER_MOST = 6 }; /* bytes of one that is escaped */

struct json_line {
    char *data;
    size_t used;
};

/* The character at the beginning of the text, as a text of JSON has it; returns how many bytes it was. */
static size_t escape(struct bytes text, char character_r[CHARACTER_MOST + 1])
{
    unsigned char first = (unsigned char)*text.data;
    size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (size > text.size || !bytes_is_utf8((struct bytes){text.data, size})) {
        snprintf(character_r, CHARACTER_MOST + 1, "\xEF\xBF\xBD");
        return 1;
    }
    if (first == '"' || first == '\\')
        snprintf(character_r, CHARACTER_MOST + 1, "\\%c", first);
    else if (first < ' ')
        snprintf(character_r, CHARACTER_MOST + 1, "\\u%04x", first);
    else
        snprintf(character_r, CHARACTER_MOST + 1, "%.*s", (int)size, text.data);
    return size;
}

/* Adds "name":"text" and keeps one byte for the brace behind it.  Without room the line stays as it was,
 * unless the text may be cut. */
static void log_json_add(struct json_line *line, const char *name, struct bytes text, bool may_be_cut)
{
    char character[CHARACTER_MOST + 1];
    size_t used = line->used, end = LOG_JSON_BYTES - strlen("\"}");
    if (!text.data || used + strlen(name) + strlen(",\"\":\"") >= end)
        return;
    used += (size_t)snprintf(line->data + used, end - used, "%c\"%s\":\"", used ? ',' : '{', name);
    while (text.size) {
        size_t taken = escape(text, character), size = strlen(character);
        if (used + size > end && !may_be_cut)
            return;
        if (used + size > end)
            break;
        memcpy(line->data + used, character, size);
        used += size;
        text.data += taken;
        text.size -= taken;
    }
    line->data[used++] = '"';
    line->used = used;
}

size_t log_json_compose(char line_r[LOG_JSON_BYTES], const struct log_event *event)
{
    struct json_line line = {line_r, 0};
    log_json_add(&line, "time", bytes_of(event->time), false);
    log_json_add(&line, "level", bytes_of(event->level), false);
    log_json_add(&line, "program", bytes_of(event->program), false);
    line.used += (size_t)snprintf(line_r + line.used, LOG_JSON_BYTES - line.used, ",\"pid\":%d", event->pid);
    log_json_add(&line, "request", event->request, false);
    log_json_add(&line, "trace", event->trace, false);
    log_json_add(&line, "tracestate", event->tracestate, false);
    for (size_t i = 0; i < event->more_count; i++)
        log_json_add(&line, event->more[i].name, event->more[i].text, false);
    log_json_add(&line, "message", event->message, true);
    line_r[line.used++] = '}';
    return line.used;
}
