/* test_stored_id: ids of the classes that are listed are encrypted, each at all places that it has in a
 * statement, and no statement was forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "store/statements.h"
#include "store/stored_id.h"

static struct arena *arena;
static struct sealing_keys two[2];
static char listed[] = "Login Person";
static const struct data_keys keys = {.keys = two, .count = 2, .id_classes = listed};
static const struct data_keys first = {.keys = two, .count = 1, .id_classes = listed};

static int begin(void **state UNUSED)
{
    unsigned char secret[SEALING_KEY] = {7};
    arena = arena_create("test");
    sealing_derive(1, secret, &two[0]);
    secret[0] = 8;
    sealing_derive(2, secret, &two[1]);
    return 0;
}

static int end(void **state UNUSED)
{
    arena_destroy(arena);
    return 0;
}

static struct bytes seal(const char *class, const char *id)
{
    return data_keys_seal_id(&keys, arena, bytes_of(class), bytes_of(id));
}

/* --- ids --- */

static void an_id_is_the_same_text_under_all_keys_and_comes_back(void **state UNUSED)
{
    static const char *const ids[] = {"a", "~a", "with.dot", "\xc3\xa9"};
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        struct bytes stored = seal("Person", ids[i]), back = stored;
        assert_true(stored.size >= 24 && stored.data[0] == '~');
        if (strlen(ids[i]) > 1) /* one letter may occur by chance */
            assert_null(memmem(stored.data + 1, stored.size - 1, ids[i], strlen(ids[i])));
        assert_true(bytes_equal(stored, seal("Person", ids[i])));
        assert_true(bytes_equal(stored, data_keys_seal_id(&first, arena, BYTES("Person"), bytes_of(ids[i]))));
        assert_true(data_keys_open_id(&keys, arena, BYTES("Person"), &back));
        assert_true(bytes_equal(back, bytes_of(ids[i])));
    }
}

static void an_id_is_of_its_class_and_whole(void **state UNUSED)
{
    struct bytes stored = seal("Person", "ann");
    for (size_t i = 0; i <= stored.size; i++) {
        char *altered = arena_copy(arena, stored.data, stored.size);
        struct bytes id = {altered, stored.size};
        if (i < stored.size)
            altered[i] = altered[i] == 'A' ? 'B' : 'A';
        assert_int_equal(data_keys_open_id(&keys, arena, BYTES("Person"), &id), i == stored.size);
    }
    assert_false(bytes_equal(stored, seal("Login", "ann")));
    assert_false(data_keys_open_id(&keys, arena, BYTES("Login"), &stored));
    struct bytes clear = BYTES("ann");
    assert_false(data_keys_open_id(&keys, arena, BYTES("Person"), &clear));
}

static void other_ids_stay(void **state UNUSED)
{
    static const struct data_keys none;
    static const char *const classes[] = {"Perso", "Person2", "Log", "Login Person", ""};
    for (size_t i = 0; i < COUNT_OF(classes); i++) {
        struct bytes id = BYTES("ann");
        assert_true(bytes_equal(seal(classes[i], "ann"), id));
        assert_true(data_keys_open_id(&keys, arena, bytes_of(classes[i]), &id));
        assert_true(bytes_equal(id, BYTES("ann")));
    }
    assert_int_equal(seal("Person", "").size, 0);
    assert_true(bytes_equal(data_keys_seal_id(&none, arena, BYTES("Person"), BYTES("ann")), BYTES("ann")));
    assert_true(data_keys_has_ids(&keys) && !data_keys_has_ids(&none));
}

static void the_payload_of_a_notification_has_the_id_of_the_document(void **state UNUSED)
{
    struct bytes stored = seal("Person", "a.b");
    struct bytes payload = bytes_of(arena_printf(arena, "Person.%.*s", (int)stored.size, stored.data));
    assert_true(bytes_equal(stored_id_open_payload(&keys, arena, payload), BYTES("Person.a.b")));
    assert_true(bytes_equal(stored_id_open_payload(&keys, arena, BYTES("Open.x")), BYTES("Open.x")));
    assert_true(bytes_equal(stored_id_open_payload(&keys, arena, BYTES("all")), BYTES("all")));
    assert_true(bytes_equal(stored_id_open_payload(&keys, arena, BYTES("Person.x")), BYTES("all")));
    assert_true(bytes_equal(stored_id_open_payload(&keys, arena, BYTES("Person")), BYTES("all")));
}

/* --- parameters of statements --- */

/* Sent as the session does it. */
static const struct pg_params *send(enum statement statement, const struct pg_params *params)
{
    struct stored_ids *ids = arena_alloc(arena, sizeof *ids);
    *ids = stored_ids_of_store(&keys);
    const struct pg_params *sent = stored_ids_send(ids, &statements[statement], params);
    assert_int_equal(sent->count, params->count);
    return sent;
}

