/* Lists of hosts in connection strings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/base.h"
#include "edge/pg/pg_hosts.h"

static void expect_host(const char *conninfo, int number, const char *host, const char *hostaddr,
                        const char *port)
{
    struct pg_host found;
    pg_hosts_get(conninfo, number, &found);
    assert_string_equal(found.host, host);
    assert_string_equal(found.hostaddr, hostaddr);
    assert_string_equal(found.port, port);
}

static void no_list_is_one_host(void **state UNUSED)
{
    static const char *const single[] = {"",
                                         "user=stampd",
                                         "host=db1",
                                         "host=/run/postgresql port=5433",
                                         "postgresql://db1:5433/",
                                         "no connection string"};
    for (size_t i = 0; i < COUNT_OF(single); i++)
        assert_int_equal(pg_hosts_count(single[i]), 1);
    expect_host("host=/run/postgresql port=5433", 0, "/run/postgresql", "", "5433");
    expect_host("", 0, "", "", "");
}

static void each_has_its_own_parts(void **state UNUSED)
{
    static const char list[] = "host=db1,db2,/run/postgresql port=5432,,5434 user=stampd";
    assert_int_equal(pg_hosts_count(list), 3);
    expect_host(list, 0, "db1", "", "5432");
    expect_host(list, 1, "db2", "", "");
    expect_host(list, 2, "/run/postgresql", "", "5434");
    static const char uri[] = "postgresql://db1:5433,db2:5434/?connect_timeout=3";
    assert_int_equal(pg_hosts_count(uri), 2);
    expect_host(uri, 1, "db2", "", "5434");
}

static void one_port_is_that_of_all(void **state UNUSED)
{
    assert_int_equal(pg_hosts_count("host=db1,db2 port=6000"), 2);
    expect_host("host=db1,db2 port=6000", 1, "db2", "", "6000");
}

static void addresses_count(void **state UNUSED)
{
    assert_int_equal(pg_hosts_count("hostaddr=192.0.2.1,192.0.2.2"), 2);
    expect_host("host=db1,db2 hostaddr=192.0.2.1,192.0.2.2", 1, "db2", "192.0.2.2", "");
}

static void what_libpq_refuses_is_left_to_it(void **state UNUSED)
{
    assert_int_equal(pg_hosts_count("host=db1,db2,db3 port=1,2"), 1);
    assert_int_equal(pg_hosts_count("host=db1,db2,db3 hostaddr=192.0.2.1,192.0.2.2"), 1);
    char longest[2 * PG_HOST_PART_SIZE + 16] = "host=db1,";
    memset(longest + strlen(longest), 'x', PG_HOST_PART_SIZE - 1);
    assert_int_equal(pg_hosts_count(longest), 2);
    longest[strlen(longest)] = 'x';
    assert_int_equal(pg_hosts_count(longest), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_list_is_one_host),
        cmocka_unit_test(each_has_its_own_parts),
        cmocka_unit_test(one_port_is_that_of_all),
        cmocka_unit_test(addresses_count),
        cmocka_unit_test(what_libpq_refuses_is_left_to_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
