# libstampd.a: one line a module, sorted; scripts/check-layers checks it.
libstampd_a_SOURCES = \
	src/base/address.c src/base/address.h \
	src/base/arena.c src/base/arena.h \
	src/base/base.h \
	src/base/builder.c src/base/builder.h \
	src/base/bytes.c src/base/bytes.h \
	src/base/clock.c src/base/clock.h \
	src/base/coding/base64.c src/base/coding/base64.h \
	src/base/coding/cbor.c src/base/coding/cbor.h \
	src/base/coding/crc32c.h \
	src/base/coding/hash.h \
	src/base/coding/hex.c src/base/coding/hex.h \
	src/base/coding/percent.c src/base/coding/percent.h \
	src/base/coding/siphash.c src/base/coding/siphash.h \
	src/base/coding/swar.h \
	src/base/crash.c src/base/crash.h \
	src/base/crash_table.h \
	src/base/fault.c src/base/fault.h \
	src/base/fault_table.h \
	src/base/heap.c src/base/heap.h \
	src/base/identity.c src/base/identity.h \
	src/base/log.c src/base/log.h \
	src/base/logging/audit.c src/base/logging/audit.h \
	src/base/logging/log_json.c src/base/logging/log_json.h \
	src/base/logging/spans.c src/base/logging/spans.h \
	src/base/memory.c src/base/memory.h \
	src/base/names.c src/base/names.h \
	src/base/pairs.c src/base/pairs.h \
	src/base/process/reaper.c src/base/process/reaper.h \
	src/base/process/subprocess.c src/base/process/subprocess.h \
	src/base/schedule.c src/base/schedule.h \
	src/base/secret.c src/base/secret.h \
	src/base/settings.c src/base/settings.h \
	src/base/settings_table.h \
	src/base/stop.c src/base/stop.h \
	src/blob/blob_check.c src/blob/blob_check.h \
	src/blob/blob_part.c src/blob/blob_part.h \
	src/blob/blob_reseal.c src/blob/blob_reseal.h \
	src/blob/blob_sealed.c src/blob/blob_sealed.h \
	src/blob/blob_store.c src/blob/blob_store.h \
	src/blob/blob_store_private.h \
	src/blob/blob_store_sweep.c \
	src/blob/file_ticket.c src/blob/file_ticket.h \
	src/blob/object_signature.c src/blob/object_signature.h \
	src/blob/object_store.c src/blob/object_store.h \
	src/blob/object_stores.c src/blob/object_stores.h \
	src/blob/thumbnailer.c src/blob/thumbnailer.h \
	src/cluster/cluster.c src/cluster/cluster.h \
	src/cluster/cluster_ask.c \
	src/cluster/cluster_copy.c \
	src/cluster/cluster_host.c \
	src/cluster/cluster_map.c src/cluster/cluster_map.h \
	src/cluster/cluster_private.h \
	src/cluster/cluster_serve.c \
	src/cluster/cluster_share.c src/cluster/cluster_share.h \
	src/cluster/cluster_table.c src/cluster/cluster_table.h \
	src/cluster/cluster_wire.c src/cluster/cluster_wire.h \
	src/control/account/cmd_account.c \
	src/control/answer.c src/control/answer.h \
	src/control/archive/archive_batch.c src/control/archive/archive_batch.h \
	src/control/archive/archive_files.c src/control/archive/archive_files.h \
	src/control/archive/archive_line.c src/control/archive/archive_line.h \
	src/control/archive/archive_reader.c src/control/archive/archive_reader.h \
	src/control/archive/archive_replace.c src/control/archive/archive_replace.h \
	src/control/archive/archive_rows.c src/control/archive/archive_rows.h \
	src/control/archive/archive_writer.c src/control/archive/archive_writer.h \
	src/control/archive/cmd_export.c \
	src/control/archive/exporter.c src/control/archive/exporter.h \
	src/control/archive/import_progress.c src/control/archive/import_progress.h \
	src/control/archive/importer.c src/control/archive/importer.h \
	src/control/archive/importer_files.c src/control/archive/importer_files.h \
	src/control/backoff.c src/control/backoff.h \
	src/control/backup/backup_database.c src/control/backup/backup_database.h \
	src/control/backup/backup_files.c src/control/backup/backup_files.h \
	src/control/backup/backup_folder.c src/control/backup/backup_folder.h \
	src/control/backup/backup_objects.c src/control/backup/backup_objects.h \
	src/control/backup/cmd_backup.c src/control/backup/cmd_backup.h \
	src/control/backup/cmd_backup_check.c \
	src/control/backup/cmd_backup_return.c \
	src/control/backup/cmd_restore.c \
	src/control/cmd_audit.c src/control/cmd_audit.h \
	src/control/cmd_cell.c \
	src/control/cmd_check.c \
	src/control/cmd_host.c \
	src/control/cmd_journal.c \
	src/control/cmd_key.c src/control/cmd_key.h \
	src/control/cmd_ping.c \
	src/control/cmd_push.c \
	src/control/cmd_resource.c \
	src/control/control.c src/control/control.h \
	src/control/doctor/cmd_doctor.c \
	src/control/documents/ask.c src/control/documents/ask.h \
	src/control/documents/bookmark.c src/control/documents/bookmark.h \
	src/control/documents/cmd_change.c \
	src/control/documents/cmd_dump.c \
	src/control/documents/cmd_find.c \
	src/control/documents/cmd_load.c \
	src/control/documents/cmd_purge.c \
	src/control/documents/dumper.c src/control/documents/dumper.h \
	src/control/documents/input.c src/control/documents/input.h \
	src/control/documents/line.c src/control/documents/line.h \
	src/control/documents/page.c src/control/documents/page.h \
	src/control/documents/progress.c src/control/documents/progress.h \
	src/control/documents/target.c src/control/documents/target.h \
	src/control/files/cmd_files.c \
	src/control/files/files_place.c src/control/files/files_place.h \
	src/control/files/stored_files.c src/control/files/stored_files.h \
	src/control/folder_reach.c src/control/folder_reach.h \
	src/control/foreign/cmd_import_couchdb.c \
	src/control/foreign/cmd_import_foreign.c \
	src/control/foreign/foreign_ids.c src/control/foreign/foreign_ids.h \
	src/control/foreign/foreign_import.c src/control/foreign/foreign_import.h \
	src/control/foreign/foreign_reader.c src/control/foreign/foreign_reader.h \
	src/control/journal_shell.c src/control/journal_shell.h \
	src/control/message.c src/control/message.h \
	src/control/move/cmd_ns_move.c \
	src/control/move/move_keys.c src/control/move/move_keys.h \
	src/control/move/move_site.c src/control/move/move_site.h \
	src/control/move/ns_mover.c src/control/move/ns_mover.h \
	src/control/nginx/cmd_nginx.c \
	src/control/nginx/directive.c src/control/nginx/directive.h \
	src/control/nginx/homes.c src/control/nginx/homes.h \
	src/control/nginx/map.c src/control/nginx/map.h \
	src/control/nginx/nginx_refusals.c src/control/nginx/nginx_refusals.h \
	src/control/nginx/site.c src/control/nginx/site.h \
	src/control/nginx/template.c src/control/nginx/template.h \
	src/control/ns/cmd_ns.c src/control/ns/cmd_ns.h \
	src/control/ns/cmd_ns_create.c \
	src/control/ns/cmd_ns_keys.c \
	src/control/ns/cmd_ns_list.c \
	src/control/ns/cmd_ns_reads.c \
	src/control/ns/cmd_ns_workers.c \
	src/control/ns/migrations.c src/control/ns/migrations.h \
	src/control/ns/ns_keys.c src/control/ns/ns_keys.h \
	src/control/ns/ns_purge.c src/control/ns/ns_purge.h \
	src/control/ns/ns_registry.c src/control/ns/ns_registry.h \
	src/control/options.c src/control/options.h \
	src/control/record.c src/control/record.h \
	src/control/resource_store.c src/control/resource_store.h \
	src/control/rules/cmd_rules.c src/control/rules/cmd_rules.h \
	src/control/rules/cmd_rules_explain.c \
	src/control/schema/cmd_schema.c \
	src/control/schema/schema_apply.c \
	src/control/schema/schema_catalog.c src/control/schema/schema_catalog.h \
	src/control/schema/schema_contents.c src/control/schema/schema_contents.h \
	src/control/schema/schema_join.c \
	src/control/schema/schema_plan.c src/control/schema/schema_plan.h \
	src/control/schema/schema_plan_indexes.c src/control/schema/schema_plan_indexes.h \
	src/control/schema/schema_sql.c src/control/schema/schema_sql.h \
	src/control/schema/schema_watch.c src/control/schema/schema_watch.h \
	src/control/servers.c src/control/servers.h \
	src/control/setup/cmd_setup.c \
	src/control/task/cmd_cron.c \
	src/control/task/cmd_task.c src/control/task/cmd_task.h \
	src/control/task/cmd_task_limit.c \
	src/control/task/task_session.c src/control/task/task_session.h \
	src/control/top/cmd_top.c \
	src/control/verify/cmd_verify.c \
	src/document/cache.c src/document/cache.h \
	src/document/documents.c src/document/documents.h \
	src/document/documents_private.h \
	src/document/documents_replica.c \
	src/document/transaction.c src/document/transaction.h \
	src/document/transaction_commit.c \
	src/document/transaction_effects.c \
	src/document/transaction_private.h \
	src/edge/crypto/certificate.c src/edge/crypto/certificate.h \
	src/edge/crypto/crypto.c src/edge/crypto/crypto.h \
	src/edge/crypto/crypto_private.h \
	src/edge/crypto/curve.c src/edge/crypto/curve.h \
	src/edge/crypto/digest.c src/edge/crypto/digest.h \
	src/edge/crypto/gcm.c \
	src/edge/crypto/gcm_private.h \
	src/edge/crypto/password.c src/edge/crypto/password.h \
	src/edge/crypto/signature.c src/edge/crypto/signature.h \
	src/edge/crypto/tls.c src/edge/crypto/tls.h \
	src/edge/crypto/webauthn.c src/edge/crypto/webauthn.h \
	src/edge/events.c src/edge/events.h \
	src/edge/events_private.h \
	src/edge/exchange.c src/edge/exchange.h \
	src/edge/fcgi.c src/edge/fcgi.h \
	src/edge/fcgi_ask.c src/edge/fcgi_ask.h \
	src/edge/fcgi_listen.c \
	src/edge/futex.c src/edge/futex.h \
	src/edge/gzip.c src/edge/gzip.h \
	src/edge/http.c src/edge/http.h \
	src/edge/json/json.c src/edge/json/json.h \
	src/edge/json/json_blank.h \
	src/edge/json/json_fast.c src/edge/json/json_fast.h \
	src/edge/json/json_scan.c src/edge/json/json_scan.h \
	src/edge/json/json_string.c src/edge/json/json_string.h \
	src/edge/local_socket.c src/edge/local_socket.h \
	src/edge/mapping.c src/edge/mapping.h \
	src/edge/pattern.c src/edge/pattern.h \
	src/edge/pg/pg.c src/edge/pg/pg.h \
	src/edge/pg/pg_async.c src/edge/pg/pg_async.h \
	src/edge/pg/pg_connect.c \
	src/edge/pg/pg_copy.c src/edge/pg/pg_copy.h \
	src/edge/pg/pg_describe.c src/edge/pg/pg_describe.h \
	src/edge/pg/pg_hosts.c src/edge/pg/pg_hosts.h \
	src/edge/pg/pg_params.c src/edge/pg/pg_params.h \
	src/edge/pg/pg_pipeline.c src/edge/pg/pg_pipeline.h \
	src/edge/pg/pg_private.h \
	src/edge/pg/pg_run.c \
	src/edge/pg/pg_stream.c src/edge/pg/pg_stream.h \
	src/edge/pg/pg_tag.c \
	src/edge/pg/pg_translation.c src/edge/pg/pg_translation.h \
	src/edge/robust_lock.c src/edge/robust_lock.h \
	src/edge/tarball.c src/edge/tarball.h \
	src/http/arguments.c src/http/arguments.h \
	src/http/coding.c src/http/coding.h \
	src/http/condition.c src/http/condition.h \
	src/http/cors.c src/http/cors.h \
	src/http/multipart.c src/http/multipart.h \
	src/http/path.c src/http/path.h \
	src/http/public_reads.c src/http/public_reads.h \
	src/http/request.c src/http/request.h \
	src/http/request_attachment.c src/http/request_attachment.h \
	src/http/request_id.c src/http/request_id.h \
	src/http/request_upload.c src/http/request_upload.h \
	src/http/response.c src/http/response.h \
	src/journal/hosts/hosts.c src/journal/hosts/hosts.h \
	src/journal/hosts/hosts_beat.c src/journal/hosts/hosts_beat.h \
	src/journal/hosts/hosts_door.c src/journal/hosts/hosts_door.h \
	src/journal/hosts/hosts_link.c src/journal/hosts/hosts_link.h \
	src/journal/hosts/hosts_list.c src/journal/hosts/hosts_list.h \
	src/journal/hosts/hosts_run.c src/journal/hosts/hosts_run.h \
	src/journal/journal.c src/journal/journal.h \
	src/journal/journal_address.c src/journal/journal_address.h \
	src/journal/journal_child.c src/journal/journal_child.h \
	src/journal/journal_connection.c src/journal/journal_connection.h \
	src/journal/journal_contents.c src/journal/journal_contents.h \
	src/journal/journal_ends.c src/journal/journal_ends.h \
	src/journal/journal_keys.c src/journal/journal_keys.h \
	src/journal/journal_listener.c src/journal/journal_listener.h \
	src/journal/journal_message.c src/journal/journal_message.h \
	src/journal/journal_rate.c src/journal/journal_rate.h \
	src/journal/journal_reader.c src/journal/journal_reader.h \
	src/journal/journal_remote.c src/journal/journal_remote.h \
	src/journal/journal_run.c src/journal/journal_run.h \
	src/journal/journal_session.c src/journal/journal_session.h \
	src/journal/journal_tasks.c src/journal/journal_tasks.h \
	src/journal/journal_turns.c src/journal/journal_turns.h \
	src/journal/resp/resp.c src/journal/resp/resp.h \
	src/journal/resp/resp_listener.c src/journal/resp/resp_listener.h \
	src/journal/resp/resp_records.c src/journal/resp/resp_records.h \
	src/journal/resp/resp_run.c src/journal/resp/resp_run.h \
	src/journal/resp/resp_scan.c src/journal/resp/resp_scan.h \
	src/journal/resp/resp_session.c src/journal/resp/resp_session.h \
	src/journal/resp/resp_sums.c src/journal/resp/resp_sums.h \
	src/journal/resp/resp_values.c src/journal/resp/resp_values.h \
	src/live/access/live_access.c src/live/access/live_access.h \
	src/live/access/live_accounts.c src/live/access/live_accounts.h \
	src/live/access/live_admission.c src/live/access/live_admission.h \
	src/live/access/live_caller.c src/live/access/live_caller.h \
	src/live/access/live_follow.c src/live/access/live_follow.h \
	src/live/access/live_judge.c src/live/access/live_judge.h \
	src/live/access/live_ruled.c src/live/access/live_ruled.h \
	src/live/live.c src/live/live.h \
	src/live/live_audience.c src/live/live_audience.h \
	src/live/live_audience_private.h \
	src/live/live_catch_up.c src/live/live_catch_up.h \
	src/live/live_endpoint.c src/live/live_endpoint.h \
	src/live/live_horizon.c src/live/live_horizon.h \
	src/live/live_link.c src/live/live_link.h \
	src/live/live_listener.c src/live/live_listener.h \
	src/live/live_namespace.c src/live/live_namespace.h \
	src/live/live_namespace_private.h \
	src/live/live_namespace_queries.c \
	src/live/live_news.c src/live/live_news.h \
	src/live/live_opening.h \
	src/live/live_round.c src/live/live_round.h \
	src/live/live_searcher.c src/live/live_searcher.h \
	src/live/live_searches.c src/live/live_searches.h \
	src/live/live_shares.c src/live/live_shares.h \
	src/live/live_snapshot.c src/live/live_snapshot.h \
	src/live/live_statement.c src/live/live_statement.h \
	src/live/live_statement_table.h \
	src/live/topics/live_found.c src/live/topics/live_found.h \
	src/live/topics/live_index.c src/live/topics/live_index.h \
	src/live/topics/live_key.c src/live/topics/live_key.h \
	src/live/topics/live_page.c src/live/topics/live_page.h \
	src/live/topics/live_question.c src/live/topics/live_question.h \
	src/live/topics/live_records.c src/live/topics/live_records.h \
	src/log/disk_entries.c src/log/disk_entries.h \
	src/log/disk_log.c src/log/disk_log.h \
	src/log/disk_table.c src/log/disk_table.h \
	src/model/account/account.c src/model/account/account.h \
	src/model/account/issuer.c src/model/account/issuer.h \
	src/model/account/jwt.c src/model/account/jwt.h \
	src/model/account/key_set.c src/model/account/key_set.h \
	src/model/account/letter.c src/model/account/letter.h \
	src/model/account/passkey.c src/model/account/passkey.h \
	src/model/account/relying_party.c src/model/account/relying_party.h \
	src/model/content/content.h \
	src/model/content/content_check.c src/model/content/content_check.h \
	src/model/content/content_compile.c \
	src/model/content/content_compiling.h \
	src/model/content/content_format.c src/model/content/content_format.h \
	src/model/content/content_keyword_table.h \
	src/model/content/content_node.h \
	src/model/content/content_place.c src/model/content/content_place.h \
	src/model/content/content_read.c src/model/content/content_read.h \
	src/model/content/content_value.c src/model/content/content_value.h \
	src/model/content/content_violation.c \
	src/model/document/attachment.c src/model/document/attachment.h \
	src/model/document/copies.c src/model/document/copies.h \
	src/model/document/delta.c src/model/document/delta.h \
	src/model/document/document.c src/model/document/document.h \
	src/model/document/draft.c src/model/document/draft.h \
	src/model/document/expiry.c src/model/document/expiry.h \
	src/model/document/item.c src/model/document/item.h \
	src/model/document/merge.c src/model/document/merge.h \
	src/model/document/mutation.c src/model/document/mutation.h \
	src/model/document/stamp.c src/model/document/stamp.h \
	src/model/document/thumbnails.c src/model/document/thumbnails.h \
	src/model/document/upload_metadata.c src/model/document/upload_metadata.h \
	src/model/document/value.c src/model/document/value.h \
	src/model/document/view.c src/model/document/view.h \
	src/model/namespace.c src/model/namespace.h \
	src/model/quotas.c src/model/quotas.h \
	src/model/record_rules.c src/model/record_rules.h \
	src/model/resource_file.c src/model/resource_file.h \
	src/model/rules/rules.h \
	src/model/rules/rules_case.c src/model/rules/rules_case.h \
	src/model/rules/rules_condition.c \
	src/model/rules/rules_decide.c \
	src/model/rules/rules_private.h \
	src/model/rules/rules_read.c \
	src/model/rules/rules_reader.c src/model/rules/rules_reader.h \
	src/model/rules/rules_schema.c src/model/rules/rules_schema.h \
	src/model/rules/rules_sight.c src/model/rules/rules_sight.h \
	src/model/schema/definition.c src/model/schema/definition.h \
	src/model/schema/named_search.c src/model/schema/named_search.h \
	src/model/schema/schema.c src/model/schema/schema.h \
	src/model/schema/schema_class.h \
	src/model/schema/schema_paths.c src/model/schema/schema_paths.h \
	src/model/schema/schema_read.c \
	src/model/schema/schema_reader.c src/model/schema/schema_reader.h \
	src/model/schema/schema_searches.c src/model/schema/schema_searches.h \
	src/model/schema/search.c src/model/schema/search.h \
	src/model/schema/search_plan.c src/model/schema/search_plan.h \
	src/model/schema/search_prefix.c src/model/schema/search_prefix.h \
	src/model/schema/search_rows.c src/model/schema/search_rows.h \
	src/model/schema/search_test.c src/model/schema/search_test.h \
	src/model/schema/shown.c src/model/schema/shown.h \
	src/model/task/cron.c src/model/task/cron.h \
	src/model/task/task.c src/model/task/task.h \
	src/model/task/worker_queues.c src/model/task/worker_queues.h \
	src/model/trace.c src/model/trace.h \
	src/operation/access/access.c src/operation/access/access.h \
	src/operation/access/audited.c src/operation/access/audited.h \
	src/operation/access/caller.c src/operation/access/caller.h \
	src/operation/access/configuration_check.c src/operation/access/configuration_check.h \
	src/operation/access/configurations.c src/operation/access/configurations.h \
	src/operation/access/external_token.c src/operation/access/external_token.h \
	src/operation/access/issuer_keys.c src/operation/access/issuer_keys.h \
	src/operation/access/other_namespace.c src/operation/access/other_namespace.h \
	src/operation/access/stored_caller.c src/operation/access/stored_caller.h \
	src/operation/access/verified_tokens.c src/operation/access/verified_tokens.h \
	src/operation/accounts/account.c \
	src/operation/accounts/account_address.c src/operation/accounts/account_address.h \
	src/operation/accounts/account_change.c src/operation/accounts/account_change.h \
	src/operation/accounts/account_end.c src/operation/accounts/account_end.h \
	src/operation/accounts/account_gate.c src/operation/accounts/account_gate.h \
	src/operation/accounts/account_invitation.c src/operation/accounts/account_invitation.h \
	src/operation/accounts/account_mail.c src/operation/accounts/account_mail.h \
	src/operation/accounts/account_password.c src/operation/accounts/account_password.h \
	src/operation/accounts/account_proof.c src/operation/accounts/account_proof.h \
	src/operation/accounts/account_session.c src/operation/accounts/account_session.h \
	src/operation/accounts/account_ticket.c src/operation/accounts/account_ticket.h \
	src/operation/accounts/account_walk.c src/operation/accounts/account_walk.h \
	src/operation/accounts/accounts.h \
	src/operation/accounts/administration.c \
	src/operation/accounts/confirm.c \
	src/operation/accounts/login.c \
	src/operation/accounts/mailing.c \
	src/operation/accounts/membership.c \
	src/operation/accounts/membership_ticket.c src/operation/accounts/membership_ticket.h \
	src/operation/accounts/register.c \
	src/operation/accounts/reset.c \
	src/operation/accounts/sessions.c \
	src/operation/accounts/ticketend.c \
	src/operation/accounts/whois.c \
	src/operation/administration/explain.c \
	src/operation/administration/files.c \
	src/operation/administration/metrics.c \
	src/operation/administration/ns.c \
	src/operation/administration/of_z.c src/operation/administration/of_z.h \
	src/operation/administration/owntask.c \
	src/operation/administration/rules_warnings.c src/operation/administration/rules_warnings.h \
	src/operation/administration/schema.c \
	src/operation/administration/task.c src/operation/administration/task.h \
	src/operation/administration/tasks.c src/operation/administration/tasks.h \
	src/operation/administration/tasks_queues.c \
	src/operation/answer.c src/operation/answer.h \
	src/operation/attachments/attach.c src/operation/attachments/attach.h \
	src/operation/attachments/attachment.c src/operation/attachments/attachment.h \
	src/operation/attachments/attachment_object.c src/operation/attachments/attachment_object.h \
	src/operation/attachments/attachment_upload.c src/operation/attachments/attachment_upload.h \
	src/operation/attachments/put_files.c src/operation/attachments/put_files.h \
	src/operation/attachments/thumbnail.c \
	src/operation/attachments/thumbnail_key.c src/operation/attachments/thumbnail_key.h \
	src/operation/attachments/thumbnailsweep.c \
	src/operation/attachments/upload.c src/operation/attachments/upload.h \
	src/operation/attempt.c src/operation/attempt.h \
	src/operation/builtin.c src/operation/builtin.h \
	src/operation/call.h \
	src/operation/classes.c src/operation/classes.h \
	src/operation/collections/collection.c src/operation/collections/collection.h \
	src/operation/collections/collection_judged.c src/operation/collections/collection_judged.h \
	src/operation/collections/collection_kept.c src/operation/collections/collection_kept.h \
	src/operation/collections/collection_request.c \
	src/operation/cursor.c src/operation/cursor.h \
	src/operation/documents/build.c src/operation/documents/build.h \
	src/operation/documents/change.c src/operation/documents/change.h \
	src/operation/documents/changemany.c \
	src/operation/documents/copy.c \
	src/operation/documents/find.c src/operation/documents/find.h \
	src/operation/documents/find_marks.c src/operation/documents/find_marks.h \
	src/operation/documents/find_search.c src/operation/documents/find_search.h \
	src/operation/documents/find_totals.c src/operation/documents/find_totals.h \
	src/operation/documents/find_where.c src/operation/documents/find_where.h \
	src/operation/documents/get.c \
	src/operation/documents/list.c \
	src/operation/documents/put.c src/operation/documents/put.h \
	src/operation/documents/resource.c src/operation/documents/resource.h \
	src/operation/documents/search.c \
	src/operation/documents/volumes.c \
	src/operation/execute.c src/operation/execute.h \
	src/operation/files.c src/operation/files.h \
	src/operation/idempotency.c src/operation/idempotency.h \
	src/operation/issuers/issuers.c \
	src/operation/judge/filters.c src/operation/judge/filters.h \
	src/operation/judge/judge.c src/operation/judge/judge.h \
	src/operation/judge/judge_losses.c src/operation/judge/judge_losses.h \
	src/operation/judge/judge_matches.c src/operation/judge/judge_matches.h \
	src/operation/judge/judged_page.c src/operation/judge/judged_page.h \
	src/operation/judge/matches.c src/operation/judge/matches.h \
	src/operation/judge/sight.c src/operation/judge/sight.h \
	src/operation/keyed_digest.c src/operation/keyed_digest.h \
	src/operation/long_poll.c src/operation/long_poll.h \
	src/operation/module/module.c src/operation/module/module.h \
	src/operation/module/module_convert.h \
	src/operation/module/module_document.h \
	src/operation/module/module_filter.c src/operation/module/module_filter.h \
	src/operation/module/module_try.c src/operation/module/module_try.h \
	src/operation/old_reads.c src/operation/old_reads.h \
	src/operation/openapi/openapi.c \
	src/operation/operation.h \
	src/operation/passkeys/passkey.c \
	src/operation/passkeys/passkey_challenge.c src/operation/passkeys/passkey_challenge.h \
	src/operation/passkeys/passkey_credential.c src/operation/passkeys/passkey_credential.h \
	src/operation/passkeys/passkey_list.c src/operation/passkeys/passkey_list.h \
	src/operation/push/push.c \
	src/operation/push/push_send.c src/operation/push/push_send.h \
	src/operation/push/subs.c \
	src/operation/push/webpush.c src/operation/push/webpush.h \
	src/operation/quota.c src/operation/quota.h \
	src/operation/reader.c src/operation/reader.h \
	src/operation/record_changes.c src/operation/record_changes.h \
	src/operation/records/record.c src/operation/records/record.h \
	src/operation/records/record_hosts.c src/operation/records/record_hosts.h \
	src/operation/records/record_read.c \
	src/operation/records/record_right.c src/operation/records/record_right.h \
	src/operation/registry.c src/operation/registry.h \
	src/operation/reply.c src/operation/reply.h \
	src/operation/settings_check.c src/operation/settings_check.h \
	src/operation/signed_text.c src/operation/signed_text.h \
	src/operation/sync/client_build.c src/operation/sync/client_build.h \
	src/operation/sync/client_copies.c src/operation/sync/client_copies.h \
	src/operation/sync/sync.c src/operation/sync/sync.h \
	src/operation/sync/versions_after.c src/operation/sync/versions_after.h \
	src/operation/tasks/task_attempt.c src/operation/tasks/task_attempt.h \
	src/operation/tasks/task_caller.c src/operation/tasks/task_caller.h \
	src/operation/tasks/task_endpoint.c src/operation/tasks/task_endpoint.h \
	src/operation/tasks/task_external.c src/operation/tasks/task_external.h \
	src/operation/tasks/task_issuers.c src/operation/tasks/task_issuers.h \
	src/operation/tasks/task_lost.c src/operation/tasks/task_lost.h \
	src/operation/tasks/task_owner.c src/operation/tasks/task_owner.h \
	src/operation/tasks/task_request.c src/operation/tasks/task_request.h \
	src/operation/tasks/task_result.c src/operation/tasks/task_result.h \
	src/operation/tasks/task_retry.c src/operation/tasks/task_retry.h \
	src/operation/tasks/task_run.c src/operation/tasks/task_run.h \
	src/operation/tasks/task_scan.c src/operation/tasks/task_scan.h \
	src/operation/tasks/task_sweep.c src/operation/tasks/task_sweep.h \
	src/operation/tasks/task_wakeup.c src/operation/tasks/task_wakeup.h \
	src/operation/worker_context.h \
	src/operation/workers/claim.c src/operation/workers/claim.h \
	src/operation/workers/done.c \
	src/operation/workers/spool.c \
	src/operation/workers/taking.c src/operation/workers/taking.h \
	src/queue/agenda.c src/queue/agenda.h \
	src/queue/alert.c src/queue/alert.h \
	src/queue/endpoint.c src/queue/endpoint.h \
	src/queue/form.c src/queue/form.h \
	src/queue/latency_estimate.c src/queue/latency_estimate.h \
	src/queue/manager.c src/queue/manager.h \
	src/queue/manager_namespaces.c \
	src/queue/manager_private.h \
	src/queue/registry.c src/queue/registry.h \
	src/queue/runner.c src/queue/runner.h \
	src/records/order.c src/records/order.h \
	src/records/pieces.c src/records/pieces.h \
	src/records/records.c src/records/records.h \
	src/records/records_change.c \
	src/records/records_changes.c src/records/records_changes.h \
	src/records/records_check.c \
	src/records/records_content.c \
	src/records/records_fetch.c src/records/records_fetch.h \
	src/records/records_get.c \
	src/records/records_host.c src/records/records_host.h \
	src/records/records_memory.c \
	src/records/records_private.h \
	src/records/records_rekey.c src/records/records_rekey.h \
	src/records/records_ring.c \
	src/records/records_road.c src/records/records_road.h \
	src/records/records_room.c \
	src/records/records_save.c src/records/records_save.h \
	src/records/records_saved.c src/records/records_saved.h \
	src/records/records_seal.c src/records/records_seal.h \
	src/records/records_share.c \
	src/records/records_spaces.c \
	src/records/records_state.c src/records/records_state.h \
	src/records/records_table.c \
	src/records/records_unsaved.c \
	src/records/records_use.c src/records/records_use.h \
	src/records/undo.c src/records/undo.h \
	src/seal/random_stock.c src/seal/random_stock.h \
	src/seal/sealed_feed.c src/seal/sealed_feed.h \
	src/seal/sealed_file.c src/seal/sealed_file.h \
	src/seal/sealed_frames.c src/seal/sealed_frames.h \
	src/seal/sealed_stream.c src/seal/sealed_stream.h \
	src/seal/sealing.c src/seal/sealing.h \
	src/seal/site_key.c src/seal/site_key.h \
	src/seal/siv.c \
	src/seal/siv_private.h \
	src/segment/beats.c src/segment/beats.h \
	src/segment/board.c src/segment/board.h \
	src/segment/counts/activity.c src/segment/counts/activity.h \
	src/segment/counts/backlog.c src/segment/counts/backlog.h \
	src/segment/counts/hashers.c src/segment/counts/hashers.h \
	src/segment/counts/limiter.c src/segment/counts/limiter.h \
	src/segment/counts/long_requests.c src/segment/counts/long_requests.h \
	src/segment/counts/losses.c src/segment/counts/losses.h \
	src/segment/counts/metrics.c src/segment/counts/metrics.h \
	src/segment/counts/named_counts.c src/segment/counts/named_counts.h \
	src/segment/counts/purge_counts.c src/segment/counts/purge_counts.h \
	src/segment/counts/refusals.c src/segment/counts/refusals.h \
	src/segment/counts/request_counts.c src/segment/counts/request_counts.h \
	src/segment/counts/shares.c src/segment/counts/shares.h \
	src/segment/counts/stored.c src/segment/counts/stored.h \
	src/segment/counts/task_counts.c src/segment/counts/task_counts.h \
	src/segment/counts/tickets.c src/segment/counts/tickets.h \
	src/segment/counts/waits.c src/segment/counts/waits.h \
	src/segment/feed.c src/segment/feed.h \
	src/segment/lineage.c src/segment/lineage.h \
	src/segment/namespaces.c src/segment/namespaces.h \
	src/segment/notification.c src/segment/notification.h \
	src/segment/processes.c src/segment/processes.h \
	src/segment/public_answers.c src/segment/public_answers.h \
	src/segment/public_view.c src/segment/public_view.h \
	src/segment/segment.c src/segment/segment.h \
	src/segment/segment_open.c src/segment/segment_open.h \
	src/segment/segment_view.c src/segment/segment_view.h \
	src/segment/shared_cache.c src/segment/shared_cache.h \
	src/segment/slots.c src/segment/slots.h \
	src/segment/warnings.c src/segment/warnings.h \
	src/segment/writer_queue.c src/segment/writer_queue.h \
	src/serve/collector.c src/serve/collector.h \
	src/serve/decrypter.c src/serve/decrypter.h \
	src/serve/handover.c src/serve/handover.h \
	src/serve/heritage.h \
	src/serve/home.c src/serve/home.h \
	src/serve/in_flight.c src/serve/in_flight.h \
	src/serve/instance.c src/serve/instance.h \
	src/serve/lease.c src/serve/lease.h \
	src/serve/lineage_file.c src/serve/lineage_file.h \
	src/serve/master.c src/serve/master.h \
	src/serve/memory.c src/serve/memory.h \
	src/serve/metrics/host_metrics.c src/serve/metrics/host_metrics.h \
	src/serve/metrics/latency.c src/serve/metrics/latency.h \
	src/serve/metrics/metrics_exporter.c src/serve/metrics/metrics_exporter.h \
	src/serve/metrics/nginx_counts.c src/serve/metrics/nginx_counts.h \
	src/serve/metrics/otlp_metrics.c src/serve/metrics/otlp_metrics.h \
	src/serve/metrics/probe.c src/serve/metrics/probe.h \
	src/serve/metrics/sampler.c src/serve/metrics/sampler.h \
	src/serve/metrics/task_metrics.c src/serve/metrics/task_metrics.h \
	src/serve/object_pipe.c src/serve/object_pipe.h \
	src/serve/relay.c src/serve/relay.h \
	src/serve/remote_wakeups.c src/serve/remote_wakeups.h \
	src/serve/route.c src/serve/route.h \
	src/serve/slow.c src/serve/slow.h \
	src/serve/start_check.c src/serve/start_check.h \
	src/serve/supervisor.c src/serve/supervisor.h \
	src/serve/throttle.c src/serve/throttle.h \
	src/serve/tracing/span_exporter.c src/serve/tracing/span_exporter.h \
	src/serve/tracing/tracing.c src/serve/tracing/tracing.h \
	src/serve/upkeep/beat_writer.c src/serve/upkeep/beat_writer.h \
	src/serve/upkeep/cleaner.c src/serve/upkeep/cleaner.h \
	src/serve/upkeep/keeper.c src/serve/upkeep/keeper.h \
	src/serve/upkeep/keeper_databases.c src/serve/upkeep/keeper_databases.h \
	src/serve/upkeep/mover.c src/serve/upkeep/mover.h \
	src/serve/upkeep/mover_file.c src/serve/upkeep/mover_file.h \
	src/serve/worker.c src/serve/worker.h \
	src/spool/spool_crc.c src/spool/spool_crc.h \
	src/store/blobs/store_blobs.c src/store/blobs/store_blobs.h \
	src/store/blobs/store_thumbnails.c src/store/blobs/store_thumbnails.h \
	src/store/changes_table.h \
	src/store/collections/store_collection.h \
	src/store/collections/store_copies.c src/store/collections/store_copies.h \
	src/store/collections/store_list.c src/store/collections/store_list.h \
	src/store/collections/store_members.c \
	src/store/collections/store_search.c src/store/collections/store_search.h \
	src/store/collections/store_sight.c src/store/collections/store_sight.h \
	src/store/collections/store_stream.c src/store/collections/store_stream.h \
	src/store/collections/store_subscriptions.c src/store/collections/store_subscriptions.h \
	src/store/commit_table.h \
	src/store/data_keys.c src/store/data_keys.h \
	src/store/documents/commit_part.c src/store/documents/commit_part.h \
	src/store/documents/commit_side_tables.c \
	src/store/documents/commit_verdict.c src/store/documents/commit_verdict.h \
	src/store/documents/resealing.c src/store/documents/resealing.h \
	src/store/documents/reservations.c src/store/documents/reservations.h \
	src/store/documents/rewriting.c src/store/documents/rewriting.h \
	src/store/documents/schema_cache.c src/store/documents/schema_cache.h \
	src/store/documents/side_table.c src/store/documents/side_table.h \
	src/store/documents/store_commit.c src/store/documents/store_commit.h \
	src/store/documents/store_commit_documents.c \
	src/store/documents/store_idempotency.c src/store/documents/store_idempotency.h \
	src/store/documents/store_load.c src/store/documents/store_load.h \
	src/store/documents/store_owners.c src/store/documents/store_owners.h \
	src/store/documents/store_schema.c src/store/documents/store_schema.h \
	src/store/documents/store_shown.c src/store/documents/store_shown.h \
	src/store/proof.c src/store/proof.h \
	src/store/refusal.c src/store/refusal.h \
	src/store/refusal_table.h \
	src/store/session.c src/store/session.h \
	src/store/statements.c src/store/statements.h \
	src/store/statements_blobs_table.h \
	src/store/statements_collections_table.h \
	src/store/statements_documents_table.h \
	src/store/statements_table.h \
	src/store/statements_tasks_table.h \
	src/store/statements_thumbnails_table.h \
	src/store/store.c src/store/store.h \
	src/store/store_cache.h \
	src/store/store_cache_table.h \
	src/store/store_long.c src/store/store_long.h \
	src/store/store_private.h \
	src/store/store_reading.h \
	src/store/store_run.c src/store/store_run.h \
	src/store/store_sealing.c src/store/store_sealing.h \
	src/store/store_session.h \
	src/store/stored_id.c src/store/stored_id.h \
	src/store/stored_id_table.h \
	src/store/tasks/store_claimed.c src/store/tasks/store_claimed.h \
	src/store/tasks/store_cron.c src/store/tasks/store_cron.h \
	src/store/tasks/store_spool.c src/store/tasks/store_spool.h \
	src/store/tasks/store_take.c src/store/tasks/store_take.h \
	src/store/tasks/store_task.c src/store/tasks/store_task.h \
	src/store/tasks/store_tasks.c src/store/tasks/store_tasks.h \
	src/store/tasks/task_rows.c src/store/tasks/task_rows.h
