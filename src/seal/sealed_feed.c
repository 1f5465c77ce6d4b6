/* sealed_feed: collects the header, then chunk after chunk. */
#include "seal/sealed_feed.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct sealed_feed {
    struct sealed_file_keys keys;
    unsigned char name[SEALED_FILE_NAME];
    int64_t stored;
    bool (*take)(void *context, struct bytes piece);
    void *context;
    struct sealed_file_reader *reader; /* NULL: the header has not come */
    struct sealed_file_head head;
    enum sealed_file_state state;
    int64_t at; /* of the content */
    size_t used;
    bool is_ended; /* by `take` */
    bool is_whole;
    unsigned char header[SEALED_FILE_HEADER], chunk[SEALED_FILE_CHUNK + SEALING_TAG];
};

struct sealed_feed *sealed_feed_create(const struct sealed_file_keys *keys,
                                       const unsigned char name[SEALED_FILE_NAME], int64_t stored,
                                       bool (*take)(void *context, struct bytes piece), void *context)
{
    struct sealed_feed *feed = memory_zeroed(1, sizeof *feed, "sealed feed");
    feed->keys = *keys;
    memcpy(feed->name, name, sizeof feed->name);
    feed->stored = stored;
    feed->take = take;
    feed->context = context;
    return feed;
}

static void open_header(struct sealed_feed *feed)
{
    feed->state = sealed_file_check(feed->header, feed->stored, &feed->keys, feed->name, &feed->head);
    if (feed->state == SEALED_FILE_FINE)
        feed->reader = sealed_file_open(-1, &feed->head);
}

static void open_chunk(struct sealed_feed *feed)
{
    struct bytes piece;
    feed->state = sealed_file_open_chunk(feed->reader, feed->at,
                                         (struct bytes){(const char *)feed->chunk, feed->used}, &piece);
    if (feed->state != SEALED_FILE_FINE)
        return;
    feed->at += (int64_t)piece.size;
    feed->is_whole = feed->at == feed->head.size;
    feed->is_ended = feed->take && piece.size && !feed->take(feed->context, piece);
}

/* Takes from the piece what is missing of the header or of a chunk. */
static void sealed_feed_fill(struct sealed_feed *feed, struct bytes *piece)
{
    size_t wanted = SEALED_FILE_HEADER;
    int64_t from;
    unsigned char *room = feed->reader ? feed->chunk : feed->header;
    if (feed->reader)
        sealed_file_find_chunk(&feed->head, feed->at, &from, &wanted);
    size_t part = wanted - feed->used < piece->size ? wanted - feed->used : piece->size;
    memcpy(room + feed->used, piece->data, part);
    feed->used += part;
    *piece = (struct bytes){piece->data + part, piece->size - part};
    if (feed->used < wanted)
        return;
    if (feed->reader)
        open_chunk(feed);
    else
        open_header(feed);
    feed->used = 0;
}

bool sealed_feed_add(struct sealed_feed *feed, struct bytes piece)
{
    while (piece.size && feed->state == SEALED_FILE_FINE && !feed->is_ended) {
        if (feed->is_whole)
            feed->state = SEALED_FILE_ALTERED; /* it is longer than it was */
        else
            sealed_feed_fill(feed, &piece);
    }
    return feed->state == SEALED_FILE_FINE && !feed->is_ended;
}

enum sealed_file_state sealed_feed_end(const struct sealed_feed *feed)
{
    return feed->state != SEALED_FILE_FINE || feed->is_ended || feed->is_whole ? feed->state
                                                                               : SEALED_FILE_ALTERED;
}

const unsigned char *sealed_feed_header(const struct sealed_feed *feed)
{
    return feed->header;
}

void sealed_feed_destroy(struct sealed_feed *feed)
{
    sealed_file_close(feed->reader);
    explicit_bzero(feed, sizeof *feed);
    free(feed);
}
