/* journal_listener: a short list. */
#include "journal/journal_listener.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "journal/journal_message.h"

static struct bytes key_of(const struct journal_listened *one)
{
    return (struct bytes){one->text, one->key_size};
}

static struct journal_listened *find(const struct journal_listener *listener, struct bytes key)
{
    for (size_t i = 0; i < listener->count; i++)
        if (bytes_equal(key_of(&listener->list[i]), key))
            return &listener->list[i];
    return NULL;
}

bool journal_listener_has_room(const struct journal_listener *listener, struct bytes key)
{
    return listener->count < JOURNAL_LISTENER_MOST || find(listener, key);
}

void journal_listener_add(struct journal_listener *listener, struct bytes key, uint16_t identifier,
                          uint64_t mark)
{
    struct journal_listened *one = find(listener, key);
    if (!listener->list)
        listener->list = calloc(JOURNAL_LISTENER_MOST, sizeof *listener->list);
    if (!one && listener->list) {
        assert(listener->count < JOURNAL_LISTENER_MOST && key.size <= RECORDS_KEY_MOST);
        one = &listener->list[listener->count];
        one->text = malloc(key.size);
    }
    if (!one || !one->text)
        log_fatal("out of memory listening");
    if (one == &listener->list[listener->count]) {
        memcpy(one->text, key.data, key.size);
        one->key_size = (uint16_t)key.size;
        listener->count++;
    }
    one->identifier = identifier;
    one->mark = mark;
}

bool journal_listener_has_news(const struct journal_listener *listener, const struct records *records)
{
    for (size_t i = 0; i < listener->count; i++)
        if (records_has_changed(records, listener->list[i].mark))
            return true;
    return false;
}

bool journal_listener_report(struct journal_listener *listener, const struct records *records,
                             uint64_t timestamp, size_t most, struct builder *out)
{
    for (size_t i = listener->count; i-- > 0;) {
        struct journal_listened *one = &listener->list[i];
        if (!records_has_changed(records, one->mark))
            continue;
        if (out->size >= most)
            return false;
        journal_message_notice(out, one->identifier, timestamp, key_of(one));
        free(one->text);
        *one = listener->list[--listener->count];
    }
    return true;
}

void journal_listener_free(struct journal_listener *listener)
{
    for (size_t i = 0; i < listener->count; i++)
        free(listener->list[i].text);
    free(listener->list);
    *listener = (struct journal_listener){0};
}
