/* test_journal_remote: whom the TCP listener of stamp-journal lets in, by who is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/address.h"
#include "journal/journal_remote.h"

enum { OF_CLIENT = 50 };

static uint64_t client_of(const char *address)
{
    return address_client(bytes_of(address));
}

/* `count` of `other` are there. */
static void add(struct journal_remote_crowd *crowd, const char *other, int count, bool is_stranger)
{
    for (int i = 0; i < count; i++)
        journal_remote_count(crowd, client_of(other), is_stranger);
}

static bool is_let_in(const struct journal_remote_crowd *crowd)
{
    return !journal_remote_refusal(crowd, OF_CLIENT);
}

static void strangers_of_a_client_are_limited(void **state)
{
    (void)state;
    struct journal_remote_crowd crowd = {.client = client_of("192.0.2.1")};
    add(&crowd, "192.0.2.1", JOURNAL_STRANGERS_OF_CLIENT - 1, true);
    add(&crowd, "192.0.2.2", JOURNAL_STRANGERS_OF_SITE, true);
    add(&crowd, "192.0.2.1", OF_CLIENT - JOURNAL_STRANGERS_OF_CLIENT - 1, false);
    assert_true(is_let_in(&crowd));
    struct journal_remote_crowd more = crowd;
    add(&more, "192.0.2.1", 2, false);
    assert_false(is_let_in(&more));
    add(&crowd, "192.0.2.1", 1, true);
    assert_false(is_let_in(&crowd));
}

/* Each network of 64 bits is a client of its own. */
static void the_networks_of_a_site_leave_places_to_others(void **state)
{
    (void)state;
    struct journal_remote_crowd same = {.client = client_of("2001:db8:1:ff::1")};
    struct journal_remote_crowd other = {.client = client_of("2001:db8:2::1")};
    add(&same, "2001:db8:1:1::1", JOURNAL_STRANGERS_OF_SITE / 2, true);
    add(&same, "2001:db8:1:2::1", JOURNAL_STRANGERS_OF_SITE / 2 - 1, true);
    add(&other, "2001:db8:1:1::1", JOURNAL_STRANGERS_OF_SITE, true);
    assert_true(is_let_in(&same) && is_let_in(&other));
    add(&same, "2001:db8:1:3::1", 1, true);
    assert_false(is_let_in(&same));
    assert_true(JOURNAL_STRANGERS_OF_SITE < JOURNAL_STRANGERS_MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(strangers_of_a_client_are_limited),
                                       cmocka_unit_test(the_networks_of_a_site_leave_places_to_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
