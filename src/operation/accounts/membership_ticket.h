/* membership_ticket: invitations to become a member of a document, as they are stored.
 *
 * Ticket/<SHA-256 of a secret>, item Join {"c","id"}, leads to Ticket/<digest of the document's name>, which
 * has an item Join for each invitation to the document, under the key of its ticket:
 * {"by","credential","label","content","name_as","expires","uses"}.  The first is deleted by a task after the
 * end, with what the second has of it. */
#ifndef STAMPD_OPERATION_ACCOUNTS_MEMBERSHIP_TICKET_H
#define STAMPD_OPERATION_ACCOUNTS_MEMBERSHIP_TICKET_H

#include "operation/accounts/account_gate.h"

struct membership_ticket {
    struct document_name name;     /* of the document */
    struct bytes by, credential;   /* the account that has invited; empty: the administrator */
    struct bytes label;            /* for people; empty: none */
    struct bytes content, name_as; /* of the item; the member that gets the name of who joins; empty: none */
    int64_t expires, uses;         /* a stamp; how many may still join */
    struct bytes key;              /* of its document and item */
    struct draft *pointer, *of_name; /* the two documents */
};

enum { MEMBERSHIP_SHOWN = 16 }; /* characters of a key that are shown, enough to revoke it */

/* The invitations of a document: the draft of the second document. */
MUST_USE enum fault membership_ticket_fetch_all(struct attempt *attempt, struct document_name name,
                                                struct draft **draft_r);
/* How many of them have not ended.  Those that have are removed. */
size_t membership_ticket_clean(struct attempt *attempt, struct draft *of_name);
/* Writes both documents, and plans the end. */
MUST_USE enum fault membership_ticket_create(struct attempt *attempt, const struct membership_ticket *ticket);
/* Finds the invitation of this secret.  is_one_r: it is neither unknown nor used nor expired. */
MUST_USE enum fault membership_ticket_find(struct attempt *attempt, struct bytes secret,
                                           struct membership_ticket *ticket_r, bool *is_one_r);
/* One more has joined by it. */
void membership_ticket_use(struct attempt *attempt, const struct membership_ticket *ticket);
/* Reads the item of an invitation.  Is it used up, expired or malformed? */
bool membership_ticket_is_over(struct attempt *attempt, const struct item *item,
                               struct membership_ticket *ticket_r);
/* Removes those whose keys begin with `prefix`; returns how many.  What led to them leads nowhere from then
 * on, until its task deletes it. */
size_t membership_ticket_remove(struct draft *of_name, struct bytes prefix);
/* A ticket ends: removes what the second document has of it, if it is an invitation to a document. */
MUST_USE enum fault membership_ticket_end(struct attempt *attempt, struct draft *pointer);

#endif
