/* access: the administrator's key first, then what the namespace's configuration allows. */
#include "operation/access.h"

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

enum fault access_configuration(struct workshop *workshop, struct call *call, struct space_conf *conf_r)
{
    static const struct json_limits limits = {.depth = CONF_DEPTH, .tree_depth = CONF_DEPTH, .nodes = 64};
    const struct name name = {.class = BYTES("Namespace"), .id = call->space};
    const struct document *document;
    *conf_r = (struct space_conf){.mode = ACCESS_CLOSED};
    int space = documents_space(workshop->documents, bytes_of(workshop->settings->z_database));
    if (space < 0)
        return FAULT_BINTERNAL;
    enum fault fault = documents_newest(workshop->documents, space, call->arena, &name, 1, &document);
    if (fault)
        return fault;
    const struct item *item = document_find_item(document, BYTES("Conf"), BYTES(""));
    struct json *conf;
    struct json_problem problem;
    if (!item || item_is_tombstone(item) || json_read(call->arena, item->content, &limits, &conf, &problem))
        return FAULT_NONE; /* no configuration, or one that nobody can read: closed */
    const struct json *off = json_member(conf, "off");
    conf_r->mode = mode_of(conf);
    if (off && off->kind == JSON_STRING)
        conf_r->off = off->value;
    else if (off && off->kind != JSON_NULL && off->kind != JSON_FALSE)
        conf_r->off = BYTES("off");
    return FAULT_NONE;
}

static bool is_administrator(const struct workshop *workshop, const struct call *call)
{
    char digest[CRYPTO_SHA256_HEX + 1];
    if (!*workshop->settings->admin_key_sha256)
        return false;
    crypto_sha256_hex(call->admin, digest);
    return crypto_equal(bytes_of(digest), bytes_of(workshop->settings->admin_key_sha256));
}

enum fault access_check(struct workshop *workshop, struct call *call, struct reply *reply,
                        const struct operation *operation)
{
    if (call->admin.data && call->admin.size)
        return is_administrator(workshop, call)
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
    if (conf.mode == ACCESS_OPEN || (conf.mode == ACCESS_READ && operation->right == RIGHT_READ))
        return FAULT_NONE;
    return reply_fault(call, reply, FAULT_SCLOSED,
                       "Without the administrator's key this operation is closed here.", operation->name,
                       NULL);
}
