/* hosts_list: what follows from the list of hosts in z: their order, and what all of them take. */
#ifndef STAMPD_JOURNAL_HOSTS_HOSTS_LIST_H
#define STAMPD_JOURNAL_HOSTS_HOSTS_LIST_H

#include "journal/hosts/hosts_beat.h"

/* The key of all digests, from that of the site: 32 digits and dashes. */
void hosts_list_places(const char *uuid, struct siphash_key *places_r);
struct cluster_map *hosts_list_map(const struct siphash_key *places,
                                   const struct hosts_sight *sight) MUST_USE;
/* What one host does not take, no host is to store: the least limit of contents of all holds, in bytes.
 * `own`: that of this host.  Logs when it becomes another one. */
void hosts_list_content_most(const struct hosts_sight *sight, size_t own, size_t *most);

#endif
