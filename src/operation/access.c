/* access: the administrator's key first, then what the namespace's configuration allows. */
#include "operation/access.h"

#include <stdlib.h>

#include "base/log.h"
#include "edge/crypto.h"

enum { CONF_DEPTH = 8 };

static enum access_mode mode_of(const struct json *conf)
{
    const struct json *access = json_member(conf, "access");
    if (access && access->kind == JSON_STRING && bytes_equal(access->value, BYTES("open")))
        return ACCESS_OPEN;
    if (access && access->kind == JSON_STRING && bytes_equal(access->value, BYTES("read")))
        return ACCESS_READ;
    return ACCESS_CLOSED;
}

struct space_conf access_read(struct arena *arena, struct bytes content)
{
    static const struct json_limits limits = {.depth = CONF_DEPTH, .tree_depth = CONF_DEPTH, .nodes = 256};
    struct space_conf result = {.mode = ACCESS_CLOSED};
    struct json *conf;
    struct json_problem problem;
    if (!content.data || json_read(arena, content, &limits, &conf, &problem))
        return result;
    const struct json *off = json_member(conf, "off"), *origins = json_member(conf, "origins");
    result.mode = mode_of(conf);
    if (off && off->kind == JSON_STRING)
        result.off = off->value;
    else if (off && off->kind != JSON_NULL && off->kind != JSON_FALSE)
        result.off = BYTES("off");
    if (origins && origins->kind == JSON_ARRAY)
        result.origins = origins;
    return result;
}

/* No item, or one that nobody can read: closed. */
static struct space_conf read_conf(struct arena *arena, const struct document *document)
{
    const struct item *item = document_find_item(document, BYTES("Conf"), BYTES(""));
    return access_read(arena, item && !item_is_tombstone(item) ? item->content : NO_BYTES);
}

/* A configuration as it was read from one snapshot of its document. */
struct known_conf {
    struct document *document; /* held: while it is the newest, `conf` is what it says */
    struct arena *arena;       /* of the texts of `conf` */
    struct space_conf conf;
};

enum { KNOWN_CONFS = 64 };
struct access_memory {
    struct known_conf known[KNOWN_CONFS];
};

struct access_memory *access_memory_create(void)
{
    struct access_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        log_fatal("out of memory");
    return memory;
}

static void forget(struct known_conf *known)
{
    document_release(known->document);
    arena_destroy(known->arena);
    *known = (struct known_conf){0};
}

void access_memory_destroy(struct access_memory *memory)
{
    for (size_t i = 0; memory && i < KNOWN_CONFS; i++)
        forget(&memory->known[i]);
    free(memory);
}

/* Where a namespace's configuration is remembered; another one may be there. */
static struct known_conf *place_of(struct access_memory *memory, struct bytes code)
{
    size_t sum = 0;
    for (size_t i = 0; i < code.size; i++)
        sum = sum * 31 + (unsigned char)code.data[i];
    return &memory->known[sum % KNOWN_CONFS];
}

enum fault access_configuration(struct workshop *workshop, struct call *call, struct space_conf *conf_r)
{
    const struct name name = {.class = BYTES("Namespace"), .id = call->space};
    const struct document *document;
    *conf_r = (struct space_conf){.mode = ACCESS_CLOSED};
    int space = documents_space(workshop->documents, bytes_of(workshop->settings->z_database));
    if (space < 0)
        return FAULT_BINTERNAL;
    enum fault fault = documents_newest(workshop->documents, space, call->arena, &name, 1, &document);
    if (fault)
        return fault;
    struct known_conf *known = place_of(workshop->access, call->space);
    if (known->document != document) {
        forget(known);
        known->document = document_hold((struct document *)document);
        known->arena = arena_create("access");
        known->conf = read_conf(known->arena, document);
    }
    *conf_r = known->conf;
    return FAULT_NONE;
}

bool access_is_administrator(const struct workshop *workshop, const struct call *call)
{
    char digest[CRYPTO_SHA256_HEX + 1];
    if (!*workshop->settings->admin_key_sha256)
        return false;
    crypto_sha256_hex(call->admin, digest);
    return crypto_equal(bytes_of(digest), bytes_of(workshop->settings->admin_key_sha256));
}

/* The namespace z is the administrator's: applications have no business there. */
static bool is_of_namespaces(const struct workshop *workshop, const struct call *call)
{
    return bytes_equal(call->database, bytes_of(workshop->settings->z_database));
}

enum fault access_check(struct workshop *workshop, struct call *call, struct reply *reply,
                        const struct operation *operation)
{
    if (call->admin.data && call->admin.size)
        return access_is_administrator(workshop, call)
                   ? FAULT_NONE
                   : reply_fault(call, reply, FAULT_SKEY, "The administrator's key is not this one.", "admin",
                                 NULL);
    struct space_conf conf;
    enum fault fault = access_configuration(workshop, call, &conf);
    if (fault)
        return fault;
    if (conf.off.size)
        return reply_fault(call, reply, FAULT_OOFF, arena_copy(call->arena, conf.off.data, conf.off.size),
                           NULL);
    if (operation->right == RIGHT_PUBLIC && !is_of_namespaces(workshop, call))
        return FAULT_NONE;
    if (operation->right >= RIGHT_PUBLIC)
        conf.mode = ACCESS_CLOSED;
    if (conf.mode == ACCESS_OPEN || (conf.mode == ACCESS_READ && operation->right == RIGHT_READ))
        return FAULT_NONE;
    return reply_fault(call, reply, FAULT_SCLOSED,
                       "Without the administrator's key this operation is closed here.", operation->name,
                       NULL);
}
