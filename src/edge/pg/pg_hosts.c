/* pg_hosts: parts lists of hosts with the parser of libpq. */
#include "edge/pg/pg_hosts.h"

#include <string.h>

#include "edge/pg/pg_private.h"

static int part_count(const char *list)
{
    int count = 1;
    for (; *list; list++)
        count += *list == ',';
    return count;
}

/* One part, which may be empty; the only one stands for all.  False: it is too long. */
static bool take_part(const char *list, int number, char part_r[PG_HOST_PART_SIZE])
{
    if (part_count(list) > 1)
        for (; number > 0; number--)
            list = strchr(list, ',') + 1;
    size_t size = strcspn(list, ",");
    if (size >= PG_HOST_PART_SIZE)
        return false;
    memcpy(part_r, list, size);
    part_r[size] = '\0';
    return true;
}

struct lists {
    const char *host, *hostaddr, *port; /* "": not set */
};

static struct lists find_lists(const PQconninfoOption *options)
{
    struct lists lists = {"", "", ""};
    for (; options && options->keyword; options++) {
        if (!options->val)
            continue;
        if (strcmp(options->keyword, "host") == 0)
            lists.host = options->val;
        else if (strcmp(options->keyword, "hostaddr") == 0)
            lists.hostaddr = options->val;
        else if (strcmp(options->keyword, "port") == 0)
            lists.port = options->val;
    }
    return lists;
}

/* As libpq counts; 1: it refuses the lists, since their lengths differ. */
static int count_hosts(const struct lists *lists)
{
    int count = part_count(*lists->hostaddr ? lists->hostaddr : lists->host), ports = part_count(lists->port);
    if (*lists->hostaddr && *lists->host && part_count(lists->host) != count)
        return 1;
    return ports == 1 || ports == count ? count : 1;
}

static bool take_host(const struct lists *lists, int number, struct pg_host *host_r)
{
    return take_part(lists->host, number, host_r->host) &&
           take_part(lists->hostaddr, number, host_r->hostaddr) &&
           take_part(lists->port, number, host_r->port);
}

int pg_hosts_count(const char *conninfo)
{
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    struct lists lists = find_lists(options);
    struct pg_host host;
    int count = count_hosts(&lists);
    for (int i = 0; i < count; i++)
        if (!take_host(&lists, i, &host))
            count = 1;
    PQconninfoFree(options);
    return count;
}

void pg_hosts_get(const char *conninfo, int number, struct pg_host *host_r)
{
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    struct lists lists = find_lists(options);
    *host_r = (struct pg_host){"", "", ""};
    if (!take_host(&lists, number, host_r))
        *host_r = (struct pg_host){"", "", ""};
    PQconninfoFree(options);
}
