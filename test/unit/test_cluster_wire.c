/* test_cluster_wire: messages between hosts as bytes: what is written is read, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cluster/cluster_wire.h"

enum { CONTENT_MOST = 100 };

static struct builder out;

static struct cluster_message sample(enum cluster_message_kind kind)
{
    return (struct cluster_message){.kind = kind,
                                    .from = 0xfffffffe,
                                    .to = 2,
                                    .version = UINT64_MAX,
                                    .id = 4,
                                    .sent_ms = CLUSTER_WIRE_MS_MOST - 1,
                                    .level = 3,
                                    .key = BYTES("a\0key"),
                                    .content = BYTES("some content"),
                                    .deed = CLUSTER_REMOVE,
                                    .outcome = CLUSTER_REDO,
                                    .ttl_ms = 5,
                                    .end_ms = -6,
                                    .past_ms = 7,
                                    .stamp = {8, 9, 10},
                                    .known = {11, 12, 13},
                                    .reach = 0xffff,
                                    .is_unsure = true,
                                    .is_removed = true,
                                    .payer = {0, 22, 23},
                                    .limits = {0, 0, 24, 25, 26, 27, UINT64_MAX},
                                    .copies = 7,
                                    .silent = {14, 15, 16, 17, 18, 19, 20, 21},
                                    .silent_count = 8};
}

static enum cluster_reading read_all(struct cluster_message *message_r)
{
    size_t used = 0;
    enum cluster_reading reading = cluster_wire_read(builder_bytes(&out), CONTENT_MOST, message_r, &used);
    if (reading == CLUSTER_WHOLE)
        assert_int_equal(used, out.size);
    return reading;
}

static void assert_same(const struct cluster_message *a, const struct cluster_message *b)
{
    assert_true(a->kind == b->kind && a->from == b->from && a->to == b->to && a->version == b->version &&
                a->id == b->id && a->sent_ms == b->sent_ms && a->level == b->level);
    assert_true(bytes_equal(a->key, b->key) && bytes_equal(a->content, b->content));
    assert_true(a->deed == b->deed && a->outcome == b->outcome && a->ttl_ms == b->ttl_ms &&
                a->end_ms == b->end_ms && a->past_ms == b->past_ms && a->reach == b->reach);
    assert_int_equal(cluster_table_compare(&a->stamp, &b->stamp), 0);
    assert_int_equal(cluster_table_compare(&a->known, &b->known), 0);
    assert_true(a->is_unsure == b->is_unsure && a->is_check == b->is_check &&
                a->is_removed == b->is_removed && a->is_sure == b->is_sure && a->copies == b->copies);
    assert_memory_equal(&a->payer, &b->payer, sizeof a->payer);
    assert_memory_equal(&a->limits, &b->limits, sizeof a->limits);
    assert_int_equal(a->silent_count, b->silent_count);
    assert_memory_equal(a->silent, b->silent, sizeof a->silent);
}

static void test_returns_what_was_written(void **state UNUSED)
{
    for (int kind = CLUSTER_ASK; kind <= CLUSTER_COPIED; kind++) {
        struct cluster_message message = sample((enum cluster_message_kind)kind), same;
        builder_clear(&out, 0);
        cluster_wire_write(&out, &message);
        assert_int_equal(out.size,
                         CLUSTER_WIRE_SIZE + CLUSTER_WIRE_HEAD + CLUSTER_WIRE_PAYER + 4 * 8 + 5 + 12);
        assert_int_equal(read_all(&same), CLUSTER_WHOLE);
        assert_same(&message, &same);
        struct cluster_message empty = {.kind = message.kind, .key = BYTES(""), .content = BYTES("")};
        builder_clear(&out, 0);
        cluster_wire_write(&out, &empty);
        assert_int_equal(read_all(&same), CLUSTER_WHOLE);
        assert_same(&empty, &same);
    }
}

static void test_waits_for_all_bytes(void **state UNUSED)
{
    struct cluster_message message = sample(CLUSTER_COPY), read;
    size_t used;
    builder_clear(&out, 0);
    cluster_wire_write(&out, &message);
    size_t size = out.size;
    cluster_wire_write(&out, &message);
    for (size_t part = 0; part < size; part++)
        assert_int_equal(cluster_wire_read((struct bytes){out.data, part}, CONTENT_MOST, &read, &used),
                         CLUSTER_PARTIAL);
    assert_int_equal(cluster_wire_read(builder_bytes(&out), CONTENT_MOST, &read, &used), CLUSTER_WHOLE);
    assert_int_equal(used, size);
}

/* The bounds of what a message may say, each of them. */
static void test_refuses_what_is_out_of_range(void **state UNUSED)
{
    struct {
        size_t at;
        unsigned char was, is;
    } wrong[] = {
        {CLUSTER_WIRE_SIZE, CLUSTER_ANSWER, 4},               /* kind */
        {CLUSTER_WIRE_SIZE + 1, CLUSTER_REMOVE, 5},           /* deed */
        {CLUSTER_WIRE_SIZE + 2, CLUSTER_REDO, CLUSTER_OLDER}, /* outcome, of an answer */
        {CLUSTER_WIRE_SIZE + 3, 21, 32},                      /* flags */
        {CLUSTER_WIRE_SIZE + 4, 3, 9},                        /* level */
        {CLUSTER_WIRE_SIZE + 5, 7, 8},                        /* copies */
        {CLUSTER_WIRE_SIZE + 7, 8, 9},                        /* silent hosts */
        {CLUSTER_WIRE_SIZE + 10, 0, 5},                       /* size of the key */
        {CLUSTER_WIRE_SIZE + 36, 0, 1},                       /* sent_ms */
        {CLUSTER_WIRE_SIZE + 44, 0, 0x80},                    /* ttl_ms */
        {CLUSTER_WIRE_SIZE + 52, 0xff, 0x80},                 /* end_ms */
        {CLUSTER_WIRE_SIZE + 60, 0, 0xff},                    /* past_ms */
        {0, 0, 1},                                            /* size */
    };
    struct cluster_message message = sample(CLUSTER_ANSWER), read;
    builder_clear(&out, 0);
    cluster_wire_write(&out, &message);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal((unsigned char)out.data[wrong[i].at], wrong[i].was);
        out.data[wrong[i].at] = (char)wrong[i].is;
        assert_int_equal(read_all(&read), CLUSTER_MALFORMED);
        out.data[wrong[i].at] = (char)wrong[i].was;
        assert_int_equal(read_all(&read), CLUSTER_WHOLE);
    }
    out.data[3] = CLUSTER_WIRE_HEAD - 1;
    assert_int_equal(read_all(&read), CLUSTER_MALFORMED);
}

static void test_bounds_of_content(void **state UNUSED)
{
    char content[CONTENT_MOST + 1] = "";
    struct cluster_message message = {.kind = CLUSTER_COPY, .content = {content, CONTENT_MOST}}, read;
    builder_clear(&out, 0);
    cluster_wire_write(&out, &message);
    assert_int_equal(read_all(&read), CLUSTER_WHOLE);
    message.content.size++;
    builder_clear(&out, 0);
    cluster_wire_write(&out, &message);
    assert_int_equal(read_all(&read), CLUSTER_MALFORMED);
}

static int free_all(void **state UNUSED)
{
    builder_free(&out);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_returns_what_was_written),
        cmocka_unit_test(test_waits_for_all_bytes),
        cmocka_unit_test(test_refuses_what_is_out_of_range),
        cmocka_unit_test(test_bounds_of_content),
    };
    return cmocka_run_group_tests(tests, NULL, free_all);
}