static void a_text_is_sealed_for_its_class(void **state UNUSED)
{
    for (int is_listed = 0; is_listed < 2; is_listed++) {
        struct pg_params params;
        pg_params_start(&params, arena);
        pg_params_add_text(&params, is_listed ? BYTES("Person") : BYTES("Open"));
        pg_params_add_text(&params, BYTES("ann"));
        const struct pg_params *sent = send(STATEMENT_LOAD, &params);
        assert_true(bytes_equal(pg_params_text(sent, 1), is_listed ? seal("Person", "ann") : BYTES("ann")));
        assert_true(bytes_equal(pg_params_text(sent, 0), pg_params_text(&params, 0)));
        assert_true(bytes_equal(pg_params_text(&params, 1), BYTES("ann")));
        assert_int_equal(sent->bytes - params.bytes,
                         is_listed ? seal("Person", "ann").size - BYTES("ann").size : 0);
    }
}

static void each_of_an_array_is_sealed_for_its_class(void **state UNUSED)
{
    const struct bytes classes[] = {BYTES("Person"), BYTES("Open"), BYTES("Login")};
    const struct bytes ids[] = {BYTES("ann"), BYTES("ann"), BYTES("")};
    struct pg_params params;
    size_t count;
    pg_params_start(&params, arena);
    pg_params_add_text_array(&params, classes, COUNT_OF(classes));
    pg_params_add_text_array(&params, ids, COUNT_OF(ids));
    const struct bytes *sent = pg_params_text_array(send(STATEMENT_SIZES, &params), 1, &count);
    assert_int_equal(count, COUNT_OF(ids));
    assert_true(bytes_equal(sent[0], seal("Person", "ann")));
    assert_true(bytes_equal(sent[1], BYTES("ann")) && sent[2].size == 0);
    pg_params_start(&params, arena);
    pg_params_add_text(&params, BYTES("Person"));
    pg_params_add_text_array(&params, ids, 2);
    pg_params_add_i64(&params, 1);
    sent = pg_params_text_array(send(STATEMENT_MEMBERS, &params), 1, &count);
    assert_true(count == 2 && bytes_equal(sent[0], sent[1]) && bytes_equal(sent[0], seal("Person", "ann")));
    pg_params_start(&params, arena);
    pg_params_add_text(&params, BYTES("Person"));
    pg_params_add_text_array(&params, NULL, 0);
    pg_params_add_i64(&params, 1);
    (void)pg_params_text_array(send(STATEMENT_MEMBERS, &params), 1, &count);
    assert_int_equal(count, 0);
}

/* --- no statement was forgotten --- */

static bool has_word(const char *text, const char *word)
{
    size_t size = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += size) {
        bool begins = at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '_');
        if (begins && !isalnum((unsigned char)at[size]) && at[size] != '_')
            return true;
    }
    return false;
}

static bool has_place(int statement)
{
    static const int listed_statements[] = {
#define STORED_ID(statement, kind, class, id) STATEMENT_##statement,
#include "store/stored_id_table.h"
#undef STORED_ID
    };
    for (size_t i = 0; i < COUNT_OF(listed_statements); i++)
        if (listed_statements[i] == statement)
            return true;
    return false;
}

/* Ids of data keys; notes of copies, and values that are unique in all namespaces, are refused in an
 * encrypted one, so COPY_DUE finds none. */
static bool is_without(int statement)
{
    static const int without[] = {STATEMENT_DATA_KEYS,     STATEMENT_COPY_NOTE,  STATEMENT_COPY_FIND,
                                  STATEMENT_COPY_LOCK,     STATEMENT_COPY_WRITE, STATEMENT_COPY_DONE,
                                  STATEMENT_GLOBAL_CHANGES};
    for (size_t i = 0; i < COUNT_OF(without); i++)
        if (without[i] == statement)
            return true;
    return false;
}

static void every_statement_with_an_id_has_its_place_in_the_table(void **state UNUSED)
{
    static const char *const calls[] = {"member_write", "owned_write",   "subscription_match", "sight_since",
                                        "sight_had",    "sight_written", "thumbnail_note"};
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        const char *sql = statements[i].sql;
        bool has_id = has_word(sql, "id");
        for (size_t k = 0; k < COUNT_OF(calls); k++)
            has_id = has_id || has_word(sql, calls[k]);
        /* the id of a match is of the class that its definition names */
        bool is_right = i == STATEMENT_SUBSCRIPTIONS_TAKE || has_id == (has_place(i) || is_without(i));
        if (!is_right)
            print_error("%s\n", statements[i].name);
        assert_true(is_right);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_the_same_text_under_all_keys_and_comes_back),
        cmocka_unit_test(an_id_is_of_its_class_and_whole),
        cmocka_unit_test(other_ids_stay),
        cmocka_unit_test(the_payload_of_a_notification_has_the_id_of_the_document),
        cmocka_unit_test(a_text_is_sealed_for_its_class),
        cmocka_unit_test(each_of_an_array_is_sealed_for_its_class),
        cmocka_unit_test(every_statement_with_an_id_has_its_place_in_the_table),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
