/* test_records_road: commands and answers on their way to the hosts: what is written is read, and nothing
 * else is; what a client concludes when nobody answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "records/records_road.h"

static struct builder out;

static const struct records_payer payer = {1, 2, 3, 4, 5, 6, 7};

static struct records_command sample(void)
{
    return (struct records_command){.deed = RECORDS_SET,
                                    .key = BYTES("a key"),
                                    .type = RECORDS_BUFFER,
                                    .content = BYTES("a\0content"),
                                    .timestamp_us = 8,
                                    .expires_ms = 9,
                                    .ends_by_ms = 10,
                                    .touch_s = 11,
                                    .lease_ms = 12,
                                    .stamp = UINT64_MAX,
                                    .payer = &payer,
                                    .may_overwrite = true,
                                    .is_only_present = true,
                                    .keeps_end = true,
                                    .is_probe = true};
}

static void returns_what_was_written(void **state UNUSED)
{
    const struct records_command command = sample();
    struct records_road_command road;
    size_t used;
    builder_clear(&out, 0);
    records_road_write(&out, BYTES("shop"), &command);
    for (size_t part = 0; part < out.size; part++)
        assert_int_equal(records_road_read((struct bytes){out.data, part}, &road, &used),
                         RECORDS_ROAD_PARTIAL);
    assert_int_equal(records_road_read(builder_bytes(&out), &road, &used), RECORDS_ROAD_WHOLE);
    assert_int_equal(used, out.size);
    const struct records_command *same = &road.command;
    assert_true(bytes_equal(road.ns, BYTES("shop")) && bytes_equal(same->key, command.key) &&
                bytes_equal(same->content, command.content));
    assert_true(same->deed == command.deed && same->type == command.type && same->timestamp_us == 8 &&
                same->expires_ms == 9 && same->ends_by_ms == 10 && same->touch_s == 11 &&
                same->lease_ms == 12 && same->stamp == UINT64_MAX);
    assert_true(same->may_overwrite && same->is_only_present && same->keeps_end && same->is_probe &&
                !same->is_persisted && !same->is_listened && !same->shows_present);
    assert_memory_equal(same->payer, &payer, sizeof payer);
}

static void answers_are_returned(void **state UNUSED)
{
    const struct records_found found = {.key = BYTES("a key"),
                                        .content = BYTES(""),
                                        .type = RECORDS_STRING,
                                        .expires_ms = 1,
                                        .stamp = 2,
                                        .size = 3};
    struct records_found same;
    enum records_outcome outcome;
    size_t used;
    for (int is_found = 0; is_found < 2; is_found++) {
        builder_clear(&out, 0);
        records_road_write_answer(&out, is_found ? RECORDS_OK : RECORDS_UNKNOWN,
                                  is_found ? &found : &(struct records_found){0});
        assert_int_equal(records_road_read_answer(builder_bytes(&out), &outcome, &same, &used),
                         RECORDS_ROAD_WHOLE);
        assert_int_equal(outcome, is_found ? RECORDS_OK : RECORDS_UNKNOWN);
        assert_int_equal(same.key.data != NULL, is_found);
        assert_int_equal(same.content.data != NULL, is_found); /* an empty one is none that is missing */
    }
    assert_true(same.expires_ms == 1 && same.stamp == 2 && same.size == 3 && same.type == RECORDS_STRING);
}

/* Each number may be anything: none makes the reader leave the message. */
static void refuses_what_is_damaged(void **state UNUSED)
{
    const struct records_command command = sample();
    struct records_road_command road;
    size_t used;
    builder_clear(&out, 0);
    records_road_write(&out, BYTES("shop"), &command);
    for (size_t at = 0; at < out.size - 9; at++) {
        char was = out.data[at];
        out.data[at] = (char)0xff;
        if (records_road_read(builder_bytes(&out), &road, &used) == RECORDS_ROAD_WHOLE) {
            assert_int_equal(road.ns.size + road.command.key.size + road.command.content.size, 4 + 5 + 9);
            assert_true(road.command.deed < RECORDS_DEEDS && road.command.type < RECORDS_TYPES);
        }
        out.data[at] = was;
    }
    out.data[7] ^= 1; /* of another release */
    assert_int_equal(records_road_read(builder_bytes(&out), &road, &used), RECORDS_ROAD_MALFORMED);
}

static bool asked;

static bool refuse(void *context UNUSED)
{
    asked = true;
    return false;
}

static void knows_what_may_have_happened(void **state UNUSED)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct records_command command = {.deed = RECORDS_SET, .key = BYTES("k"), .content = BYTES("")};
    struct records_found found;
    struct records_road_wait wait = {.until_ms = clock_monotonic_ms() + 60000, .may_go_on = refuse};
    snprintf(address.sun_path, sizeof address.sun_path, "test-road-%d", (int)getpid());
    assert_int_equal(records_road_run(address.sun_path, BYTES("shop"), &command, &wait, &found),
                     RECORDS_NO_PARTICIPANTS);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 8), 0);
    asked = false;
    assert_int_equal(records_road_run(address.sun_path, BYTES("shop"), &command, &wait, &found),
                     RECORDS_UNKNOWN); /* it was sent, and nobody reads it */
    assert_true(asked);
    command.deed = RECORDS_GET;
    assert_int_equal(records_road_run(address.sun_path, BYTES("shop"), &command, &wait, &found),
                     RECORDS_BUSY);
    wait.until_ms = clock_monotonic_ms() - 1;
    command.deed = RECORDS_SET;
    assert_int_equal(records_road_run(address.sun_path, BYTES("shop"), &command, &wait, &found),
                     RECORDS_BUSY); /* it was not sent */
    close(listener);
    unlink(address.sun_path);
}

static int free_all(void **state UNUSED)
{
    builder_free(&out);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(returns_what_was_written),
        cmocka_unit_test(answers_are_returned),
        cmocka_unit_test(refuses_what_is_damaged),
        cmocka_unit_test(knows_what_may_have_happened),
    };
    return cmocka_run_group_tests(tests, NULL, free_all);
}
