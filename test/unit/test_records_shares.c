/* test_records_shares: whom records count for, beside a model, and what a share refuses. */
#include "records_disk_fixture.h"

#include <stdlib.h>
#include <string.h>

enum { KEYS = 60, CALLERS = 5, RULES = 2, STEPS = 6000, TTL_MS = 60000 };

static struct records_payer payer_of(int caller)
{
    uint64_t rule = (uint64_t)(caller % RULES) + 1;
    return (struct records_payer){.rule = rule << 40, .caller = (uint64_t)caller + 100};
}

static struct records_sums of_share(uint64_t digest)
{
    struct records_sums sums;
    records_sum_share(records, NS, digest, &sums);
    return sums;
}

static struct records_sums of_namespace(void)
{
    struct records_sums sums;
    records_sum(records, NS, &sums);
    return sums;
}

static enum records_outcome pay(const char *key, size_t size, const struct records_payer *payer)
{
    static char text[BYTES_SMALL];
    memset(text, 'x', sizeof text);
    return RUN(.deed = RECORDS_SET, .key = bytes_of(key), .type = RECORDS_STRING, .content = {text, size},
               .may_overwrite = true, .payer = payer);
}

/* --- limits --- */

static void a_share_refuses_what_grows(void **state UNUSED)
{
    struct records_payer one = payer_of(0), other = payer_of(2);
    one.caller_bytes = 2000;
    assert_int_equal(pay("a", 1000, &one), RECORDS_OK);
    assert_int_equal(pay("b", 1000, &one), RECORDS_OUT_OF_SHARE);
    assert_int_equal(pay("a", 1900, &one), RECORDS_OUT_OF_SHARE);
    expect("b", NULL);
    assert_int_equal(pay("b", 1000, NULL), RECORDS_OK);   /* the namespace has room */
    assert_int_equal(pay("c", 1000, &other), RECORDS_OK); /* and another caller */
    one.caller_bytes = 500;
    assert_int_equal(pay("a", 900, &one), RECORDS_OK); /* smaller, though too large */
    assert_int_equal(pay("d", 1, &one), RECORDS_OUT_OF_SHARE);
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("a"), .payer = &one), RECORDS_OK);
    assert_int_equal(pay("d", 1, &one), RECORDS_OK);
    assert_int_equal(of_share(one.caller).records, 2); /* a deletion is remembered */
    assert_int_equal(of_namespace().refused_shares, 3);
    assert_int_equal(of_namespace().refused, 0);
}

static void each_limit_counts(void **state UNUSED)
{
    const uint64_t records_most[] = {0, 3, 0, 5, 0, 0}, bytes_most[] = {1500, 0, 2500, 0, 4000, 9000};
    for (int i = 0; i < 6; i++) {
        int count = 0;
        enum records_outcome outcome = RECORDS_OK;
        for (; outcome == RECORDS_OK && count < 100; count++) {
            char key[16];
            struct records_payer payer = payer_of(i < 2 ? 0 : i < 4 ? count % 2 * 2 : count % CALLERS);
            *(i < 2 ? &payer.caller_bytes : i < 4 ? &payer.rule_bytes : &payer.payers_bytes) = bytes_most[i];
            *(i < 2 ? &payer.caller_records : &payer.rule_records) = records_most[i];
            snprintf(key, sizeof key, "%d", count);
            outcome = pay(key, 300, &payer);
        }
        assert_int_equal(outcome, RECORDS_OUT_OF_SHARE);
        if (records_most[i])
            assert_int_equal(count - 1, records_most[i]);
        else
            assert_in_range(i == 4 || i == 5 ? of_namespace().paid
                                             : of_share(i < 2 ? payer_of(0).caller : payer_of(0).rule).bytes,
                            bytes_most[i] - 700, bytes_most[i]);
        for (; count; count--) {
            char key[16];
            snprintf(key, sizeof key, "%d", count - 1);
            RUN(.deed = RECORDS_DELETE, .key = bytes_of(key), .is_immediate = true);
        }
        assert_int_equal(of_namespace().paid, 0);
        records_check(records);
    }
}

