/* test_address: which addresses the world can reach, at both ends of each range. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <string.h>

#include "base/address.h"

union any {
    struct sockaddr address;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

static union any read_address(const char *text)
{
    union any any;
    memset(&any, 0, sizeof any);
    any.address.sa_family = strchr(text, ':') ? AF_INET6 : AF_INET;
    void *to = any.address.sa_family == AF_INET ? (void *)&any.four.sin_addr : (void *)&any.six.sin6_addr;
    assert_int_equal(inet_pton(any.address.sa_family, text, to), 1);
    return any;
}

static void public_addresses_are_told(void **state UNUSED)
{
    static const char *const texts[] = {
        "1.0.0.0",         "9.255.255.255",   "11.0.0.0",         "100.63.255.255",  "100.128.0.0",
        "126.255.255.255", "128.0.0.0",       "169.253.255.255",  "169.255.0.0",     "172.15.255.255",
        "172.32.0.0",      "192.0.1.0",       "192.0.3.0",        "192.88.98.255",   "192.88.100.0",
        "192.167.255.255", "192.169.0.0",     "198.17.255.255",   "198.20.0.0",      "198.51.99.255",
        "198.51.101.0",    "203.0.112.255",   "203.0.114.0",      "223.255.255.255", "2000::",
        "2001:200::",      "2001:db7:ffff::", "2001:db9::",       "2a00::1",         "3ffe:ffff::",
        "3fff:1000::",     "::ffff:8.8.8.8",  "64:ff9b::808:808", "2002:808:808::1",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        union any any = read_address(texts[i]);
        if (!address_is_public(&any.address) || address_is_loopback(&any.address))
            fail_msg("%s is public", texts[i]);
    }
}

static void all_others_are_not(void **state UNUSED)
{
    static const char *const texts[] = {
        "0.0.0.0",         "0.255.255.255",
        "10.0.0.0",        "10.255.255.255",
        "100.64.0.0",      "100.127.255.255",
        "169.254.0.0",     "169.254.169.254",
        "169.254.255.255", "172.16.0.0",
        "172.31.255.255",  "192.0.0.0",
        "192.0.0.255",     "192.0.2.1",
        "192.88.99.1",     "192.168.0.0",
        "192.168.255.255", "198.18.0.0",
        "198.19.255.255",  "198.51.100.1",
        "203.0.113.255",   "224.0.0.0",
        "239.255.255.255", "240.0.0.0",
        "255.255.255.255", "::",
        "100::1",          "fc00::1",
        "fdff::1",         "fe80::1",
        "fec0::1",         "ff02::1",
        "2001::1",         "2001:1ff::1",
        "2001:db8::1",     "2001:db8:ffff::1",
        "3fff::1",         "3fff:fff::1",
        "4000::1",         "::10.0.0.1",
        "::ffff:10.0.0.1", "::ffff:169.254.169.254",
        "64:ff9b::a00:1",  "64:ff9b:1::1",
        "2002:a00:1::1",   "2002:7f00:1::1",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        union any any = read_address(texts[i]);
        if (address_is_public(&any.address) || address_is_loopback(&any.address))
            fail_msg("%s is not public", texts[i]);
    }
}

static void the_loopback_is_known(void **state UNUSED)
{
    static const char *const texts[] = {"127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        union any any = read_address(texts[i]);
        assert_true(address_is_loopback(&any.address));
        assert_false(address_is_public(&any.address));
    }
    union any other = {.address = {.sa_family = AF_UNIX}};
    assert_false(address_is_loopback(&other.address));
    assert_false(address_is_public(&other.address));
}

static void clients_are_told_apart(void **state UNUSED)
{
    static const char *const same[][2] = {
        {"192.0.2.1", "::ffff:192.0.2.1"},
        {"2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"},
        {"::1", "::1"},
    };
    static const char *const others[] = {
        "192.0.2.1",       "192.0.2.2",       "127.0.0.1",   "255.255.255.255",
        "2001:db8:1:2::1", "2001:db8:1:3::1", "2001:db9::1", "::1"};
    static const char *const none[] = {
        "",           "-",           "unix:",
        "192.0.2",    "192.0.2.1 ",  "1.2.3.4.5",
        "192.0.2.01", "192.0.2.256", "192.0.2.",
        "192..2.1",   "x",           "2001:db8:1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16:17:18:19:20:21:22:23"};
    for (size_t i = 0; i < COUNT_OF(same); i++) {
        assert_true(address_client(bytes_of(same[i][0])));
        assert_int_equal(address_client(bytes_of(same[i][0])), address_client(bytes_of(same[i][1])));
    }
    for (size_t i = 0; i < COUNT_OF(others); i++)
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(address_client(bytes_of(others[i])), address_client(bytes_of(others[j])));
    for (size_t i = 0; i < COUNT_OF(none); i++)
        assert_int_equal(address_client(bytes_of(none[i])), 0);
    assert_int_equal(address_client(NO_BYTES), 0);
    assert_int_equal(address_client(((struct bytes){"1.2.3.4\0x", 9})), 0);
}

static void networks_are_addresses_with_bits(void **state UNUSED)
{
    static const char *const good[] = {"10.0.0.0/8", "10.1.2.3",  "2001:db8::/32",
                                       "::1",        "0.0.0.0/0", "::/128"};
    static const char *const bad[] = {"",      "10.0.0.0/33",  "10.0.0.0/-1", "10.0.0.0/",
                                      "/8",    "all",          "::/129",      "10.0.0/8",
                                      "unix:", "10.0.0.0/8/8", "a;b 1",       "10.0.0.0 8"};
    for (size_t i = 0; i < COUNT_OF(good); i++)
        if (!address_is_network(bytes_of(good[i])))
            fail_msg("%s is a network", good[i]);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (address_is_network(bytes_of(bad[i])))
            fail_msg("%s is no network", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(public_addresses_are_told),
        cmocka_unit_test(all_others_are_not),
        cmocka_unit_test(the_loopback_is_known),
        cmocka_unit_test(clients_are_told_apart),
        cmocka_unit_test(networks_are_addresses_with_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
