/* file_ticket: the time, the size and the other parts, one after the other. */
#include "blob/file_ticket.h"

#include <string.h>
#include <time.h>

#include "seal/site_key.h"

struct ticket_parts {
    int64_t until_s, size;
    struct blob_digest name;
    unsigned char bound[SEALED_FILE_BOUND], key[SEALING_KEY];
    char database[FILE_TICKET_DATABASE + 1], store[FILE_TICKET_STORE + 1], object[FILE_TICKET_OBJECT + 1];
};

static const struct bytes kind = BYTES("file ticket");

const char *file_ticket_write(struct arena *arena, const struct file_ticket *ticket)
{
    struct ticket_parts parts = {
        .until_s = (int64_t)time(NULL) + FILE_TICKET_S, .size = ticket->head.size, .name = ticket->name};
    assert(ticket->database.size <= FILE_TICKET_DATABASE);
    memcpy(parts.bound, ticket->head.bound, sizeof parts.bound);
    memcpy(parts.key, ticket->head.key, sizeof parts.key);
    memcpy(parts.database, ticket->database.data, ticket->database.size);
    assert(strlen(ticket->store) <= FILE_TICKET_STORE && strlen(ticket->object) <= FILE_TICKET_OBJECT);
    memcpy(parts.store, ticket->store, strlen(ticket->store));
    memcpy(parts.object, ticket->object, strlen(ticket->object));
    struct bytes sealed = site_key_seal(arena, kind, (struct bytes){(const char *)&parts, sizeof parts});
    explicit_bzero(&parts, sizeof parts);
    return arena_copy(arena, sealed.data, sealed.size);
}

bool file_ticket_read(struct arena *arena, struct bytes text, struct file_ticket *ticket_r)
{
    struct ticket_parts parts;
    struct bytes open;
    if (!text.size || !site_key_open(arena, kind, text, &open) || open.size != sizeof parts)
        return false;
    memcpy(&parts, open.data, sizeof parts);
    explicit_bzero((char *)open.data, open.size);
    *ticket_r = (struct file_ticket){.name = parts.name, .head = {.size = parts.size}};
    memcpy(ticket_r->head.bound, parts.bound, sizeof parts.bound);
    memcpy(ticket_r->head.key, parts.key, sizeof parts.key);
    ticket_r->database = bytes_of(arena_copy(arena, parts.database, strlen(parts.database)));
    ticket_r->store = arena_copy(arena, parts.store, strlen(parts.store));
    ticket_r->object = arena_copy(arena, parts.object, strlen(parts.object));
    bool is_valid = (int64_t)time(NULL) <= parts.until_s;
    explicit_bzero(&parts, sizeof parts);
    return is_valid;
}
