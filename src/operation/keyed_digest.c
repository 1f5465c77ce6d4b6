/* keyed_digest: see the header. */
#include "operation/keyed_digest.h"

#include "store/documents/store_schema.h"
#include "store/store_sealing.h"

enum fault keyed_digest(struct attempt *attempt, const char *kind, struct bytes text, struct bytes *digest_r)
{
    struct store *store = documents_store(attempt->worker_context->documents);
    struct arena *arena = attempt->call->arena;
    const struct schema *schema; /* with whose secret comes each session, as its keys */
    enum fault fault = store_schema(store, attempt->ns, arena, &schema);
    return fault ? fault
                 : store_sealing_digest(store, attempt->ns, arena, schema->secret, bytes_of(kind), text,
                                        digest_r);
}
