/* live_accounts: a query for some of those in doubt at a time. */
#include "live/access/live_accounts.h"

#include "live/live_audience_private.h"
#include "live/access/live_admission.h"
#include "live/live_listener.h"

enum { ACCOUNTS_AT_ONCE = 64 };

static bool has_account(const struct live_listener *listener)
{
    return listener->is_ruled && listener->caller;
}

void live_accounts_doubt(struct live_audience *audience, struct bytes class, struct bytes id)
{
    for (struct live_listener *one = audience->listeners; one && audience->ruled_count; one = one->next)
        if (has_account(one) && live_caller_depends_on(one->caller, class, id))
            live_audience_trust(one, LIVE_DOUBTED);
}

void live_accounts_doubt_all(struct live_audience *audience)
{
    for (struct live_listener *one = audience->listeners; one && audience->ruled_count; one = one->next)
        if (has_account(one))
            live_audience_trust(one, LIVE_DOUBTED);
}

void live_accounts_refuse(struct live_audience *audience, enum fault fault)
{
    for (struct live_listener *one = audience->listeners, *next; one; one = next) {
        next = one->next;
        if (one->state == LIVE_WAITS_FOR_ACCOUNT)
            live_listener_refuse(one, fault, NO_BYTES, NULL);
    }
}

bool live_accounts_are_due(const struct live_audience *audience)
{
    return audience->doubted_count > 0;
}

void live_accounts_query(struct live_audience *audience, struct pg_params *params)
{
    struct document_name names[ACCOUNTS_AT_ONCE];
    size_t count = 0;
    for (struct live_listener *one = audience->listeners;
         one && count + LIVE_CALLER_DOCUMENTS <= ACCOUNTS_AT_ONCE; one = one->next) {
        if (one->trust != LIVE_DOUBTED)
            continue;
        one->place = count;
        live_audience_trust(one, LIVE_REQUESTED);
        count += live_caller_name(one->caller, params->arena, &names[count]);
    }
    for (size_t i = 0; i < count; i++) /* until the query is sent, a listener may disconnect */
        names[i].id.data = arena_copy(params->arena, names[i].id.data, names[i].id.size);
    live_snapshot_query(params, names, count, INT64_MAX, false);
}

/* The names in the order of the query: changes meanwhile have not moved them. */
static void list_names(const struct live_audience *audience, struct arena *arena, struct document_name *names)
{
    for (size_t i = 0; i < ACCOUNTS_AT_ONCE; i++)
        names[i] = (struct document_name){BYTES("Account"), BYTES("")};
    for (const struct live_listener *one = audience->listeners; one; one = one->next)
        if (one->trust == LIVE_REQUESTED)
            (void)live_caller_name(one->caller, arena, &names[one->place]);
}

/* Its keys are about to be fetched. */
static void refuse_for_now(struct live_listener *listener)
{
    const struct live_audience *audience = listener->audience;
    if (audience->number >= 0)
        issuer_keys_want(audience->all->settings, audience->segment, audience->number,
                         bytes_of(audience->code), live_caller_issuer(listener->caller));
    live_listener_refuse(listener, FAULT_XBUSY, BYTES("issuers"),
                         "The keys of the token's issuer are not known yet.");
}

/* It has changed again meanwhile, or is gone: then it is not asked for. */
static void live_accounts_settle(struct live_listener *listener, struct arena *arena,
                                 const struct live_loaded *loaded)
{
    const struct document *documents[LIVE_CALLER_DOCUMENTS] = {0};
    size_t count = live_caller_issuer(listener->caller).data ? LIVE_CALLER_DOCUMENTS : 1;
    bool is_loaded = true;
    for (size_t i = 0; i < count; i++) {
        documents[i] = loaded ? loaded[i].document : NULL;
        is_loaded &= documents[i] != NULL;
    }
    if (!is_loaded) {
        live_audience_trust(listener, LIVE_DOUBTED); /* the result had no room for it */
        return;
    }
    switch (live_caller_admit(listener->caller, arena, live_access_issuers(listener->audience->access),
                              documents)) {
    case TOKEN_VALID:
        live_admission_trust(listener);
        break;
    case TOKEN_WRONG:
        live_admission_distrust(listener);
        break;
    case TOKEN_LATER:
        refuse_for_now(listener);
        break;
    }
}

void live_accounts_take(struct live_audience *audience, struct live_snapshot *snapshot,
                        const struct pg_result *result, struct arena *arena)
{
    struct document_name names[ACCOUNTS_AT_ONCE];
    struct live_loaded loaded[ACCOUNTS_AT_ONCE] = {0};
    list_names(audience, arena, names);
    bool is_taken = live_snapshot_take(snapshot, result, arena, names, ACCOUNTS_AT_ONCE, loaded);
    for (struct live_listener *one = audience->listeners, *next; one; one = next) {
        next = one->next;
        if (one->trust == LIVE_REQUESTED)
            live_accounts_settle(one, arena, is_taken ? &loaded[one->place] : NULL);
    }
}
