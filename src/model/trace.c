/* trace: what a request's headers traceparent and tracestate must look like, and how they are kept. */
#include "model/trace.h"

#include <string.h>

enum {
    STATE_MEMBERS_MOST = 32,
    KEY_MOST = 256,
    VALUE_MOST = 256,
};

static bool is_hex(struct bytes text, size_t from, size_t size, bool may_be_zero)
{
    bool is_zero = true;
    for (size_t i = from; i < from + size; i++) {
        if (!((text.data[i] >= '0' && text.data[i] <= '9') || (text.data[i] >= 'a' && text.data[i] <= 'f')))
            return false;
        is_zero = is_zero && text.data[i] == '0';
    }
    return may_be_zero || !is_zero;
}

/* 00-TRACE-PARENT-FLAGS; an id of zeros is none. */
bool trace_is_parent(struct bytes text)
{
    return text.size == TRACE_PARENT_BYTES && memcmp(text.data, "00-", 3) == 0 &&
           is_hex(text, 3, 32, false) && text.data[35] == '-' && is_hex(text, 36, 16, false) &&
           text.data[52] == '-' && is_hex(text, 53, 2, true);
}

static bool is_key(struct bytes key)
{
    bool has_system = false;
    for (size_t i = 0; i < key.size; i++) {
        char letter = key.data[i];
        bool is_first = i == 0 || key.data[i - 1] == '@', is_digit = letter >= '0' && letter <= '9';
        if (letter == '@' && !has_system && i > 0)
            has_system = true;
        else if (!(letter >= 'a' && letter <= 'z') && !is_digit && (is_first || !memchr("_-*/", letter, 4)))
            return false;
    }
    return key.size && key.size <= KEY_MOST && key.data[key.size - 1] != '@';
}

static bool is_value(struct bytes value)
{
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] < ' ' || value.data[i] > '~' || value.data[i] == '=')
            return false;
    return value.size && value.size <= VALUE_MOST && value.data[value.size - 1] != ' ';
}

static struct bytes trim(struct bytes text)
{
    while (text.size && (*text.data == ' ' || *text.data == '\t'))
        text.data++, text.size--;
    while (text.size && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
        text.size--;
    return text;
}

/* The next member of the list, whose rest is left in `list`. */
static struct bytes trace_cut(struct bytes *list)
{
    const char *comma = memchr(list->data, ',', list->size);
    size_t size = comma ? (size_t)(comma - list->data) : list->size, used = comma ? size + 1 : size;
    struct bytes member = {list->data, size};
    list->data += used;
    list->size -= used;
    return trim(member);
}

/* KEY=VALUE, separated by commas; each key once; members may be empty. */
static bool is_state(struct bytes list)
{
    struct bytes keys[STATE_MEMBERS_MOST];
    size_t count = 0;
    while (list.size) {
        struct bytes member = trace_cut(&list);
        const char *sign = memchr(member.data, '=', member.size);
        if (!member.size)
            continue;
        if (!sign || count == STATE_MEMBERS_MOST)
            return false;
        struct bytes key = {member.data, (size_t)(sign - member.data)};
        struct bytes value = {sign + 1, member.size - key.size - 1};
        if (!is_key(key) || !is_value(value))
            return false;
        for (size_t i = 0; i < count; i++)
            if (bytes_equal(keys[i], key))
                return false;
        keys[count++] = key;
    }
    return count;
}

struct bytes trace_read(struct arena *arena, struct bytes parent, struct bytes state)
{
    if (!trace_is_parent(parent))
        return NO_BYTES;
    state = trim(state);
    if (!state.size || state.size > TRACE_STATE_MOST || !is_state(state))
        state = NO_BYTES;
    return bytes_of(arena_printf(arena, "%.*s%s%.*s", (int)parent.size, parent.data, state.size ? " " : "",
                                 (int)state.size, state.data ? state.data : ""));
}

struct bytes trace_parent(struct bytes trace)
{
    return trace.size < TRACE_PARENT_BYTES ? NO_BYTES : (struct bytes){trace.data, TRACE_PARENT_BYTES};
}

struct bytes trace_state(struct bytes trace)
{
    const size_t head = TRACE_PARENT_BYTES + 1;
    return trace.size <= head ? NO_BYTES : (struct bytes){trace.data + head, trace.size - head};
}
