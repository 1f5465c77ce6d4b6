/* configurations: a small table of the newest versions; each is held by the table and by the requests that it
 * decides. */
#include "operation/access/configurations.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "operation/old_reads.h"

/* As parsed from one snapshot of its document; in its own arena. */
struct held_configuration {
    struct configuration configuration; /* first: what is handed out */
    uint32_t references;
    struct arena *arena;
    struct document *document; /* held: the texts are its contents */
};

struct known_configuration {
    char code[NAMESPACE_CODE_MOST];
    size_t code_size;
    struct held_configuration *held; /* NULL: none; while its document is the newest, it is current */
    struct newest_proof proof;
    int64_t verified_ms; /* when it was the newest, monotonic */
};

enum { KNOWN_MOST = 64 };
struct configurations {
    struct known_configuration z, known[KNOWN_MOST];
};

/* --- one version --- */

static void configurations_release(void *pointer)
{
    struct held_configuration *held = pointer;
    if (!held || --held->references)
        return;
    document_release(held->document);
    arena_destroy(held->arena);
}

void configurations_hold(const struct configuration *configuration, struct arena *arena)
{
    struct held_configuration *held = (struct held_configuration *)configuration;
    held->references++;
    arena_defer(arena, configurations_release, held);
}

/* No item, or one that cannot be read: closed. */
static void read_conf(struct held_configuration *held, bool is_reported)
{
    struct ns_conf *conf = &held->configuration.conf;
    const struct header *header = &held->document->header;
    const struct item *item = document_find_item(held->document, BYTES("Conf"), BYTES(""));
    const struct item *build = document_find_item(held->document, BYTES("Build"), BYTES(""));
    *conf = namespace_read(held->arena, item && !item_is_tombstone(item) ? item->content : NO_BYTES);
    conf->accounts.version = item ? item->version : 0;
    conf->build = build && !item_is_tombstone(build) ? build->version : 0;
    if (conf->wrong && !is_reported)
        log_warning("document Namespace/%.*s: its item Conf is malformed member=%s", (int)header->id.size,
                    header->id.data, *conf->wrong ? conf->wrong : "all");
}

/* No item, or one that cannot be read: nothing is allowed. */
static void configurations_read_rules(struct held_configuration *held, bool is_reported)
{
    const struct header *header = &held->document->header;
    const struct item *item = document_find_item(held->document, BYTES("Rules"), BYTES(""));
    struct bytes text = item && !item_is_tombstone(item) ? item->content : BYTES("{}");
    struct rules *rules;
    struct rules_problem problem;
    if (rules_read(held->arena, text, &rules, &problem)) {
        if (!is_reported)
            log_warning("document Namespace/%.*s: its item Rules is malformed at=%s: %s",
                        (int)header->id.size, header->id.data, *problem.path ? problem.path : "all",
                        problem.expected);
        enum fault fault = rules_read(held->arena, BYTES("{}"), &rules, &problem);
        assert(!fault && rules);
    }
    held->configuration.rules = rules;
    held->configuration.rules_version = item ? item->version : 0;
}

static struct held_configuration *read_version(const struct document *document, bool is_reported)
{
    struct arena *arena = arena_create("configuration");
    struct held_configuration *held = ARENA_NEW(arena, struct held_configuration);
    held->arena = arena;
    held->references = 1;
    held->document = document_hold((struct document *)document);
    read_conf(held, is_reported);
    if (held->configuration.conf.mode == ACCESS_RULES)
        configurations_read_rules(held, is_reported);
    return held;
}

/* --- the table --- */

struct configurations *configurations_create(void)
{
    struct configurations *configurations = memory_zeroed(1, sizeof *configurations, "configurations");
    return configurations;
}

void configurations_destroy(struct configurations *configurations)
{
    for (size_t i = 0; configurations && i < KNOWN_MOST; i++)
        configurations_release(configurations->known[i].held);
    if (configurations)
        configurations_release(configurations->z.held);
    free(configurations);
}

static bool is_code_of_z(struct bytes code)
{
    return bytes_equal(code, BYTES("z"));
}

