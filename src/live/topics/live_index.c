/* live_index: a growing hash table with chaining. */
#include "live/topics/live_index.h"

#include <stdlib.h>

#include "base/memory.h"
#include "live/topics/live_key.h"
#include "segment/slots.h"
#include "edge/crypto/crypto.h"

enum { BUCKETS_LEAST = 64 };

struct live_topic {
    struct live_topic *next; /* in the bucket */
    uint64_t hash;
    struct live_mark *marks;
    struct live_mark *members;    /* of a class: definitions of its collections */
    struct definition definition; /* its texts follow the key */
    size_t key_size;
    char key[];
};

struct live_index {
    struct live_topic **buckets;
    size_t bucket_count, topic_count;
    struct live_feed *matched, **matched_end;
    struct builder key;
    uint64_t seed; /* of hashes, so that clients cannot choose names that collide */
};

static void *get_memory(size_t count, size_t size)
{
    void *memory = memory_zeroed(count ? count : 1, size, "live");
    return memory;
}

struct live_index *live_index_create(void)
{
    struct live_index *index = get_memory(1, sizeof *index);
    index->bucket_count = BUCKETS_LEAST;
    index->buckets = get_memory(index->bucket_count, sizeof *index->buckets);
    index->matched_end = &index->matched;
    crypto_random(&index->seed, sizeof index->seed);
    return index;
}

void live_index_destroy(struct live_index *index)
{
    assert(!index->topic_count);
    free(index->buckets);
    builder_free(&index->key);
    free(index);
}

/* --- topics --- */

static uint64_t live_index_hash_of(const struct live_index *index, struct bytes key)
{
    return slots_hash_text(index->seed, key);
}

static struct live_topic **live_index_find(const struct live_index *index, struct bytes key, uint64_t hash)
{
    struct live_topic **link = &index->buckets[hash % index->bucket_count];
    for (; *link; link = &(*link)->next)
        if ((*link)->hash == hash && bytes_equal((struct bytes){(*link)->key, (*link)->key_size}, key))
            break;
    return link;
}

static void grow(struct live_index *index)
{
    size_t count = index->bucket_count * 2;
    struct live_topic **buckets = get_memory(count, sizeof *buckets);
    for (size_t i = 0; i < index->bucket_count; i++)
        for (struct live_topic *topic = index->buckets[i], *next; topic; topic = next) {
            next = topic->next;
            topic->next = buckets[topic->hash % count];
            buckets[topic->hash % count] = topic;
        }
    free(index->buckets);
    index->buckets = buckets;
    index->bucket_count = count;
}

static struct bytes live_index_keep(char **room, struct bytes text)
{
    if (!text.data)
        return NO_BYTES;
    if (text.size)
        memcpy(*room, text.data, text.size);
    struct bytes kept = {*room, text.size};
    *room += text.size;
    return kept;
}

static struct live_topic *find_or_add(struct live_index *index, struct bytes key,
                                      const struct definition *definition)
{
    uint64_t hash = live_index_hash_of(index, key);
    struct live_topic **link = live_index_find(index, key, hash);
    if (*link)
        return *link;
    size_t texts = definition->class.size + definition->id.size + definition->collection.size +
                   definition->value.size + definition->to.size;
    struct live_topic *topic = get_memory(1, sizeof *topic + key.size + texts);
    topic->hash = hash;
    topic->key_size = key.size;
    memcpy(topic->key, key.data, key.size);
    char *room = topic->key + key.size;
    topic->definition = (struct definition){.kind = definition->kind,
                                            .class = live_index_keep(&room, definition->class),
                                            .id = live_index_keep(&room, definition->id),
                                            .collection = live_index_keep(&room, definition->collection),
                                            .value = live_index_keep(&room, definition->value),
                                            .to = live_index_keep(&room, definition->to),
                                            .value_count = definition->value_count};
    *link = topic;
    if (++index->topic_count > index->bucket_count)
        grow(index);
    return topic;
}

