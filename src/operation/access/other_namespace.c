/* other_namespace: both configurations are the newest at each read. */
#include "operation/access/other_namespace.h"

#include "operation/access/access.h"
#include "operation/access/configurations.h"
#include "operation/judge/filters.h"

static enum fault other_namespace_refuse(struct attempt *attempt, struct bytes code)
{
    return reply_fault(attempt->call, attempt->reply, FAULT_NNAMESPACE, NULL,
                       arena_copy(attempt->call->arena, code.data, code.size), NULL);
}

/* Is it readable for everybody who may read this one?  Where rules decide it is not, nor where accounts are,
 * since their documents hold secrets. */
static bool is_offered(const struct settings *settings, const struct ns_conf *conf, struct bytes code,
                       struct bytes reader)
{
    return namespace_is_listed(conf->readers, reader) && conf->mode != ACCESS_RULES &&
           !conf->accounts.is_on && conf->database.size &&
           access_is_namespace(settings, conf, code, conf->database) && !bytes_equal(code, BYTES("z"));
}

/* The index of the other namespace. */
static enum fault other_namespace_find(struct attempt *attempt, struct bytes code, int *ns_r)
{
    struct worker_context *context = attempt->worker_context;
    struct call *call = attempt->call;
    const struct configuration *own, *other, *z;
    enum fault fault = configurations_find(context, call, &own, &z);
    if (fault)
        return fault;
    if (!namespace_is_listed(own->conf.reads, code))
        return other_namespace_refuse(attempt, code);
    fault = configurations_find_of(context, call, code, &other, &z);
    if (fault)
        return fault;
    if (!is_offered(context->settings, &other->conf, code, call->ns))
        return other_namespace_refuse(attempt, code);
    struct ns_conf conf = other->conf;
    access_add_state_of_z(&conf, &z->conf);
    fault = access_refuse_state(context->settings, &conf, conf.database, access_is_administrator(call));
    if (fault)
        return reply_fault(call, attempt->reply, fault,
                           conf.message.size ? arena_copy(call->arena, conf.message.data, conf.message.size)
                                             : NULL,
                           arena_copy(call->arena, code.data, code.size), NULL);
    *ns_r = documents_ns(context->documents, conf.database);
    return *ns_r < 0
               ? reply_fault(call, attempt->reply, FAULT_BINTERNAL, "The table of namespaces is full.", NULL)
               : FAULT_NONE;
}

/* A filter decides for callers of its own namespace, by their accounts.  Operations of modules are trusted.
 */
static bool is_filtered(const struct attempt *attempt, struct bytes code, struct bytes class)
{
    const struct call *call = attempt->call;
    return !access_is_administrator(call) && !attempt->operation->application &&
           filters_cover(filters_find(call->arena, code), class);
}

enum fault other_namespace_read(struct attempt *attempt, struct bytes code, struct document_name name,
                                int64_t age_s, const struct document **document_r)
{
    int ns = -1;
    enum fault fault = rules_is_reserved(name.class) || is_filtered(attempt, code, name.class)
                           ? other_namespace_refuse(attempt, code)
                           : other_namespace_find(attempt, code, &ns);
    return fault ? fault
                 : documents_tolerated(attempt->worker_context->documents, ns, attempt->call->arena, name,
                                       age_s, document_r);
}
