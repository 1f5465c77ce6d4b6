/* transaction_world: see the header. */
#include "transaction_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "model/document/stamp.h"
#include "segment/namespaces.h"
#include "segment/processes.h"
#include "segment/slots.h"
#include "segment/segment_open.h"
#include "document/transaction.h"

struct settings settings;
struct segment *segment;
struct documents *documents, *others; /* of this worker, and of another */
struct arena *arena;
int ns;
int own_index, other_index;

/* Of A, of B and of their class: the hash has a seed that is drawn for each segment. */
static bool has_shared_slots(void)
{
    uint32_t of_class = slots_of_class(segment, ns, A.class);
    return slot_of(A) == slot_of(B) || slot_of(A) == of_class || slot_of(B) == of_class;
}

static bool open_segment(void)
{
    do {
        char problem[256], path[] = "/tmp/stampd-segment-XXXXXX";
        close(mkstemp(path));
        unlink(path);
        segment_close(segment);
        if (!segment_open(&segment, path, 1024, 1 << 20, problem, sizeof problem))
            return fprintf(stderr, "%s\n", problem), false;
        unlink(path);
        ns = namespaces_find(segment, BYTES("one"));
    } while (has_shared_slots());
    return true;
}

int world_start(void **state UNUSED)
{
    int indexes[2];
    settings = (struct settings){.limit_tombstones = 1000,
                                 .cache_mb = 1,
                                 .cache_age_s = 1000,
                                 .hosts = HOSTS_ONE,
                                 .limit_documents = 32,
                                 .tombstone_s = 100};
    if (!open_segment() || processes_take(segment, 1, 1, 2, indexes) != 2)
        return -1;
    own_index = indexes[0];
    other_index = indexes[1];
    segment_join(segment, own_index);
    fake_reset();
    documents = documents_create(&settings, segment);
    documents_begin_request(documents, INT64_MAX);
    others = documents_create(&settings, segment);
    documents_begin_request(others, INT64_MAX);
    arena = arena_create("test");
    return 0;
}

int world_stop(void **state UNUSED)
{
    arena_destroy(arena);
    documents_destroy(documents);
    documents_destroy(others);
    segment_close(segment);
    segment = NULL;
    return 0;
}

uint32_t slot_of(struct document_name name)
{
    return slots_index(segment, slots_hash(segment, ns, name.class, name.id));
}

/* Another worker's commit: its mark, the change, the stamp, the mark gone. */
void commit_elsewhere(struct document_name name, int64_t version, const char *content)
{
    uint32_t slot = slot_of(name);
    uint64_t own;
    segment_join(segment, other_index);
    slots_begin(segment, ns);
    slots_mark(segment, &slot, 1, &own);
    fake_change(name.class.data, name.id.data, version, content);
    slots_publish(segment, &slot, 1, NULL);
    slots_unmark(segment, &slot, 1);
    slots_end(segment);
    segment_join(segment, own_index);
}

void move_slot_of_a(void)
{
    uint32_t slot = slot_of(A);
    uint64_t own;
    segment_join(segment, other_index);
    slots_begin(segment, ns);
    slots_mark(segment, &slot, 1, &own);
    slots_publish(segment, &slot, 1, NULL);
    slots_unmark(segment, &slot, 1);
    slots_end(segment);
    segment_join(segment, own_index);
}

struct transaction *begin(bool in_snapshot)
{
    struct transaction *transaction;
    assert_int_equal(transaction_begin(documents, ns, arena, in_snapshot, &transaction), FAULT_NONE);
    return transaction;
}

struct draft *fetch(struct transaction *transaction, struct document_name name)
{
    struct draft *draft;
    assert_int_equal(transaction_fetch(transaction, name, &draft), FAULT_NONE);
    return draft;
}

int64_t fetched_version(struct transaction *transaction, struct document_name name)
{
    return draft_base(fetch(transaction, name))->header.version;
}

enum fault validate(struct transaction *transaction, int64_t *version)
{
    enum fault fault = transaction_validate(transaction, version);
    transaction_end(transaction);
    return fault;
}

int64_t newest_version(struct document_name name)
{
    const struct document *document;
    assert_int_equal(documents_newest(documents, ns, arena, &name, 1, &document), FAULT_NONE);
    return document->header.version;
}

void change_a_elsewhere(void)
{
    static int64_t seconds;
    commit_elsewhere(A, stamp_add_ms(stamp_now(), 1000 * ++seconds), "9");
}