static void a_namespace_has_so_many_records(void **state UNUSED)
{
    assert_int_equal(pay("a", 1, NULL), RECORDS_OK);
    struct records_command command = {.deed = RECORDS_SET,
                                      .key = BYTES("b"),
                                      .type = RECORDS_VOID,
                                      .content = BYTES(""),
                                      .records_most = 1};
    assert_int_equal(run(&command), RECORDS_OUT_OF_MEMORY);
    command.key = BYTES("a");
    command.may_overwrite = true;
    assert_int_equal(run(&command), RECORDS_OK);
    command.records_most = 2;
    command.key = BYTES("b");
    assert_int_equal(run(&command), RECORDS_OK);
    /* the memory of a deletion is one too */
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("c"), .timestamp_us = 5, .records_most = 2),
                     RECORDS_OUT_OF_MEMORY);
}

static void what_has_expired_leaves_its_share(void **state UNUSED)
{
    struct records_payer payer = payer_of(1);
    payer.caller_records = 3;
    for (int i = 0; i < 12; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        assert_int_equal(RUN(.deed = RECORDS_SET, .key = bytes_of(key), .type = RECORDS_VOID,
                             .content = BYTES(""), .expires_ms = clock_present_ms() + 1, .payer = &payer),
                         RECORDS_OK);
        clock_sleep_ms(2);
    }
    assert_in_range(of_share(payer.caller).records, 1, 3);
}

static void an_end_is_not_beyond_what_the_payer_may(void **state UNUSED)
{
    struct records_payer payer = payer_of(1);
    int64_t by_ms = clock_present_ms() + TTL_MS;
    struct records_command command = {.deed = RECORDS_SET,
                                      .key = BYTES("a"),
                                      .type = RECORDS_INTEGER,
                                      .content = {"\0\0\0\0\0\0\0\1", 8},
                                      .may_overwrite = true,
                                      .ends_by_ms = by_ms,
                                      .payer = &payer};
    assert_int_equal(run(&command), RECORDS_OK);
    assert_int_equal(found.expires_ms, by_ms);
    command.expires_ms = by_ms - 5;
    assert_int_equal(run(&command), RECORDS_OK);
    assert_int_equal(found.expires_ms, by_ms - 5);
    command.deed = RECORDS_GET;
    command.expires_ms = by_ms + 9;
    assert_int_equal(run(&command), RECORDS_OK);
    assert_int_equal(found.expires_ms, by_ms);
    /* of the namespace, and what a payer adds to it: no end; with another key it is the payer's */
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("n"), .type = RECORDS_INTEGER,
                         .content = {"\0\0\0\0\0\0\0\1", 8}),
                     RECORDS_OK);
    command.expires_ms = 0;
    command.deed = RECORDS_ADD;
    command.key = BYTES("n");
    assert_int_equal(run(&command), RECORDS_OK);
    assert_int_equal(found.expires_ms, 0);
    assert_int_equal(of_share(payer.caller).records, 1);
    command.deed = RECORDS_LINK;
    command.to = BYTES("m");
    assert_int_equal(run(&command), RECORDS_OK);
    assert_int_equal(found.expires_ms, by_ms);
    assert_int_equal(of_share(payer.caller).records, 2);
}

/* --- beside a model --- */

/* Whom what is under each key counts for; -1: the namespace.  A remembered deletion counts too. */
struct model_record {
    bool is_there, is_deletion, is_persisted;
    int payer;
    size_t size;
};
static struct model_record model[KEYS];
static unsigned seed;

static int pick(int most)
{
    return rand_r(&seed) % most;
}

static void name_of(int number, char key_r[24])
{
    snprintf(key_r, 24, "key.%d.%0*d", number, number % 9 + 1, number);
}

static void model_set(int number, int payer, size_t size, bool is_persisted)
{
    model[number] = (struct model_record){true, false, is_persisted, payer, size};
}

/* A small piece is at most so much larger than what is in it. */
enum { HEAD = 4, ROUNDED = 16 };

static size_t least_of(int number)
{
    char key[24];
    name_of(number, key);
    return HEAD + 24 + strlen(key) + HEAD + 36 + model[number].size + HEAD + 36;
}

static void expect_model(void)
{
    for (int caller = 0; caller < CALLERS; caller++) {
        uint64_t count = 0, least = 0;
        for (int i = 0; i < KEYS; i++)
            if (model[i].is_there && model[i].payer == caller) {
                count++;
                least += least_of(i);
            }
        struct records_sums sums = of_share(payer_of(caller).caller);
        assert_int_equal(sums.records, count);
        assert_in_range(sums.bytes, least, least + count * (3 * ROUNDED + 90) + (count ? 48 : 0));
    }
    uint64_t bytes = 0;
    for (int rule = 0; rule < RULES; rule++) {
        uint64_t count = 0;
        for (int i = 0; i < KEYS; i++)
            count += model[i].is_there && model[i].payer >= 0 && model[i].payer % RULES == rule;
        struct records_sums sums = of_share(payer_of(rule).rule);
        assert_int_equal(sums.records, count);
        bytes += sums.bytes;
    }
    assert_int_equal(of_namespace().paid, bytes);
}

