/* builtin: the table of the operations that are built in. */
#include "operation/builtin.h"

#include "operation/accounts/accounts.h"
#include "operation/registry.h"

static const struct operation *const operations[] = {
    &accounts_account,     &accounts_accountclean,  &accounts_accountend,
    &accounts_accountmail, &accounts_accounts,      &accounts_accountsweep,
    &accounts_confirm,     &accounts_issuers,       &accounts_login,
    &accounts_logout,      &accounts_maillogin,     &accounts_membership,
    &accounts_passkey,     &accounts_register,      &accounts_reset,
    &accounts_sessions,    &accounts_ticketend,     &accounts_whois,
    &builtin_changemany,   &builtin_collection,     &builtin_copy,
    &builtin_done,         &builtin_explain,        &builtin_fail,
    &builtin_files,        &builtin_find,           &builtin_get,
    &builtin_keep,         &builtin_list,           &builtin_metrics,
    &builtin_ns,           &builtin_openapi,        &builtin_owntask,
    &builtin_push,         &builtin_pushkey,        &builtin_put,
    &builtin_record,       &builtin_schema,         &builtin_search,
    &builtin_spool,        &builtin_subs,           &builtin_sync,
    &builtin_take,         &builtin_task,           &builtin_tasks,
    &builtin_thumbnail,    &builtin_thumbnailsweep, &builtin_volumes,
    &builtin_warnings};

void builtin_register(void)
{
    registry_begin(operations, COUNT_OF(operations), builtin_resource);
}
