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

#include "document/stamp.h"

char one_host[] = "one", many_hosts[] = "many";
struct settings settings;
struct stamps *stamps;
struct documents *documents, *others; /* of this worker, and of another */
struct arena *arena;
int space;
int own_index, other_index;

int world_start(void **state)
{
    (void)state;
    char problem[256], path[] = "/tmp/stampd-segment-XXXXXX";
    int indexes[2], fd = mkstemp(path);
    close(fd);
    unlink(path);
    settings = (struct settings){.limit_tombstones = 1000,
                                 .cache_mb = 1,
                                 .cache_age_s = 1000,
                                 .hosts = one_host,
                                 .limit_documents = 32,
                                 .tombstone_s = 100};
    if (!stamps_open_with_shelf(&stamps, path, 1024, 1 << 20, problem, sizeof problem))
        return fprintf(stderr, "%s\n", problem), -1;
    unlink(path);
    if (stamps_take_entries(stamps, 1, 1, 2, indexes) != 2)
        return -1;
    own_index = indexes[0];
    other_index = indexes[1];
    stamps_become(stamps, own_index);
    space = stamps_space(stamps, BYTES("one"));
    fake_reset();
    documents = documents_create(&settings, stamps);
    documents_begin_request(documents, INT64_MAX);
    others = documents_create(&settings, stamps);
    documents_begin_request(others, INT64_MAX);
    arena = arena_create("test");
    return 0;
}

int world_stop(void **state)
{
    (void)state;
    arena_destroy(arena);
    documents_destroy(documents);
    documents_destroy(others);
    stamps_close(stamps);
    return 0;
}

uint32_t slot_of(struct name name)
{
    return stamps_slot(stamps, stamps_hash(stamps, space, name.class, name.id));
}

/* Another worker's commit: its mark, the change, the stamp, the mark gone. */
void commit_elsewhere(struct name name, int64_t version, const char *content)
{
    uint32_t slot = slot_of(name);
    uint64_t own;
    stamps_become(stamps, other_index);
    stamps_begin(stamps, space);
    stamps_mark(stamps, &slot, 1, &own);
    fake_change(name.class.data, name.id.data, version, content);
    stamps_publish(stamps, &slot, 1, NULL);
    stamps_unmark(stamps, &slot, 1);
    stamps_end(stamps);
    stamps_become(stamps, own_index);
}

void move_slot_of_a(void)
{
    uint32_t slot = slot_of(A);
    uint64_t own;
    stamps_become(stamps, other_index);
    stamps_begin(stamps, space);
    stamps_mark(stamps, &slot, 1, &own);
    stamps_publish(stamps, &slot, 1, NULL);
    stamps_unmark(stamps, &slot, 1);
    stamps_end(stamps);
    stamps_become(stamps, own_index);
}

struct transaction *begin(bool in_snapshot)
{
    struct transaction *transaction;
    assert_int_equal(transaction_begin(documents, space, arena, in_snapshot, &transaction), FAULT_NONE);
    return transaction;
}

struct draft *fetch(struct transaction *transaction, struct name name)
{
    struct draft *draft;
    assert_int_equal(transaction_fetch(transaction, name, &draft), FAULT_NONE);
    return draft;
}

int64_t fetched_version(struct transaction *transaction, struct name name)
{
    return draft_base(fetch(transaction, name))->header.version;
}

enum fault validate(struct transaction *transaction, int64_t *version)
{
    enum fault fault = transaction_validate(transaction, version);
    transaction_end(transaction);
    return fault;
}

int64_t newest_version(struct name name)
{
    const struct document *document;
    assert_int_equal(documents_newest(documents, space, arena, &name, 1, &document), FAULT_NONE);
    return document->header.version;
}

void change_a_elsewhere(void)
{
    static int64_t seconds;
    commit_elsewhere(A, stamp_add_ms(stamp_now(), 1000 * ++seconds), "9");
}
