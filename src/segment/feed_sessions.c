/* feed_sessions: open addressing with linear probing.  A slot is taken by one store and freed by one, so a
 * concurrent reader always finds a key that stays. */
#include "segment/feed_sessions.h"

enum { FREE, LEFT };

static size_t slot_of(uint64_t key)
{
    return (size_t)(key >> 32) % FEED_SESSIONS;
}

static size_t next_to(size_t slot)
{
    return (slot + 1) % FEED_SESSIONS;
}

/* The position of the key, else FEED_SESSIONS; `room_r` gets the position where it may be stored. */
static size_t feed_sessions_find(const struct feed_sessions *sessions, uint64_t key, size_t *room_r)
{
    size_t slot = slot_of(key);
    *room_r = FEED_SESSIONS;
    for (size_t step = 0; step < FEED_SESSIONS; step++, slot = next_to(slot)) {
        uint64_t present = atomic_load(&sessions->keys[slot]);
        if (present == key)
            return slot;
        if (present <= LEFT && *room_r == FEED_SESSIONS)
            *room_r = slot;
        if (present == FREE)
            break;
    }
    return FEED_SESSIONS;
}

bool feed_sessions_has(const struct feed_sessions *sessions, uint64_t key)
{
    size_t room;
    assert(key > LEFT);
    return feed_sessions_find(sessions, key, &room) != FEED_SESSIONS;
}

bool feed_sessions_add(struct feed_sessions *sessions, struct subscriber_counts *counts, uint64_t key)
{
    size_t room, slot = feed_sessions_find(sessions, key, &room);
    assert(key > LEFT);
    if (slot == FEED_SESSIONS) {
        if (counts->used == FEED_SESSIONS_MOST)
            return false;
        assert(room != FEED_SESSIONS);
        slot = room;
        counts->used++;
        atomic_store(&sessions->keys[slot], key);
    }
    counts->counts[slot]++;
    return true;
}

/* Frees the end of a chain, so that chains do not grow for ever. */
static void feed_sessions_shorten(struct feed_sessions *sessions, size_t slot)
{
    while (atomic_load(&sessions->keys[slot]) == LEFT &&
           atomic_load(&sessions->keys[next_to(slot)]) == FREE) {
        atomic_store(&sessions->keys[slot], FREE);
        slot = (slot + FEED_SESSIONS - 1) % FEED_SESSIONS;
    }
}

void feed_sessions_remove(struct feed_sessions *sessions, struct subscriber_counts *counts, uint64_t key)
{
    size_t room, slot = feed_sessions_find(sessions, key, &room);
    assert(slot != FEED_SESSIONS && counts->counts[slot]);
    if (--counts->counts[slot])
        return;
    counts->used--;
    atomic_store(&sessions->keys[slot], LEFT);
    feed_sessions_shorten(sessions, slot);
}

void feed_sessions_clear(struct feed_sessions *sessions)
{
    for (size_t i = 0; i < FEED_SESSIONS; i++)
        if (atomic_load(&sessions->keys[i]))
            atomic_store(&sessions->keys[i], FREE);
}
