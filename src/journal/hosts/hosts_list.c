/* hosts_list: maps of the cluster from rows of z. */
#include "journal/hosts/hosts_list.h"

#include <string.h>

#include "base/log.h"

/* A group is named by the address down to it, so that racks of two sites may have one name. */
static unsigned read_groups(const struct siphash_key *places, const char *address,
                            uint64_t groups_r[CLUSTER_LEVELS_MOST])
{
    unsigned depth = 0;
    for (const char *end = address; *end && depth < CLUSTER_LEVELS_MOST;) {
        end += strcspn(end, ".");
        groups_r[depth++] = siphash_short(places, (struct bytes){address, (size_t)(end - address)});
        end += *end == '.';
    }
    return depth;
}

struct cluster_map *hosts_list_map(const struct siphash_key *places, const struct hosts_sight *sight)
{
    struct cluster_member members[HOSTS_MOST];
    unsigned depth = 1;
    memset(members, 0, sizeof members);
    for (uint32_t i = 0; i < sight->count; i++) {
        const struct hosts_member *member = &sight->members[i];
        members[i].number = member->number;
        members[i].is_guest = member->is_guest;
        members[i].joined = member->joined;
        members[i].alone = member->alone;
        depth = read_groups(places, member->address, members[i].groups);
    }
    return cluster_map_create(members, sight->count, depth, sight->version);
}

void hosts_list_places(const char *uuid, struct siphash_key *places_r)
{
    static const struct siphash_key fixed = {{UINT64_C(0x706c61636573206f), UINT64_C(0x6620746865206b65)}};
    siphash(&fixed, bytes_of(uuid), places_r->words);
}

void hosts_list_content_most(const struct hosts_sight *sight, size_t own, size_t *most)
{
    const struct hosts_member *least = NULL;
    size_t found = own;
    for (uint32_t i = 0; i < sight->count; i++) {
        const struct hosts_member *member = &sight->members[i];
        if (member->content_most && member->content_most < found) {
            found = (size_t)member->content_most;
            least = member;
        }
    }
    if (found > RECORDS_CONTENT_MOST)
        found = RECORDS_CONTENT_MOST;
    if (least && found != *most)
        log_warning("the hosts have different limit_content_bytes: that of %s holds for records in spread "
                    "namespaces, %zu bytes",
                    least->address, found);
    *most = found;
}
