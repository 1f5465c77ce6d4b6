/* thumbnail_key: as the schema declares them. */
#include "operation/attachments/thumbnail_key.h"

#include "model/document/thumbnails.h"
#include "operation/classes.h"
#include "operation/judge/sight.h"

enum fault thumbnail_key_judge(struct attempt *attempt, struct bytes document_class, struct bytes key,
                               const char **refusal_r)
{
    const struct schema *schema;
    *refusal_r = NULL;
    enum fault fault = classes_schema(attempt, &schema);
    if (fault || !schema->has_thumbnails ||
        !thumbnails_is_reserved(schema_find_class(schema, document_class), key))
        return fault;
    if (!sight_discloses_writer(attempt, document_class, ATTACHMENT_CLASS))
        return FAULT_NONE;
    *refusal_r = "Another key is expected: the server gives this one to a thumbnail.";
    return classes_confirm(attempt, FAULT_NONE);
}
