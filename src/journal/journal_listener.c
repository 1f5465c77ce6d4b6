/* journal_listener: a short list. */
#include "journal/journal_listener.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "journal/journal_message.h"

static struct bytes journal_listener_key_of(const struct journal_listened *one)
{
    return (struct bytes){one->text, one->key_size};
}

static struct journal_listened *journal_listener_find(const struct journal_listener *listener,
                                                      struct bytes key)
{
    for (size_t i = 0; i < listener->count; i++)
        if (bytes_equal(journal_listener_key_of(&listener->list[i]), key))
            return &listener->list[i];
    return NULL;
}

bool journal_listener_has_room(const struct journal_listener *listener, struct bytes key)
{
    return listener->count < JOURNAL_LISTENER_MOST || journal_listener_find(listener, key);
}

static void set_kind(struct journal_listener *listener, bool is_encrypted)
{
    for (size_t i = 0; i < listener->count; i++)
        listener->list[i].is_due |= listener->is_encrypted != is_encrypted;
    listener->is_encrypted = is_encrypted;
}

void journal_listener_add(struct journal_listener *listener, struct bytes key, uint16_t identifier,
                          bool is_encrypted, const struct records_found *found)
{
    set_kind(listener, is_encrypted);
    struct journal_listened *one = journal_listener_find(listener, key);
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
        if (listener->count++ == 0)
            listener->position = found->position;
    }
    one->identifier = identifier;
    one->mark = found->mark;
    one->position = found->position;
    one->is_suspect = one->is_due = false;
}

/* Marks alone, which costs little.  A key whose mark has moved is suspect until the ring was read: to read
 * waits for the changes that have moved the marks. */
static bool suspect(struct journal_listener *listener, const struct records *records)
{
    bool is_suspect = false;
    for (size_t i = 0; i < listener->count; i++) {
        struct journal_listened *one = &listener->list[i];
        one->is_suspect |= records_changes_renew(records, &one->mark);
        is_suspect |= one->is_suspect;
    }
    return is_suspect;
}

static void note_read(struct journal_listener *listener, struct bytes read)
{
    struct bytes key;
    uint64_t position;
    while (records_changes_take(&read, &key, &position)) {
        struct journal_listened *one = journal_listener_find(listener, key);
        if (one && position > one->position)
            one->is_due = true;
    }
}

/* Afterwards no key is suspect, unless the records were busy. */
void journal_listener_read(struct journal_listener *listener, struct records *records, struct bytes ns,
                           bool is_encrypted)
{
    enum records_changes_end end;
    set_kind(listener, is_encrypted);
    struct builder read = {0};
    do {
        read.size = 0;
        end = records_changes_read(records, ns, is_encrypted, &listener->position, &read);
        note_read(listener, (struct bytes){read.data, read.size});
    } while (end == RECORDS_CHANGES_MORE);
    builder_free(&read);
    if (end == RECORDS_CHANGES_LOST)
        suspect(listener, records); /* the position is also behind what has changed since the first look */
    for (size_t i = 0; i < listener->count && end != RECORDS_CHANGES_BUSY; i++) {
        struct journal_listened *one = &listener->list[i];
        one->is_due |= one->is_suspect && end == RECORDS_CHANGES_LOST;
        one->is_suspect = false;
    }
}

/* A position of before the marks were looked at: what stands before it has moved them. */
bool journal_listener_look(struct journal_listener *listener, struct records *records)
{
    uint64_t position;
    bool is_known = listener->count && records_changes_position(records, &position);
    if (suspect(listener, records))
        return true;
    if (is_known)
        listener->position = position;
    return false;
}

void journal_listener_give_up(struct journal_listener *listener)
{
    for (size_t i = 0; i < listener->count; i++)
        listener->list[i].is_due = true;
}

bool journal_listener_has_news(const struct journal_listener *listener)
{
    for (size_t i = 0; i < listener->count; i++)
        if (listener->list[i].is_due)
            return true;
    return false;
}

bool journal_listener_is_behind(const struct journal_listener *listener)
{
    for (size_t i = 0; i < listener->count; i++)
        if (listener->list[i].is_suspect)
            return true;
    return false;
}

bool journal_listener_report(struct journal_listener *listener, uint64_t timestamp, size_t most,
                             struct builder *out)
{
    for (size_t i = listener->count; i-- > 0;) {
        struct journal_listened *one = &listener->list[i];
        if (!one->is_due)
            continue;
        if (out->size >= most)
            return false;
        journal_message_notice(out, one->identifier, timestamp, journal_listener_key_of(one));
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