static void drop_unused(struct live_index *index, struct live_topic *topic)
{
    if (topic->marks || topic->members)
        return;
    *live_index_find(index, (struct bytes){topic->key, topic->key_size}, topic->hash) = topic->next;
    free(topic);
    index->topic_count--;
}

/* The topic of the collections of a class has no listeners of its own.  Its key is that of a document without
 * an id, which no definition has. */
static struct bytes key_of_members(struct builder *key, struct bytes class)
{
    return live_key_of_document(key, class, BYTES(""));
}

static struct live_topic *find_members(const struct live_index *index, struct bytes class)
{
    struct builder room = {0};
    struct bytes key = key_of_members(&room, class);
    struct live_topic *topic = *live_index_find(index, key, live_index_hash_of(index, key));
    builder_free(&room);
    return topic;
}

bool live_index_has_members_of(const struct live_index *index, struct bytes class)
{
    return find_members(index, class) != NULL;
}

void live_index_each_member(const struct live_index *index, struct bytes class,
                            void (*see)(void *context, struct live_mark *mark), void *context)
{
    struct live_topic *topic = find_members(index, class);
    for (struct live_mark *mark = topic ? topic->members : NULL; mark; mark = mark->next_member)
        see(context, mark);
}

const struct definition *live_index_definition(const struct live_mark *mark)
{
    return &mark->topic->definition;
}

static void live_index_add_member(struct live_index *index, struct live_mark *mark, struct bytes class)
{
    struct live_topic *topic =
        find_or_add(index, key_of_members(&index->key, class), &(struct definition){.class = class});
    mark->next_member = topic->members;
    mark->member_back = &topic->members;
    if (mark->next_member)
        mark->next_member->member_back = &mark->next_member;
    topic->members = mark;
}

static void remove_member(struct live_index *index, struct live_mark *mark)
{
    *mark->member_back = mark->next_member;
    if (mark->next_member)
        mark->next_member->member_back = mark->member_back;
    drop_unused(index, find_members(index, mark->topic->definition.class));
}

void live_index_each(const struct live_index *index,
                     void (*see)(void *context, const struct definition *definition), void *context)
{
    for (size_t i = 0; i < index->bucket_count; i++)
        for (const struct live_topic *topic = index->buckets[i]; topic; topic = topic->next)
            if (topic->marks)
                see(context, &topic->definition);
}

/* --- listeners --- */

void live_index_add(struct live_index *index, struct live_feed *feed, const struct definition *definitions,
                    size_t count)
{
    size_t texts = 0, keys = 0;
    for (size_t i = 0; i < count; i++)
        texts += definitions[i].text.size;
    char *room = get_memory(count * sizeof *feed->marks + texts, 1);
    *feed = (struct live_feed){.marks = (struct live_mark *)(void *)room, .count = count};
    feed->changed_end = &feed->changed;
    room += count * sizeof *feed->marks;
    for (size_t i = 0; i < count; i++) {
        struct live_mark *mark = &feed->marks[i];
        struct bytes key = live_key_of_definition(&index->key, &definitions[i]);
        keys += 2 * key.size;
        struct live_topic *topic = find_or_add(index, key, &definitions[i]);
        *mark = (struct live_mark){.topic = topic,
                                   .next = topic->marks,
                                   .owner = feed,
                                   .text = live_index_keep(&room, definitions[i].text)};
        if (mark->next)
            mark->next->back = &mark->next;
        mark->back = &topic->marks;
        topic->marks = mark;
        if (definitions[i].collection.data)
            live_index_add_member(index, mark, definitions[i].class);
    }
    feed->bytes = count * (sizeof(struct live_mark) + sizeof(struct live_topic)) + texts + keys;
}

static void forget_matched(struct live_index *index, struct live_feed *feed)
{
    struct live_feed **link = &index->matched;
    while (*link != feed)
        link = &(*link)->next_matched;
    *link = feed->next_matched;
    if (index->matched_end == &feed->next_matched)
        index->matched_end = link;
}

