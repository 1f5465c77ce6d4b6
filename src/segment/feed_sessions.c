/* feed_sessions: open addressing with linear probing.  A place is taken by one store and freed by one, so a
 * concurrent reader always finds a key that stays. */
#include "segment/feed_sessions.h"

enum { FREE, LEFT };

static size_t place_of(uint64_t key)
{
    return (size_t)(key >> 32) % FEED_SESSIONS;
}

static size_t next_to(size_t place)
{
    return (place + 1) % FEED_SESSIONS;
}

/* The position of the key, else FEED_SESSIONS; `room_r` gets the position where it may be stored. */
static size_t find(const struct feed_sessions *sessions, uint64_t key, size_t *room_r)
{
    size_t place = place_of(key);
    *room_r = FEED_SESSIONS;
    for (size_t step = 0; step < FEED_SESSIONS; step++, place = next_to(place)) {
        uint64_t present = atomic_load(&sessions->keys[place]);
        if (present == key)
            return place;
        if (present <= LEFT && *room_r == FEED_SESSIONS)
            *room_r = place;
        if (present == FREE)
            break;
    }
    return FEED_SESSIONS;
}

bool feed_sessions_has(const struct feed_sessions *sessions, uint64_t key)
{
    size_t room;
    assert(key > LEFT);
    return find(sessions, key, &room) != FEED_SESSIONS;
}

bool feed_sessions_add(struct feed_sessions *sessions, struct subscriber_counts *counts, uint64_t key)
{
    size_t room, place = find(sessions, key, &room);
    assert(key > LEFT);
    if (place == FEED_SESSIONS) {
        if (counts->used == FEED_SESSIONS_MOST)
            return false;
        assert(room != FEED_SESSIONS);
        place = room;
        counts->used++;
        atomic_store(&sessions->keys[place], key);
    }
    counts->counts[place]++;
    return true;
}

/* Frees the end of a chain, so that chains do not grow for ever. */
static void shorten(struct feed_sessions *sessions, size_t place)
{
    while (atomic_load(&sessions->keys[place]) == LEFT &&
           atomic_load(&sessions->keys[next_to(place)]) == FREE) {
        atomic_store(&sessions->keys[place], FREE);
        place = (place + FEED_SESSIONS - 1) % FEED_SESSIONS;
    }
}

void feed_sessions_remove(struct feed_sessions *sessions, struct subscriber_counts *counts, uint64_t key)
{
    size_t room, place = find(sessions, key, &room);
    assert(place != FEED_SESSIONS && counts->counts[place]);
    if (--counts->counts[place])
        return;
    counts->used--;
    atomic_store(&sessions->keys[place], LEFT);
    shorten(sessions, place);
}

void feed_sessions_clear(struct feed_sessions *sessions)
{
    for (size_t i = 0; i < FEED_SESSIONS; i++)
        if (atomic_load(&sessions->keys[i]))
            atomic_store(&sessions->keys[i], FREE);
}
