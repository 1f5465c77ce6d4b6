/* letter: the mails about accounts: their templates, and their text (RFC 5322).
 *
 * The member `mail` of a namespace's member `accounts` (namespace.h) replaces parts of the standard texts:
 * {"from":address, KIND:{"subject","text","link"}…}.  In subject and text {site} is the namespace's label,
 * {name} the name of the account, {link} the link with its secret.  In a link {token} is the secret; a link
 * without it gets "#ticket=" and the secret: servers and proxies never receive a fragment.  Without a link
 * {link} is the secret alone.
 *
 * Nothing in a name, a label or an address can add a header or a receiver: subjects and names are encoded
 * (RFC 2047), the text is quoted-printable, and addresses have the narrow form of letter_is_address.  Pure.
 */
#ifndef STAMPD_MODEL_ACCOUNT_LETTER_H
#define STAMPD_MODEL_ACCOUNT_LETTER_H

#include "base/arena.h"
#include "base/builder.h"
#include "edge/json/json.h"

enum letter_kind {
    LETTER_CONFIRM,  /* prove an address */
    LETTER_RESET,    /* set a new password */
    LETTER_REGISTER, /* make an account for the address */
    LETTER_LOGIN,    /* sign in without a password */
    LETTER_EXISTS,   /* the address that would register has an account */
    LETTER_CHANGED,  /* to the former address of an account */
    LETTER_KINDS
};

enum {
    LETTER_SUBJECT_MOST = 200, /* bytes, like those below */
    LETTER_TEXT_MOST = 8192,
    LETTER_LINK_MOST = 1000,
    LETTER_ADDRESS_MOST = 254
};

struct letter_template {
    struct bytes subject, text, link; /* NO_BYTES: the standard one; link: none */
};
struct letter_templates {
    struct bytes from; /* NO_BYTES: the setting mail_from */
    struct letter_template kinds[LETTER_KINDS];
};
/* Parses the value of the member, in the arena; false: it is malformed. */
MUST_USE bool letter_read_templates(struct arena *arena, struct bytes text,
                                    const struct letter_templates **templates_r);
#define LETTER_EXPECTED                                                                                      \
    "mail (from, confirm, reset, register, login, exists, changed: each with subject, text, link)"

/* The word for a kind in configurations and tasks, and the reverse; false: it is none. */
const char *letter_word(enum letter_kind kind);
MUST_USE bool letter_find_kind(struct bytes word, enum letter_kind *kind_r);

/* Can mails be sent to it: a dot-atom of RFC 5322, "@", and the name of a host? */
bool letter_is_address(struct bytes address);
/* A name for a mail to an address that its owner has not confirmed: whoever chose the name cannot write a
 * link with it.  In the arena. */
struct bytes letter_tame(struct arena *arena, struct bytes name);

struct letter {
    enum letter_kind kind;
    const struct letter_templates *templates; /* NULL: the standard ones */
    struct bytes from, to;                    /* addresses, as letter_is_address admits them */
    struct bytes site, name;                  /* UTF-8; empty: none */
    struct bytes token;                       /* empty: none */
    struct bytes id;                          /* visible ASCII without "@": unique, of its Message-ID */
    int64_t now_ms;
};
/* Header and body, lines ended by CR LF. */
void letter_write(struct builder *text, const struct letter *letter);
/* Appends the line of the header Date, independent of the locale. */
void letter_add_date(struct builder *text, int64_t now_ms);

#endif