void live_index_remove(struct live_index *index, struct live_feed *feed)
{
    if (feed->is_matched)
        forget_matched(index, feed);
    for (size_t i = 0; i < feed->count; i++) {
        struct live_mark *mark = &feed->marks[i];
        *mark->back = mark->next;
        if (mark->next)
            mark->next->back = mark->back;
        if (mark->topic->definition.collection.data)
            remove_member(index, mark);
        drop_unused(index, mark->topic);
    }
    free(feed->marks);
    *feed = (struct live_feed){0};
}

/* --- changes --- */

void live_index_match_mark(struct live_index *index, struct live_mark *mark, int64_t version)
{
    struct live_feed *feed = mark->owner;
    if (!mark->is_changed) {
        mark->is_changed = true;
        mark->version = version;
        mark->next_changed = NULL;
        *feed->changed_end = mark;
        feed->changed_end = &mark->next_changed;
    } else if (version > mark->version || !version) {
        mark->version = mark->version ? version : 0; /* unknown stays unknown */
    }
    if (!feed->is_matched) {
        feed->is_matched = true;
        feed->next_matched = NULL;
        *index->matched_end = feed;
        index->matched_end = &feed->next_matched;
    }
}

void live_index_match(struct live_index *index, struct bytes key, int64_t version)
{
    struct live_topic *topic = *live_index_find(index, key, live_index_hash_of(index, key));
    for (struct live_mark *mark = topic ? topic->marks : NULL; mark; mark = mark->next)
        live_index_match_mark(index, mark, version);
}

bool live_index_has(const struct live_index *index, struct bytes key)
{
    const struct live_topic *topic = *live_index_find(index, key, live_index_hash_of(index, key));
    return topic && topic->marks;
}

void live_index_each_mark(const struct live_index *index, struct bytes key,
                          void (*see)(void *context, struct live_mark *mark), void *context)
{
    struct live_topic *topic = *live_index_find(index, key, live_index_hash_of(index, key));
    for (struct live_mark *mark = topic ? topic->marks : NULL; mark; mark = mark->next)
        see(context, mark);
}

void live_index_match_feed(struct live_index *index, struct live_feed *feed)
{
    for (size_t i = 0; i < feed->count; i++)
        live_index_match_mark(index, &feed->marks[i], 0);
}

bool live_index_has_class(const struct live_feed *feed, struct bytes class)
{
    for (size_t i = 0; i < feed->count; i++)
        if (bytes_equal(feed->marks[i].topic->definition.class, class))
            return true;
    return false;
}

void live_index_match_class(struct live_index *index, struct live_feed *feed, struct bytes class)
{
    for (size_t i = 0; i < feed->count; i++)
        if (bytes_equal(feed->marks[i].topic->definition.class, class))
            live_index_match_mark(index, &feed->marks[i], 0);
}

struct live_feed *live_index_take_matched(struct live_index *index)
{
    struct live_feed *feed = index->matched;
    if (!feed)
        return NULL;
    index->matched = feed->next_matched;
    if (!index->matched)
        index->matched_end = &index->matched;
    feed->is_matched = false;
    return feed;
}

static struct live_mark *take_at(struct live_feed *feed, struct live_mark **link)
{
    struct live_mark *mark = *link;
    if (!mark)
        return NULL;
    *link = mark->next_changed;
    if (!*link)
        feed->changed_end = link;
    mark->is_changed = false;
    return mark;
}

struct live_mark *live_index_take_changed(struct live_feed *feed)
{
    return take_at(feed, &feed->changed);
}

struct live_mark *live_index_take_changed_from(struct live_feed *feed, const struct live_mark *first)
{
    struct live_mark **link = &feed->changed;
    while (*link && *link < first)
        link = &(*link)->next_changed;
    return take_at(feed, link);
}
