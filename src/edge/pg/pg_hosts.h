/* pg_hosts: the servers that a connection string lists: host=db1,db2,db3.
 *
 * libpq tries them in their order, but ends at the first that refuses for a reason of its own, as a standby
 * that does not have a database yet; and without waiting it stays with one that does not answer. */
#ifndef STAMPD_EDGE_PG_PG_HOSTS_H
#define STAMPD_EDGE_PG_PG_HOSTS_H

#include <stdbool.h>

enum { PG_HOST_PART_SIZE = 256 };

/* Values of the keywords of the same names; "": not set. */
struct pg_host {
    char host[PG_HOST_PART_SIZE], hostaddr[PG_HOST_PART_SIZE], port[PG_HOST_PART_SIZE];
};

/* How many there are; 1: no list, or one that libpq itself must judge. */
int pg_hosts_count(const char *conninfo);
/* One of them, by its number from 0 on. */
void pg_hosts_get(const char *conninfo, int number, struct pg_host *host_r);

#endif