/* The slot in which a namespace's configuration is kept; another one may occupy it. */
static struct known_configuration *configurations_place_of(struct configurations *configurations,
                                                           struct bytes code)
{
    size_t sum = 0;
    if (is_code_of_z(code))
        return &configurations->z;
    for (size_t i = 0; i < code.size; i++)
        sum = sum * 31 + (unsigned char)code.data[i];
    return &configurations->known[sum % KNOWN_MOST];
}

static bool configurations_is_of(const struct known_configuration *known, struct bytes code)
{
    return known->held && bytes_equal((struct bytes){known->code, known->code_size}, code);
}

static bool configurations_is_current(const struct documents *documents,
                                      const struct known_configuration *known, struct bytes code)
{
    return configurations_is_of(known, code) && documents_is_still_newest(documents, &known->proof);
}

/* A malformed configuration is reported once by each process. */
static void configurations_keep(struct known_configuration *known, struct bytes code,
                                const struct document *document, const struct newest_proof *proof)
{
    bool is_known = configurations_is_of(known, code);
    known->proof = *proof;
    known->verified_ms = clock_monotonic_ms();
    if (is_known && known->held->document == document)
        return;
    bool is_reported = is_known && known->held->document->header.version == document->header.version;
    configurations_release(known->held);
    known->held = read_version(document, is_reported);
    bool is_short = code.size <= sizeof known->code; /* else it is no code, and read again each time */
    known->code_size = is_short ? code.size : SIZE_MAX;
    memcpy(known->code, code.data, is_short ? code.size : 0);
}

/* Both documents are verified, or loaded, in one round trip. */
static enum fault refresh(struct worker_context *worker_context, struct call *call, struct bytes code,
                          struct known_configuration *own, struct known_configuration *z)
{
    const struct document_name names[] = {{.class = BYTES("Namespace"), .id = code},
                                          {.class = BYTES("Namespace"), .id = BYTES("z")}};
    const struct document *documents[COUNT_OF(names)];
    struct newest_proof proofs[COUNT_OF(names)];
    int ns = documents_ns(worker_context->documents, bytes_of(worker_context->settings->z_database));
    if (ns < 0)
        return FAULT_BINTERNAL;
    enum fault fault = documents_newest_proven(worker_context->documents, ns, call->arena, names,
                                               own == z ? 1 : 2, documents, proofs);
    if (fault)
        return fault;
    configurations_keep(own, code, documents[0], &proofs[0]);
    if (own != z)
        configurations_keep(z, names[1].id, documents[1], &proofs[1]);
    return FAULT_NONE;
}

static bool is_young(const struct documents *documents, const struct known_configuration *known,
                     struct bytes code, int64_t age_s)
{
    return configurations_is_of(known, code) && documents_is_unmoved(documents, &known->proof) &&
           clock_monotonic_ms() - known->verified_ms < age_s * 1000;
}

enum fault configurations_find_of(struct worker_context *worker_context, struct call *call, struct bytes code,
                                  const struct configuration **own_r, const struct configuration **z_r)
{
    struct configurations *configurations = worker_context->configurations;
    struct known_configuration *own = configurations_place_of(configurations, code), *z = &configurations->z;
    const struct documents *documents = worker_context->documents;
    if (!configurations_is_current(documents, own, code) ||
        !configurations_is_current(documents, z, BYTES("z"))) {
        enum fault fault = refresh(worker_context, call, code, own, z);
        int64_t age_s = old_reads_age(worker_context, call, fault);
        if (fault && !(is_young(documents, own, code, age_s) && is_young(documents, z, BYTES("z"), age_s)))
            return fault;
        call->is_by_old |= fault != FAULT_NONE;
    }
    *own_r = &own->held->configuration;
    *z_r = &z->held->configuration;
    return FAULT_NONE;
}

enum fault configurations_find(struct worker_context *worker_context, struct call *call,
                               const struct configuration **own_r, const struct configuration **z_r)
{
    return configurations_find_of(worker_context, call, call->ns, own_r, z_r);
}
