/* What a request without the administrator's key can cost at most, a row for each operation that such a
 * caller may run, in the order of the registry's names, and for each way in that is no operation (WAY).
 * test_costs.c compares the rows with the registry, gives each setting its default, and makes the table of
 * doc/explanation/security.md (make update-costs).
 *
 * COST(operation, rows that it reads or writes, time of a worker and of PostgreSQL, what stays, and how long)
 */
/* clang-format off */
#define LONG_READ  "`limit_read_ms`"
#define LONG_WRITE "a long commit `limit_commit_ms`"
#define DIGEST     "a digest of a password: `argon2_share` of the workers, `limit_client_attempts`"
#define FOR_GOOD   "until it is deleted, then its name for `keep_deletions_days`"

COST(account, "its account and sessions", DIGEST ", when a password is proven", "the account")
COST(changemany, "looks at `limit_find_items` items, twice; as a task it changes `limit_change_items` of them", LONG_READ "; as a task `limit_task_s`",
     "the documents, for good")
COST(collection, "a page: what `limit_answer_bytes` holds", LONG_READ ", of a stream `limit_stream_ms`", "nothing")
COST(confirm, "its account, a session", "`limit_client_attempts`", "the session: `session_days` of the namespace")
COST(done, "its task, and `limit_documents` documents of `limit_items` items", LONG_WRITE, "the documents, for good")
COST(fail, "its task", "short", "the task, until it succeeds or is deleted")
COST(find, "looks at `limit_find_items` items", LONG_READ, "nothing")
COST(get, "`limit_documents` documents; with `age` what `limit_answer_bytes` holds", LONG_READ, "nothing")
COST(keep, "its task", "short", "nothing more")
COST(list, "a page: what `limit_answer_bytes` holds", LONG_READ, "nothing")
COST(login, "a session; the oldest ends beyond `sessions_most` of the namespace", DIGEST, "the session: `session_days` of the namespace")
COST(logout, "its session", "short", "nothing")
COST(maillogin, "a ticket, a session, a mail of `limit_client_mails`, `limit_address_mails` and `limit_namespace_mails`", "short",
     "the ticket, until it is used or expires; the session: `session_days` of the namespace")
COST(membership, "a document, its account, the invitations of the document", "`limit_client_attempts`, of an address and of an account",
     "`limit_invitations` of a document, for `days`; the membership, until it is removed")
COST(openapi, "none", "short; the text is kept", "nothing")
COST(owntask, "its task", "short", "nothing")
COST(passkey, "its account, a session", "`limit_client_attempts`", "the passkey, with its account")
COST(pushkey, "none", "short", "nothing")
COST(put, "`limit_documents` documents of `limit_items` items and `limit_document_bytes`", LONG_WRITE, FOR_GOOD)
COST(record, "records in memory: a share of `limit_namespace_records_mb`", "short", "a day where `anyone` may write, else as the rule says")
COST(register, "an account, a session", DIGEST, "the account for good; an anonymous one `anonymous_days` of the namespace")
COST(reset, "a ticket, a mail of `limit_client_mails`, `limit_address_mails` and `limit_namespace_mails`", "short", "the ticket, until it is used or expires")
COST(search, "`limit_search_rows` rows, of all that the administrator's SQL reads for them", LONG_READ ", and 1 GB of files for what it sorts", "nothing")
COST(sessions, "its sessions", "short", "nothing")
COST(spool, "`limit_spool_records` tasks, by a key of the service", LONG_WRITE, "the tasks, until they are done")
COST(subs, "`limit_definitions` definitions; of an address `limit_client_definitions` in `limit_client_subscriptions` sessions", "short",
     "`subscription_trial_min`, then `limit_subscription_days` if the session returns")
COST(sync, "`limit_syncs` documents", "long from 64 documents on: " LONG_READ, "nothing")
COST(take, "tasks of its queue", "short", "the claims, until they end")
COST(task, "a task of `limit_task_param_bytes`: `limit_client_tasks` of an address, `limit_tasks_waiting` of all",
     "as the operation, in an attempt of `limit_task_s`; it waits while its client has its share of the workers",
     "until it is done; it starts within `limit_task_delay_days`, and is deleted `task_parked_days` after it is parked")
COST(whois, "2 documents", "`limit_client_attempts`, of an address and of an account", "nothing")
WAY("GET /NS/doc", "1 document", LONG_READ, "nothing")
WAY("PUT, PATCH, DELETE /NS/doc", "1 document of `limit_items` items and `limit_document_bytes`", LONG_WRITE, FOR_GOOD)
WAY("PUT /NS/doc/…/file", "1 attachment; a body of `limit_upload_bytes`, `limit_client_bodies` at the same time",
    "the copy of the file: `limit_client_uploads`, `limit_uploads` workers", "the file until it is removed, then `blob_keep_hours`")
WAY("POST, PATCH /NS/upload", "a part of `limit_upload_bytes`; `limit_client_partial_uploads` uploads of `limit_client_partial_bytes` together",
    "as that of a file", "what is not finished: `blob_unused_hours`")
WAY("/NS/live", "a place: `limit_client_live` of an address, `limit_namespace_live`", "none: another process", "the connection")
WAY("/ping", "none", "short", "nothing")
#undef LONG_READ
#undef LONG_WRITE
#undef DIGEST
#undef FOR_GOOD
