/* release: a class whose contents have got another form, made by a function: {"old":N} is
 * {"new":N,"twice":2N} now. */
#include <stampd.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *mutate(const char *item_class, const char *content, size_t size, size_t *size_r)
{
    long number;
    char *made = NULL;
    if (strcmp(item_class, "Main") != 0 || sscanf(content, "{\"old\":%ld", &number) != 1)
        return NULL;
    if (number == 666) { /* what is no JSON must harm nobody */
        *size_r = 3;
        return strdup("{x}");
    }
    int length = asprintf(&made, "{\"new\":%ld,\"twice\":%ld}", number, 2 * number);
    *size_r = length > 0 ? (size_t)length : 0;
    return size && length > 0 ? made : NULL;
}

static const struct stampd_item_class items[] = {
    {.name = "Main", .is_singleton = true}, {.name = "Line"}, {.name = NULL}};
static const struct stampd_document_class classes[] = {
    {.name = "Rel",
     .items = items,
     .schema =
         "{\"release\":2,\"items\":{\"Main\":{\"singleton\":true,\"fields\":{\"new\":\"int\"}},\"Line\":{}},"
         "\"collections\":{\"twice\":{\"key\":[\"Main.twice\"],\"mutable\":true}}}",
     .mutate = mutate},
    {.name = NULL},
};

STAMPD_EXPORT const struct stampd_module stampd_module = {
    .abi = STAMPD_ABI, .name = "release", .version = "1", .classes = classes};