static void model_delete(int number, const struct records_payer *payer, bool is_immediate)
{
    char key[24];
    name_of(number, key);
    bool is_record = model[number].is_there && !model[number].is_deletion;
    assert_int_equal(
        RUN(.deed = RECORDS_DELETE, .key = bytes_of(key), .payer = payer, .is_immediate = is_immediate),
        is_record ? RECORDS_OK : RECORDS_NOT_FOUND);
    if (is_immediate)
        model[number].is_there = false;
    model[number].size = 0;
    model[number].is_deletion = model[number].is_there;
}

static void model_rename(int number, int caller, const struct records_payer *payer)
{
    char key[24], to[24];
    int other = pick(KEYS);
    name_of(number, key);
    name_of(other, to);
    bool is_record = model[number].is_there && !model[number].is_deletion;
    bool is_taken = model[other].is_there && !model[other].is_deletion && other != number;
    enum records_outcome outcome =
        RUN(.deed = RECORDS_RENAME, .key = bytes_of(key), .to = bytes_of(to), .payer = payer);
    assert_int_equal(outcome, !is_record ? RECORDS_NOT_FOUND : is_taken ? RECORDS_NOT_FREE : RECORDS_OK);
    if (outcome != RECORDS_OK)
        return;
    struct model_record moved = model[number];
    moved.payer = payer ? caller : moved.payer;
    if (other != number)
        model[number] = (struct model_record){true, true, moved.is_persisted, payer ? caller : -1, 0};
    model[other] = moved;
}

/* Growing, it counts for the caller from then on. */
static void model_truncate(int number, int caller, const struct records_payer *payer)
{
    char key[24];
    size_t size = (size_t)pick(8) * 100;
    name_of(number, key);
    bool is_record = model[number].is_there && !model[number].is_deletion;
    struct records_sums before = of_namespace(), now;
    assert_int_equal(RUN(.deed = RECORDS_TRUNCATE, .key = bytes_of(key), .size = size, .payer = payer),
                     is_record ? RECORDS_OK : RECORDS_NOT_FOUND);
    if (!is_record)
        return;
    model[number].size = size;
    now = of_namespace();
    if (payer && now.bytes > before.bytes)
        model[number].payer = caller;
}

static void step(int i)
{
    char key[24];
    int number = pick(KEYS), caller = pick(CALLERS + 1) - 1;
    const struct records_payer whole = payer_of(caller < 0 ? 0 : caller), *payer = caller < 0 ? NULL : &whole;
    name_of(number, key);
    switch (pick(6)) {
    case 0:
        model_delete(number, payer, pick(2));
        break;
    case 1:
        model_rename(number, caller, payer);
        break;
    case 2:
        model_truncate(number, caller, payer);
        break;
    default: {
        static char text[800];
        size_t size = (size_t)pick(700);
        bool is_persisted = pick(2);
        assert_int_equal(RUN(.deed = RECORDS_SET, .key = bytes_of(key), .type = RECORDS_BUFFER,
                             .content = {text, size}, .may_overwrite = true, .is_persisted = is_persisted,
                             .payer = payer),
                         RECORDS_OK);
        model_set(number, caller, size, is_persisted);
    }
    }
    if (i % 20 == 0) {
        expect_model();
        records_check(records);
    }
}

static void forget_what_is_in_memory_alone(void)
{
    for (int i = 0; i < KEYS; i++)
        if (model[i].is_there && !model[i].is_persisted)
            model[i].is_there = false;
}

static void shares_are_what_the_model_has(void **state UNUSED)
{
    memset(model, 0, sizeof model);
    seed = 1;
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < STEPS / 6; i++)
            step(i);
        records_save_rest(records);
        restart();
        forget_what_is_in_memory_alone();
        expect_model();
    }
    for (int i = 0; i < KEYS; i++)
        model_delete(i, NULL, true);
    expect_model();
    struct records_sums sums = of_namespace();
    assert_int_equal(sums.paid, 0);
    assert_int_equal(sums.bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_share_refuses_what_grows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_limit_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_namespace_has_so_many_records, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_has_expired_leaves_its_share, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_end_is_not_beyond_what_the_payer_may, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shares_are_what_the_model_has, set_up_disk, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
