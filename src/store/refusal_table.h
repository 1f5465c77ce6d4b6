/* Every refusal of the database once: REFUSAL(NAME, "SQLSTATE", "raised by", "meaning").  The functions of
 * sql/ raise it by stampd.fail(), and so do statements of the server, named here in capitals; `search` is
 * what model/schema/search_rows.c writes. scripts/check-refusals compares the table with sql/ and with the
 * statements: a state is raised where its row names, and nowhere else, and C code compares no state that is
 * written out. */
/* clang-format off */
REFUSAL(MOVED, "ST001", "CORE CORE_ONE BORN", "Documents are not at the versions seen; the detail is JSON [[class, id, version now]…].")
REFUSAL(FENCED, "ST002", "TASK_END TASK_END_ONE TASK_STEP CRON_END", "Tasks no longer belong to this attempt; the detail is a JSON list of their ids.")
REFUSAL(ANSWERED, "ST003", "IDEMPOTENCY", "An answer is already stored under the Idempotency-Key.")
REFUSAL(SCHEMA, "ST004", "CORE CORE_ONE COPY_LOCK search search_ready", "The schema has another number.")
REFUSAL(UNIQUE, "ST005", "unique_write", "A unique value is taken; the detail is JSON [property, class, document, value, document that has it].")
REFUSAL(UNRESERVED, "ST006", "global_note", "SQL takes a value that is unique in all namespaces; only requests to the server reserve one.")
REFUSAL(SUBSCRIPTIONS, "ST007", "subscription_put", "limit_subscriptions")
REFUSAL(PUSH_SUBSCRIPTIONS, "ST008", "subscription_put", "limit_push_subscriptions")
REFUSAL(FIXED, "ST009", "member_write", "A document would leave a collection that is not mutable; the detail is JSON [collection, class, document, value].")
REFUSAL(DEFINITIONS, "ST020", "subscription_put", "limit_definitions; the detail is the number that there would be.")
REFUSAL(CLIENT_SUBSCRIPTIONS, "ST021", "subscription_put", "limit_client_subscriptions")
REFUSAL(CLIENT_DEFINITIONS, "ST022", "subscription_put", "limit_client_definitions")
REFUSAL(NAMESPACE_DEFINITIONS, "ST023", "subscription_put", "limit_namespace_definitions")
REFUSAL(NAMESPACE_DEFINITIONS_MB, "ST024", "subscription_put", "limit_namespace_definitions_mb")
REFUSAL(MANY_VALUES, "ST025", "member_write", "A list gives a collection more values than allowed; the detail is JSON [limit, its value, values].")
REFUSAL(MANY_TASKS, "ST026", "task_admit", "A client, or all clients, have requested as many tasks as allowed; the detail is JSON [limit, its value].")
REFUSAL(SUBSCRIPTION_ACCOUNT, "ST027", "subscription_put", "The session has a subscription of another account.")
REFUSAL(ACCOUNT_BYTES, "ST028", "owned_write", "An account would store more bytes than allowed; the detail is JSON [quota, its value, the sum if it is the caller's].")
REFUSAL(NO_BLOB, "ST029", "blob_follow", "The store does not have the file of an attachment, or is about to remove it; the detail is JSON [digest].")
REFUSAL(QUOTA_OF_ADDRESS, "ST030", "subscription_put", "quotas.address.subscriptions_held")
REFUSAL(QUOTA_OF_ACCOUNT, "ST031", "subscription_put", "quotas.account.subscriptions_held")
REFUSAL(QUOTA_OF_NAMESPACE, "ST032", "subscription_put", "quotas.namespace.subscriptions_held")
REFUSAL(FORGOTTEN, "ST033", "SPOOL_PURGE", "Some records of a spool are no longer known.")
REFUSAL(NOT_TAKEN, "ST034", "TASK_END_TAKEN TASK_BACK_TAKEN", "The attempt of an external worker cannot be ended without reading it, or reading it again, first.")
REFUSAL(LOOKED, "ST035", "search", "A search would look at more items than limit_find_items.")
REFUSAL(UNOWNED, "ST036", "search_ready", "The function of a named search does not run as the role stampd_search.")
/* clang-format on */
