/* record_changes: the ring of changes, and signed positions. */
#include "operation/record_changes.h"

#include <string.h>

#include "base/clock.h"
#include "operation/classes.h"
#include "operation/signed_text.h"

struct payload {
    uint64_t identity, position;
};

static struct bytes question_of(const struct call *call)
{
    struct builder text = {0};
    signed_text_add_part(&text, BYTES("records"));
    signed_text_add_part(&text, call->ns);
    return builder_take(&text, call->arena);
}

/* False: it is of another memory, or no position. */
static bool read_position(struct record_changes *changes, const struct schema *schema, struct bytes text)
{
    const struct call *call = changes->attempt->call;
    struct payload payload;
    struct bytes read;
    if (!signed_text_read(call->arena, schema->secret, question_of(call), text, &read) ||
        read.size != sizeof payload)
        return false;
    memcpy(&payload, read.data, sizeof payload);
    changes->position = payload.position;
    return payload.identity == records_changes_identity(changes->records);
}

enum fault record_changes_begin(struct attempt *attempt, bool is_encrypted, struct bytes since,
                                struct record_changes *changes_r, bool *is_busy_r)
{
    const struct schema *schema;
    *changes_r = (struct record_changes){
        .attempt = attempt,
        .records = attempt->worker_context->segment->records,
        .is_encrypted = is_encrypted,
        .read_ms = clock_monotonic_ms(),
    };
    changes_r->seen = records_changes(changes_r->records);
    *is_busy_r = false;
    enum fault fault = classes_schema(attempt, &schema);
    if (fault)
        return fault;
    changes_r->is_lost = since.data && !read_position(changes_r, schema, since);
    if (!since.data || changes_r->is_lost)
        *is_busy_r = !records_changes_position(changes_r->records, &changes_r->position);
    return FAULT_NONE;
}

/* False: `take` takes no more. */
static bool record_changes_give(struct record_changes *changes, uint64_t first, struct bytes read,
                                bool (*take)(void *context, struct bytes key), void *context)
{
    struct bytes key;
    uint64_t behind;
    for (; records_changes_take(&read, &key, &behind); first = behind)
        if (!take(context, key)) {
            changes->position = first;
            return false;
        }
    return true;
}

bool record_changes_read(struct record_changes *changes, bool (*take)(void *context, struct bytes key),
                         void *context)
{
    enum records_changes_end end;
    struct builder read = {0};
    bool takes_more;
    changes->seen = records_changes(changes->records);
    changes->read_ms = clock_monotonic_ms();
    do {
        uint64_t first = changes->position;
        read.size = 0;
        end = records_changes_read(changes->records, changes->attempt->call->ns, changes->is_encrypted,
                                   &changes->position, &read);
        changes->is_lost |= end == RECORDS_CHANGES_LOST;
        takes_more = record_changes_give(changes, first, builder_bytes(&read), take, context);
    } while (end == RECORDS_CHANGES_MORE && takes_more);
    builder_free(&read);
    return end != RECORDS_CHANGES_BUSY;
}

bool record_changes_are_likely(const struct record_changes *changes)
{
    return records_changes(changes->records) != changes->seen ||
           clock_monotonic_ms() >= changes->read_ms + RECORDS_CHANGES_EXPIRY_MS;
}

enum fault record_changes_position(const struct record_changes *changes, struct bytes *text_r)
{
    const struct call *call = changes->attempt->call;
    struct payload payload = {records_changes_identity(changes->records), changes->position};
    const struct schema *schema;
    enum fault fault = classes_schema(changes->attempt, &schema);
    if (!fault)
        *text_r = signed_text_make(call->arena, schema->secret, question_of(call),
                                   (struct bytes){(const char *)&payload, sizeof payload});
    return fault;
}
