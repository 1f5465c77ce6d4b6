/* live_access: the access of one namespace. */
#include "live/access/live_access.h"

#include <stdlib.h>

#include "base/memory.h"
#include "operation/access/access.h"
#include "operation/judge/filters.h"
#include "http/cors.h"

struct live_access {
    bool is_known, is_wanted, is_requested; /* valid if only the first is true */
    struct arena *arena;
    struct ns_conf conf; /* with the effective state */
    struct bytes rules_text, conf_text;
    struct rules *rules;           /* NULL: they do not apply */
    const struct filters *filters; /* NULL: none */
    uint64_t turn, configured;
    int64_t mark;
    const char *message;
    struct builder shown; /* what every caller may know of the configuration */
    uint64_t shown_turn;
};

struct live_access *live_access_create(void)
{
    struct live_access *access = memory_zeroed(1, sizeof *access, "live");
    access->arena = arena_create("live access");
    access->is_wanted = true;
    return access;
}

void live_access_destroy(struct live_access *access)
{
    arena_destroy(access->arena);
    builder_free(&access->shown);
    free(access);
}

void live_access_reset(struct live_access *access)
{
    access->is_known = false;
    access->is_wanted = true;
}

void live_access_doubt(struct live_access *access)
{
    access->is_wanted = true;
}

bool live_access_is_known(const struct live_access *access)
{
    return access->is_known;
}

bool live_access_is_wanted(const struct live_access *access)
{
    return access->is_wanted;
}

bool live_access_is_requested(const struct live_access *access)
{
    return access->is_requested;
}

bool live_access_is_certain(const struct live_access *access)
{
    return access->is_known && !access->is_wanted && !access->is_requested;
}

/* --- reading --- */

void live_access_begin(struct live_access *access)
{
    access->is_wanted = false;
    access->is_requested = true;
}

void live_access_forget(struct live_access *access)
{
    access->is_wanted |= access->is_requested;
    access->is_requested = false;
}

static struct bytes live_access_copy(struct arena *arena, struct bytes text)
{
    return text.data ? arena_keep(arena, text) : NO_BYTES;
}

/* Absent, or not valid: nothing is allowed. */
static struct rules *live_access_read_rules(struct arena *arena, struct bytes text)
{
    struct rules *rules;
    struct rules_problem problem;
    if (text.data && !rules_read(arena, text, &rules, &problem))
        return rules;
    return rules_read(arena, BYTES("{}"), &rules, &problem) ? NULL : rules;
}

static bool live_access_is_same(struct bytes one, struct bytes other)
{
    return !one.data == !other.data && bytes_equal(one, other);
}

/* On one line, as an event has it: line ends in the options are blanks there. */
static void note_shown(struct live_access *access)
{
    struct builder text = {0};
    builder_printf(&text, "{\"state\":%d", access->conf.state);
    namespace_write_shown(&access->conf, &text);
    builder_add_text(&text, "}");
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == '\n' || text.data[i] == '\r')
            text.data[i] = ' ';
    if (!bytes_equal(builder_bytes(&text), builder_bytes(&access->shown)))
        access->shown_turn++;
    builder_free(&access->shown);
    access->shown = text;
}

void live_access_take(struct live_access *access, const struct live_access_texts *texts)
{
    if (!live_access_is_same(access->rules_text, texts->rules))
        access->turn++;
    if (!live_access_is_same(access->conf_text, texts->conf))
        access->configured++;
    arena_reset(access->arena);
    access->conf_text = live_access_copy(access->arena, texts->conf);
    access->conf = namespace_read(access->arena, access->conf_text);
    const struct ns_conf conf_of_z =
        namespace_read(access->arena, live_access_copy(access->arena, texts->conf_of_z));
    access_add_state_of_z(&access->conf, &conf_of_z);
    if (!access->conf.quotas)
        access->conf.quotas = conf_of_z.quotas;
    note_shown(access);
    access->rules_text = live_access_copy(access->arena, texts->rules);
    access->mark = texts->mark;
    access->rules =
        access->conf.mode == ACCESS_RULES ? live_access_read_rules(access->arena, access->rules_text) : NULL;
    access->filters = filters_find(access->arena, texts->code);
    struct bytes message = access->conf.message;
    access->message = message.size ? arena_copy(access->arena, message.data, message.size) : NULL;
    access->is_known = true;
    access->is_requested = false;
}

/* --- use --- */

bool live_access_is_of(const struct live_access *access, const struct settings *settings, struct bytes code,
                       struct bytes database)
{
    return access_is_namespace(settings, &access->conf, code, database);
}

enum fault live_access_judge(const struct live_access *access, const struct settings *settings,
                             struct bytes code, struct bytes database, bool is_administrator)
{
    const struct ns_conf *conf = &access->conf;
    if (!access_is_namespace(settings, conf, code, database)) /* a client comes again, to the other cell */
        return access_has_moved(conf, code, database) ? FAULT_XAWAY : FAULT_NNAMESPACE;
    enum fault fault = access_refuse_state(settings, conf, database, is_administrator);
    if (fault)
        return fault;
    enum access_level level = access_level(settings, conf, database, is_administrator);
    /* Judges read contents, which are not decrypted here. */
    if (conf->is_encrypted && live_access_is_judged(access, is_administrator))
        return FAULT_OENCRYPTED;
    if (level == LEVEL_PUBLIC && access->rules)
        return FAULT_NONE;
    return level < LEVEL_READ ? FAULT_SCLOSED : FAULT_NONE;
}

bool live_access_is_encrypted(const struct live_access *access)
{
    return access->conf.is_encrypted;
}

const struct rules *live_access_rules(const struct live_access *access, bool is_administrator)
{
    return is_administrator ? NULL : access->rules;
}

const struct filters *live_access_filters(const struct live_access *access, bool is_administrator)
{
    return is_administrator ? NULL : access->filters;
}

bool live_access_is_judged(const struct live_access *access, bool is_administrator)
{
    return live_access_rules(access, is_administrator) || live_access_filters(access, is_administrator);
}

int64_t live_access_mark(const struct live_access *access)
{
    return access->mark;
}

uint64_t live_access_turn(const struct live_access *access)
{
    return access->turn;
}

const struct record_rules *live_access_records(const struct live_access *access)
{
    return access->conf.records;
}

bool live_access_is_spread(const struct live_access *access)
{
    return access->conf.is_spread;
}

uint64_t live_access_configured(const struct live_access *access)
{
    return access->configured;
}

bool live_access_has_accounts(const struct live_access *access)
{
    return access->conf.accounts.is_on;
}

const struct issuers *live_access_issuers(const struct live_access *access)
{
    return access->conf.accounts.issuers;
}

const struct quotas *live_access_quotas(const struct live_access *access)
{
    return access->conf.quotas;
}

const char *live_access_message(const struct live_access *access)
{
    return access->message;
}

struct bytes live_access_shown(const struct live_access *access)
{
    return builder_bytes(&access->shown);
}

uint64_t live_access_shown_turn(const struct live_access *access)
{
    return access->shown_turn;
}

bool live_access_is_plain(const struct live_access *access)
{
    return bytes_equal(builder_bytes(&access->shown), BYTES("{\"state\":0}"));
}

bool live_access_find_origin(const struct live_access *access, struct arena *arena, struct bytes origin,
                             const char **found_r)
{
    if (!origin.size || !access->is_known || !access->conf.origins)
        return false;
    *found_r = cors_find(arena, access->conf.origins, origin);
    return true;
}
