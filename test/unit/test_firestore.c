/* firestore_wire and firestore_log: what is cut from bytes that lie about their sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/foreign/firestore/firestore_log.h"
#include "control/foreign/firestore/firestore_wire.h"

/* The events of a message, f: a field, e: its end, w: wrong. */
static void assert_events(struct bytes message, const char *events)
{
    struct firestore_field field;
    for (; *events; events++) {
        enum firestore_wire_event event = firestore_wire_next(&message, &field);
        assert_int_equal(event, *events == 'f'   ? FIRESTORE_WIRE_FIELD
                                : *events == 'e' ? FIRESTORE_WIRE_END
                                                 : FIRESTORE_WIRE_WRONG);
    }
}

static void fields_are_cut_within_their_message(void **state UNUSED)
{
    assert_events(BYTES(""), "e");
    assert_events(BYTES("\x08\x01\x11"
                        "12345678\x1a\x02xy\x25"
                        "1234"),
                  "ffffe");
    assert_events(BYTES("\x08"), "w");
    assert_events(BYTES("\x08\x80"), "w");
    assert_events(BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "fe");
    assert_events(BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), "w");
    assert_events(BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "w");
    assert_events(BYTES("\x11"
                        "1234567"),
                  "w");
    assert_events(BYTES("\x25"
                        "123"),
                  "w");
    assert_events(BYTES("\x1a\x03xy"), "w");
    assert_events(BYTES("\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01xy"), "w");
    assert_events(BYTES("\x02\x01x"), "w");                /* no number */
    assert_events(BYTES("\x0e"), "w");                     /* no kind */
    assert_events(BYTES("\x0c"), "w");                     /* an end without a group */
    assert_events(BYTES("\x80\x80\x80\x80\x10\x01"), "w"); /* a number of 30 bits */
}

static void groups_end_in_their_order(void **state UNUSED)
{
    struct firestore_field field;
    struct bytes message = BYTES("\x0b\x13\x08\x0c\x14\x1a\x01\x0c\x0c\x08\x07");
    assert_int_equal(firestore_wire_next(&message, &field), FIRESTORE_WIRE_FIELD);
    assert_true(firestore_wire_is(&field, 1, FIRESTORE_GROUP));
    assert_int_equal(field.text.size, 7);
    assert_int_equal(firestore_wire_next(&message, &field), FIRESTORE_WIRE_FIELD);
    assert_int_equal(field.value, 7);
    assert_events(BYTES("\x0b"), "w");
    assert_events(BYTES("\x0b\x14"), "w");
    assert_events(BYTES("\x0b\x13\x0c\x14"), "w");
    assert_events(BYTES("\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0c\x0c\x0c\x0c\x0c\x0c\x0c\x0c"), "fe");
    assert_events(BYTES("\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0c\x0c\x0c\x0c\x0c\x0c\x0c\x0c\x0c"), "w");
}

static void a_fragment_has_the_checksum_of_leveldb(void **state UNUSED)
{
    /* A full record "abc", as LevelDB writes it. */
    char block[] = "\xf2\x70\xe8\x9d\x03\x00\x01"
                   "abc";
    struct firestore_fragment fragment;
    const char *why = NULL;
    for (size_t size = 1; size < sizeof block - 1; size++) {
        assert_false(firestore_log_fragment((struct bytes){block, size}, 0, &fragment, &why));
        assert_non_null(strstr(why, "truncated"));
    }
    assert_true(firestore_log_fragment((struct bytes){block, sizeof block - 1}, 0, &fragment, &why));
    assert_int_equal(fragment.type, FIRESTORE_FULL);
    assert_true(bytes_equal(fragment.text, BYTES("abc")));
    for (size_t bit = 0; bit < 8 * (sizeof block - 1); bit++) {
        block[bit / 8] ^= (char)(1 << bit % 8);
        assert_false(firestore_log_fragment((struct bytes){block, sizeof block - 1}, 0, &fragment, &why));
        block[bit / 8] ^= (char)(1 << bit % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_cut_within_their_message),
        cmocka_unit_test(groups_end_in_their_order),
        cmocka_unit_test(a_fragment_has_the_checksum_of_leveldb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
