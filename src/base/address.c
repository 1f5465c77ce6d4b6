/* address: the registries of special addresses (RFC 6890 and those after it) as tables of prefixes. */
#include "base/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

struct prefix_4 {
    uint32_t address;
    int bits;
};

#define FOUR(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

static bool address_is_within(uint32_t address, struct prefix_4 prefix)
{
    return (address ^ prefix.address) >> (32 - prefix.bits) == 0;
}

static bool is_public_4(uint32_t address)
{
    static const struct prefix_4 special[] = {
        {FOUR(0, 0, 0, 0), 8},      {FOUR(10, 0, 0, 0), 8},     {FOUR(100, 64, 0, 0), 10},
        {FOUR(127, 0, 0, 0), 8},    {FOUR(169, 254, 0, 0), 16}, {FOUR(172, 16, 0, 0), 12},
        {FOUR(192, 0, 0, 0), 24},   {FOUR(192, 0, 2, 0), 24},   {FOUR(192, 88, 99, 0), 24},
        {FOUR(192, 168, 0, 0), 16}, {FOUR(198, 18, 0, 0), 15},  {FOUR(198, 51, 100, 0), 24},
        {FOUR(203, 0, 113, 0), 24}, {FOUR(224, 0, 0, 0), 3}, /* multicast, reserved, broadcast */
    };
    for (size_t i = 0; i < COUNT_OF(special); i++)
        if (address_is_within(address, special[i]))
            return false;
    return true;
}

/* The IPv4 address at `place` within an IPv6 address. */
static uint32_t inner_4(const unsigned char *address, size_t offset)
{
    return FOUR(address[offset], address[offset + 1], address[offset + 2], address[offset + 3]);
}

struct prefix_6 {
    unsigned char address[16];
    int bits;
};

static bool begins_with(const unsigned char *address, const struct prefix_6 *prefix)
{
    size_t whole = (size_t)prefix->bits / 8;
    int rest = prefix->bits % 8;
    return memcmp(address, prefix->address, whole) == 0 &&
           (!rest || (address[whole] ^ prefix->address[whole]) >> (8 - rest) == 0);
}

static const struct prefix_6 mapped = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255}, 96};

static bool is_public_6(const unsigned char *address)
{
    static const struct prefix_6 translated = {{0x00, 0x64, 0xff, 0x9b}, 96}; /* by NAT64 gateways */
    static const struct prefix_6 relayed = {{0x20, 0x02}, 16};                /* 6to4 */
    static const struct prefix_6 given_out = {{0x20}, 3};
    static const struct prefix_6 special[] = {
        {{0x20, 0x01, 0x00}, 23},       /* for protocols: Teredo, benchmarks, identifiers */
        {{0x20, 0x01, 0x0d, 0xb8}, 32}, /* for documentation */
        {{0x3f, 0xff, 0x00}, 20},       /* for documentation */
    };
    if (begins_with(address, &mapped) || begins_with(address, &translated))
        return is_public_4(inner_4(address, 12));
    if (begins_with(address, &relayed))
        return is_public_4(inner_4(address, 2));
    for (size_t i = 0; i < COUNT_OF(special); i++)
        if (begins_with(address, &special[i]))
            return false;
    return begins_with(address, &given_out);
}

bool address_is_public(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return is_public_4(ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr));
    return address->sa_family == AF_INET6 &&
           is_public_6(((const struct sockaddr_in6 *)(const void *)address)->sin6_addr.s6_addr);
}

bool address_is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
    if (address->sa_family != AF_INET6)
        return false;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(six) || (begins_with(six->s6_addr, &mapped) && six->s6_addr[12] == 127);
}

/* --- clients --- */

enum { TEXT_MOST = 64 };

static bool address_read_text(struct bytes text, char *copy)
{
    if (!text.size || text.size >= TEXT_MOST || memchr(text.data, '\0', text.size))
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    return true;
}

/* IPv4 clients get numbers in 0:ffff::/32, where no IPv6 network is assigned. */
static uint64_t client_4(uint32_t address)
{
    return UINT64_C(0xffff) << 32 | address;
}

/* As inet_pton: four numbers without leading zeros. */
static bool read_4(struct bytes text, uint32_t *address_r)
{
    const char *at = text.data, *end = text.data + text.size;
    uint32_t address = 0, number;
    for (int part = 0; part < 4; part++) {
        if (part && (at == end || *at++ != '.'))
            return false;
        const char *first = at;
        for (number = 0; at < end && at - first < 3 && *at >= '0' && *at <= '9'; at++)
            number = number * 10 + (uint32_t)(*at - '0');
        if (at == first || number > 255 || (*first == '0' && at - first > 1))
            return false;
        address = address << 8 | number;
    }
    *address_r = address;
    return at == end;
}

uint64_t address_client(struct bytes text)
{
    char copy[TEXT_MOST];
    unsigned char six[16];
    uint32_t four;
    if (read_4(text, &four))
        return client_4(four);
    if (!address_read_text(text, copy))
        return 0;
    if (inet_pton(AF_INET6, copy, six) != 1)
        return 0;
    if (begins_with(six, &mapped))
        return client_4(inner_4(six, 12));
    uint64_t network = (uint64_t)inner_4(six, 0) << 32 | inner_4(six, 4);
    return network ? network : 1; /* ::1 */
}

uint64_t address_site(uint64_t client)
{
    return client >> 32 == 0xffff ? client : client & ~UINT64_C(0xffff);
}

bool address_is_network(struct bytes text)
{
    char copy[TEXT_MOST];
    unsigned char six[16];
    struct in_addr four;
    int64_t bits = 0;
    if (!address_read_text(text, copy))
        return false;
    char *slash = strchr(copy, '/');
    if (slash) {
        *slash = '\0';
        if (!bytes_to_i64(bytes_of(slash + 1), &bits) || bits < 0)
            return false;
    }
    return (inet_pton(AF_INET, copy, &four) == 1 && bits <= 32) ||
           (inet_pton(AF_INET6, copy, six) == 1 && bits <= 128);
}
