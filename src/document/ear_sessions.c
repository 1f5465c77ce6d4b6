/* ear_sessions: open addressing, step by step.  A place is taken by one store and left by one, so whoever
 * reads meanwhile finds a key that stays. */
#include "document/ear_sessions.h"

enum { FREE, LEFT };

static size_t place_of(uint64_t key)
{
    return (size_t)(key >> 32) % EAR_SESSIONS;
}

static size_t next_to(size_t place)
{
    return (place + 1) % EAR_SESSIONS;
}

/* Where it is, else EAR_SESSIONS, and in `room_r` where it may be put. */
static size_t find(const struct ear_sessions *sessions, uint64_t key, size_t *room_r)
{
    size_t place = place_of(key);
    *room_r = EAR_SESSIONS;
    for (size_t step = 0; step < EAR_SESSIONS; step++, place = next_to(place)) {
        uint64_t present = atomic_load(&sessions->keys[place]);
        if (present == key)
            return place;
        if (present <= LEFT && *room_r == EAR_SESSIONS)
            *room_r = place;
        if (present == FREE)
            break;
    }
    return EAR_SESSIONS;
}

bool ear_sessions_has(const struct ear_sessions *sessions, uint64_t key)
{
    size_t room;
    assert(key > LEFT);
    return find(sessions, key, &room) != EAR_SESSIONS;
}

bool ear_sessions_add(struct ear_sessions *sessions, struct ear_counts *counts, uint64_t key)
{
    size_t room, place = find(sessions, key, &room);
    assert(key > LEFT);
    if (place == EAR_SESSIONS) {
        if (counts->used == EAR_SESSIONS_MOST)
            return false;
        assert(room != EAR_SESSIONS);
        place = room;
        counts->used++;
        atomic_store(&sessions->keys[place], key);
    }
    counts->counts[place]++;
    return true;
}

/* The end of a chain is free, so that chains do not grow for ever. */
static void shorten(struct ear_sessions *sessions, size_t place)
{
    while (atomic_load(&sessions->keys[place]) == LEFT &&
           atomic_load(&sessions->keys[next_to(place)]) == FREE) {
        atomic_store(&sessions->keys[place], FREE);
        place = (place + EAR_SESSIONS - 1) % EAR_SESSIONS;
    }
}

void ear_sessions_remove(struct ear_sessions *sessions, struct ear_counts *counts, uint64_t key)
{
    size_t room, place = find(sessions, key, &room);
    assert(place != EAR_SESSIONS && counts->counts[place]);
    if (--counts->counts[place])
        return;
    counts->used--;
    atomic_store(&sessions->keys[place], LEFT);
    shorten(sessions, place);
}

void ear_sessions_clear(struct ear_sessions *sessions)
{
    for (size_t i = 0; i < EAR_SESSIONS; i++)
        if (atomic_load(&sessions->keys[i]))
            atomic_store(&sessions->keys[i], FREE);
}
