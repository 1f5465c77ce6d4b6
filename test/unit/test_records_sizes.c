/* test_records_sizes: records on disk of any sizes in any order, many times the memory, beside a model. */
#include "records_disk_fixture.h"

#include <stdlib.h>
#include <string.h>

enum { MODEL_KEYS = 400, SIZE_MOST = 120000 };

/* What is under each key; contents are made from a number and a size. */
struct model_record {
    size_t size;
    int version;
    bool is_there, is_persisted;
};

static struct model_record model[MODEL_KEYS];

static int set_up_model(void **state)
{
    memset(model, 0, sizeof model);
    return set_up_disk(state);
}

static struct bytes content_of(int version, size_t size)
{
    static char text[SIZE_MOST];
    for (size_t i = 0; i < size; i++)
        text[i] = (char)((unsigned)version * 31 + i * 7 + i / 251);
    return (struct bytes){text, size};
}

static void name_of(int number, char key_r[16])
{
    snprintf(key_r, 16, "key%03d", number);
}

static void expect_model(int number)
{
    char key[16];
    const struct model_record *own = &model[number];
    name_of(number, key);
    enum records_outcome outcome = RUN(.deed = RECORDS_GET, .key = bytes_of(key));
    if (outcome != (own->is_there ? RECORDS_OK : RECORDS_NOT_FOUND))
        fail_msg("%s: %s", key, records_outcome_word(outcome));
    if (own->is_there && !bytes_equal(found.content, content_of(own->version, own->size)))
        fail_msg("%s is not version %d of %zu bytes", key, own->version, own->size);
}

static void put(int number, int version, size_t size, bool is_persisted)
{
    char key[16];
    name_of(number, key);
    enum records_outcome outcome =
        RUN(.deed = RECORDS_SET, .key = bytes_of(key), .type = RECORDS_BUFFER,
            .content = content_of(version, size), .may_overwrite = true, .is_persisted = is_persisted);
    if (outcome != RECORDS_OK)
        fail_msg("%s of %zu bytes: %s", key, size, records_outcome_word(outcome));
    model[number] = (struct model_record){size, version, true, is_persisted};
}

static void save(void)
{
    records_save_rest(records);
    records_check(records);
}

static void expect_all(void)
{
    for (int i = 0; i < MODEL_KEYS; i++)
        expect_model(i);
}

/* --- sizes --- */

static size_t growing(int i, unsigned *seed UNUSED)
{
    return 64 + (size_t)i * (SIZE_MOST - 64) / MODEL_KEYS;
}

static size_t shrinking(int i, unsigned *seed UNUSED)
{
    return growing(MODEL_KEYS - 1 - i, NULL);
}

static size_t in_turn(int i, unsigned *seed UNUSED)
{
    return i % 2 ? SIZE_MOST : 64;
}

static size_t at_random(int i UNUSED, unsigned *seed)
{
    return (size_t)rand_r(seed) % ((size_t)1 << (rand_r(seed) % 17));
}

/* Small ones first, all of them in memory, then large ones that need room in one place. */
static size_t small_then_large(int i, unsigned *seed UNUSED)
{
    return i < MODEL_KEYS / 2 ? 100 : SIZE_MOST;
}

static void sizes_come_in_any_order(void **state UNUSED)
{
    size_t (*const orders[])(int, unsigned *) = {growing, shrinking, in_turn, at_random, small_then_large};
    unsigned seed = 11;
    for (size_t first = 0; first < COUNT_OF(orders); first++)
        for (size_t round = 0; round < 2; round++) {
            for (int i = 0; i < MODEL_KEYS; i++) {
                /* by another key than the last time */
                int number = (int)((size_t)i * (round ? 7 : 1) % MODEL_KEYS);
                put(number, i + (int)round, orders[first](i, &seed), true);
                if (i % 8 == 7)
                    records_save_rest(records);
            }
            save();
            expect_all();
        }
    restart();
    expect_all();
}

/* --- a model --- */

static void rename_one(int from, int to)
{
    char key[16], other[16];
    name_of(from, key);
    name_of(to, other);
    enum records_outcome outcome =
        RUN(.deed = RECORDS_RENAME, .key = bytes_of(key), .to = bytes_of(other), .may_overwrite = true);
    assert_int_equal(outcome, model[from].is_there ? RECORDS_OK : RECORDS_NOT_FOUND);
    if (model[from].is_there && from != to) {
        model[to] = model[from];
        model[from].is_there = false;
    }
}

static void cut_one(int number, size_t size)
{
    char key[16];
    struct model_record *own = &model[number];
    name_of(number, key);
    size = own->size ? size % own->size : 0;
    enum records_outcome outcome = RUN(.deed = RECORDS_TRUNCATE, .key = bytes_of(key), .size = size);
    assert_int_equal(outcome, own->is_there ? RECORDS_OK : RECORDS_NOT_FOUND);
    own->size = size;
}

static void delete_one(int number, bool is_immediate)
{
    char key[16];
    name_of(number, key);
    enum records_outcome outcome =
        RUN(.deed = RECORDS_DELETE, .key = bytes_of(key), .is_immediate = is_immediate);
    assert_int_equal(outcome, model[number].is_there ? RECORDS_OK : RECORDS_NOT_FOUND);
    model[number].is_there = false;
}

static void step(unsigned *seed)
{
    int number = rand_r(seed) % MODEL_KEYS, other = rand_r(seed) % MODEL_KEYS;
    bool is_persisted = rand_r(seed) % 8;
    size_t size = (size_t)rand_r(seed) % (is_persisted ? 20000 : 500);
    switch (rand_r(seed) % 8) {
    case 0:
    case 1:
        put(number, rand_r(seed) % 1000, size, is_persisted);
        return;
    case 2:
        delete_one(number, rand_r(seed) % 2);
        return;
    case 3:
        rename_one(number, other);
        return;
    case 4:
        cut_one(number, size);
        return;
    default:
        expect_model(number);
    }
}

/* All that is not on disk is gone; what is, is as it was. */
static void forget_the_rest(void)
{
    for (int i = 0; i < MODEL_KEYS; i++)
        model[i].is_there = model[i].is_there && model[i].is_persisted;
}

static void random_commands_agree_with_a_model(void **state UNUSED)
{
    uint64_t most_away = 0;
    for (unsigned round = 1; round <= 4; round++) {
        unsigned seed = round;
        for (int i = 0; i < 8000; i++) {
            struct records_sums sums;
            step(&seed);
            if (i % 16 == 15)
                records_save_rest(records);
            if (i % 500)
                continue;
            records_check(records);
            records_sum(records, NO_BYTES, &sums);
            most_away = sums.away > most_away ? sums.away : most_away;
        }
        save();
        restart();
        forget_the_rest();
        expect_all();
    }
    assert_true(most_away > 50);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_model, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(sizes_come_in_any_order),
        TEST(random_commands_agree_with_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
