/* findings: lines on standard error. */
#include "control/verify/findings.h"

#include "control/message.h"

enum { SHOWN = 20 };

static bool findings_is_shown(struct findings *findings)
{
    arena_reset(findings->arena);
    if (findings->count++ == SHOWN)
        message_print("more differences follow, which are only counted");
    return findings->count <= SHOWN;
}

void findings_add_document(struct findings *findings, struct bytes class, struct bytes id, const char *what)
{
    if (findings_is_shown(findings))
        message_print("%.*s %s: %s", (int)class.size, class.data, message_quote(findings->arena, id), what);
}

void findings_add_class(struct findings *findings, struct bytes class, const char *what)
{
    if (findings_is_shown(findings))
        message_print("%s%.*s: %s", class.data ? "class " : "the namespace", (int)class.size, class.data,
                      what);
}

void findings_add_file(struct findings *findings, const struct blob_digest *digest, const char *what)
{
    char text[BLOB_HEX + 1];
    blob_store_write_digest(digest, text);
    if (findings_is_shown(findings))
        message_print("file %s: %s", text, what);
}
