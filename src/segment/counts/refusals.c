/* refusals: a counter for each row of the table of settings. */
#include "segment/counts/refusals.h"

#include <string.h>

#define TEXT(name, standard, description)                      #name,
#define CHOICE(name, standard, words, description)             #name,
#define NUMBER(name, standard, least, most, unit, description) #name,
static const char *const names[] = {
#include "base/settings_table.h"
#include "segment/segment.h"
};
#undef TEXT
#undef CHOICE
#undef NUMBER

enum { OTHERS = REFUSALS_MOST - 1, QUOTAS = OTHERS - 1 };
static const char quota_prefix[] = "quotas.";
_Static_assert(COUNT_OF(names) <= QUOTAS, "each setting has its counter");

static bool is_limit(const char *name)
{
    return strncmp(name, "limit_", 6) == 0 || strcmp(name, "argon2_share") == 0 ||
           strcmp(name, "live_connections") == 0 || strcmp(name, "live_memory_mb") == 0;
}

static bool names_limit(enum fault fault)
{
    return fault == FAULT_ALIMIT || fault == FAULT_XBUSY || fault == FAULT_XCROWDED || fault == FAULT_XTIME;
}

void refusals_count(struct segment *segment, enum fault fault, const char *limit)
{
    size_t counter = 0;
    if (!names_limit(fault) || !limit)
        return;
    if (strncmp(limit, quota_prefix, strlen(quota_prefix)) == 0) {
        atomic_fetch_add(&segment->refusals->counts[QUOTAS], 1);
        return;
    }
    while (counter < COUNT_OF(names) && (!is_limit(names[counter]) || strcmp(names[counter], limit) != 0))
        counter++;
    atomic_fetch_add(&segment->refusals->counts[counter < COUNT_OF(names) ? counter : OTHERS], 1);
}

const char *refusals_read(const struct segment *segment, int counter, uint64_t *count_r)
{
    *count_r = atomic_load(&segment->refusals->counts[counter]);
    if (counter == OTHERS)
        return "other";
    if (counter == QUOTAS)
        return "quotas";
    return (size_t)counter < COUNT_OF(names) && is_limit(names[counter]) ? names[counter] : NULL;
}

/* As in nginx/nginx.conf.in. */
static const int statuses[] = {400, 401, 403, 404, 405, 408, 413, 414, 415, 423, 429, 431, 500, 503};
_Static_assert(COUNT_OF(statuses) <= REFUSALS_STATUSES, "each status has its counter");

void refusals_count_nginx(struct segment *segment, int64_t status)
{
    for (size_t i = 0; i < COUNT_OF(statuses); i++)
        if (statuses[i] == status)
            atomic_fetch_add(&segment->refusals->nginx[i], 1);
}

int refusals_read_nginx(const struct segment *segment, int counter, uint64_t *count_r)
{
    if (counter >= (int)COUNT_OF(statuses))
        return 0;
    *count_r = atomic_load(&segment->refusals->nginx[counter]);
    return statuses[counter];
}

void refusals_count_quota(struct segment *segment, int ns, struct bytes code, int kind)
{
    struct refusals_of_quotas *of = &segment->refusals->quotas[ns];
    uint64_t words[COUNT_OF(of->code)] = {0};
    memcpy(words, code.data, code.size < sizeof words ? code.size : sizeof words);
    for (size_t i = 0; i < COUNT_OF(words); i++)
        atomic_store(&of->code[i], words[i]);
    atomic_fetch_add(&of->counts[kind], 1);
}

uint64_t refusals_read_quota(const struct segment *segment, int ns, int kind,
                             char code_r[REFUSALS_CODE_BYTES + 1])
{
    const struct refusals_of_quotas *of = &segment->refusals->quotas[ns];
    uint64_t words[COUNT_OF(of->code)];
    for (size_t i = 0; i < COUNT_OF(words); i++)
        words[i] = atomic_load(&of->code[i]);
    memcpy(code_r, words, sizeof words);
    code_r[sizeof words] = '\0';
    return atomic_load(&of->counts[kind]);
}

size_t refusals_size(const struct board_sizes *sizes UNUSED)
{
    return sizeof(struct refusals_board);
}

void refusals_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->refusals = memory;
}
