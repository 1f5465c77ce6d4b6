/* rules_warnings: the sentences, as an array of JSON. */
#include "operation/administration/rules_warnings.h"

#include "edge/json/json.h"
#include "operation/reply.h"

void rules_warnings_add(void *context, const char *sentence)
{
    struct builder *list = context;
    if (list->size)
        builder_add_text(list, ",");
    json_add_string(list, bytes_of(sentence));
}

void rules_warnings_compare(struct attempt *attempt, const struct rules *rules, const struct schema *schema,
                            struct builder *list)
{
    rules_schema_compare(attempt->call->arena, rules, schema, rules_warnings_add, list);
}

void rules_warnings_write(struct attempt *attempt, struct builder *list)
{
    struct builder *body = attempt->reply->body;
    if (list->size) {
        body->size--; /* its last brace */
        builder_add_text(body, ",\"warnings\":[");
        builder_add(body, list->data, list->size);
        builder_add_text(body, "]}");
    }
    builder_free(list);
}
