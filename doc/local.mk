# Manual pages, documents, the sample of the settings and the systemd unit.
dist_man_MANS = doc/stampctl.1 doc/stampd.conf.5 doc/stampd.8 doc/stamp-queue.8 doc/stamp-journal.8 doc/stamp-forward.8 doc/stamp-spool.1 doc/stampd_spool.3 doc/stampd_journal.3
if THUMBNAILS
dist_man_MANS += doc/stamp-thumbnail.8
endif

# The installed pages name the address of bug reports when the build has one (configure --with-bug-address).
install-data-hook: report-bugs
.PHONY: report-bugs
report-bugs:
	@test -z '$(BUG_ADDRESS)' || for page in $(dist_man_MANS); do \
		name=$$(basename "$$page") && section=$${name##*.} && file="$(DESTDIR)$(mandir)/man$$section/$$name" && \
		sed 's|^Report bugs where you got stampd from\.$$|Report bugs to $(BUG_ADDRESS).|' "$$file" >"$$file.new" && \
		mv "$$file.new" "$$file" || exit 1; \
	done

# Installed as they stand here, so that their links lead somewhere: README.md, and doc/ with a folder for each kind.
nobase_dist_doc_DATA = LICENSE README.md NEWS.md SECURITY.md \
	doc/README.md \
	doc/bench/latency.svg \
	doc/bench/ratios.svg \
	doc/explanation/arguments.md \
	doc/explanation/commit.md \
	doc/explanation/comparison.md \
	doc/explanation/costs.md \
	doc/explanation/designs.md \
	doc/explanation/encryption.md \
	doc/explanation/freshness.md \
	doc/explanation/growth.md \
	doc/explanation/not-for-you-if.md \
	doc/explanation/performance.md \
	doc/explanation/records-on-several-hosts.md \
	doc/explanation/reliability.md \
	doc/explanation/security.md \
	doc/explanation/shared-segment.md \
	doc/explanation/sight.md \
	doc/explanation/unique-in-all-namespaces.md \
	doc/explanation/why-nothing-is-missed.md \
	doc/explanation/why-tasks-happen-once.md \
	doc/how-to/administer-in-a-browser.md \
	doc/how-to/administer-tasks.md \
	doc/how-to/back-up-and-restore.md \
	doc/how-to/build-a-web-application.md \
	doc/how-to/control-access.md \
	doc/how-to/follow-changes-in-a-browser.md \
	doc/how-to/from-one-machine-to-three.md \
	doc/how-to/hand-over-requests-durably.md \
	doc/how-to/keep-a-collection.md \
	doc/how-to/keep-short-lived-values.md \
	doc/how-to/model-data.md \
	doc/how-to/run-in-containers.md \
	doc/how-to/search-in-sql.md \
	doc/how-to/trace-requests.md \
	doc/how-to/translate-queries.md \
	doc/how-to/move-a-namespace.md \
	doc/how-to/move-your-data-in.md \
	doc/how-to/operating.md \
	doc/how-to/release.md \
	doc/how-to/put-up-a-sign-in-form.md \
	doc/how-to/sign-in-by-passkey.md \
	doc/how-to/task-does-not-run.md \
	doc/how-to/use-python.md \
	doc/how-to/spread-records-over-hosts.md \
	doc/how-to/use-records-from-a-redis-client.md \
	doc/how-to/use-several-clusters.md \
	doc/how-to/validate-contents.md \
	doc/how-to/wake-closed-browsers.md \
	doc/how-to/write-a-client.md \
	doc/how-to/write-a-mobile-application.md \
	doc/how-to/write-a-module.md \
	doc/images/console-document.png \
	doc/images/console-documents.png \
	doc/images/console-namespaces.png \
	doc/images/console-queues.png \
	doc/images/console-rules.png \
	doc/images/console-schema.png \
	doc/images/console-server.png \
	doc/images/sample.png \
	doc/images/sample-phone.png \
	doc/reference/accounts.md \
	doc/reference/architecture.md \
	doc/reference/archives.md \
	doc/reference/attachments.md \
	doc/reference/audit.md \
	doc/reference/collections.md \
	doc/reference/copies.md \
	doc/reference/faults.md \
	doc/reference/glossary.md \
	doc/reference/import-couchdb.md \
	doc/reference/import-csv.md \
	doc/reference/import-firestore.md \
	doc/reference/journal-protocol.md \
	doc/reference/live.md \
	doc/reference/log-messages.md \
	doc/reference/modules.md \
	doc/reference/object-stores.md \
	doc/reference/passkeys.md \
	doc/reference/protocol.md \
	doc/reference/push.md \
	doc/reference/quotas.md \
	doc/reference/records.md \
	doc/reference/resources.md \
	doc/reference/resp.md \
	doc/reference/rules.md \
	doc/reference/schema.md \
	doc/reference/searches.md \
	doc/reference/spool.md \
	doc/reference/subscriptions.md \
	doc/reference/tasks.md \
	doc/reference/validation.md \
	doc/reference/workers.md \
	doc/tutorial/list.py \
	doc/tutorial/queue.md \
	doc/tutorial/rate-limiter.md \
	doc/tutorial/shopping-list.md \
	doc/tutorial/spool.md \
	doc/tutorial/todo.md \
	doc/tutorial/worker.md
EXTRA_DIST += HACKING.md src/document/README.md src/live/README.md src/operation/README.md \
	src/segment/README.md src/store/README.md test/unit/README.md

# A module, described and built: modules.md
exampledir = $(docdir)/doc/examples/asso
dist_example_DATA = doc/examples/asso/Makefile doc/examples/asso/README.md doc/examples/asso/asso.c

# External workers: workers.md
workerexampledir = $(docdir)/doc/examples/worker
dist_workerexample_SCRIPTS = doc/examples/worker/worker.py doc/examples/worker/worker.sh

# A page on the client library: the tutorial todo.md
todoexampledir = $(docdir)/doc/examples/todo
dist_todoexample_DATA = doc/examples/todo/rules.json doc/examples/todo/todo.html doc/examples/todo/todo.js

# A client, described and built: write-a-client.md
exampleclientdir = $(docdir)/doc/examples/client
dist_exampleclient_DATA = doc/examples/client/README.md doc/examples/client/stampd_client.py

# For Prometheus and Grafana: operating.md
monitoringexampledir = $(docdir)/doc/examples/monitoring
dist_monitoringexample_DATA = doc/examples/monitoring/alerts.yml doc/examples/monitoring/grafana.json

# The client library in React and in Svelte
exampleframeworksdir = $(docdir)/doc/examples/frameworks
dist_exampleframeworks_DATA = doc/examples/frameworks/README.md doc/examples/frameworks/List.svelte doc/examples/frameworks/build.js \
	doc/examples/frameworks/list.js doc/examples/frameworks/list.jsx doc/examples/frameworks/package.json \
	doc/examples/frameworks/package-lock.json doc/examples/frameworks/stores.js

# A generated client
exampleopenapidir = $(docdir)/doc/examples/openapi
dist_exampleopenapi_DATA = doc/examples/openapi/README.md doc/examples/openapi/package.json doc/examples/openapi/package-lock.json \
	doc/examples/openapi/notes.ts doc/examples/openapi/tsconfig.json

# Replication of RxDB
examplerxdbdir = $(docdir)/doc/examples/rxdb
dist_examplerxdb_DATA = doc/examples/rxdb/README.md doc/examples/rxdb/package.json doc/examples/rxdb/package-lock.json \
	doc/examples/rxdb/replication.js

dist_pkgdata_DATA = doc/stampd.conf.sample scripts/look.sql
dist_pkgdata_SCRIPTS = scripts/run-due-tasks

if INSTALL_UNIT
systemdsystemunit_DATA = doc/stampd.service doc/stamp-forward.service doc/stamp-journal.service doc/stamp-queue.service doc/stampd-backup@.service doc/stampd-schema.service
endif
CLEANFILES += doc/stamp-forward.service doc/stamp-journal.service doc/stampd.service doc/stamp-queue.service doc/stampd-backup@.service doc/stampd-schema.service
EXTRA_DIST += doc/stamp-forward.service.in doc/stamp-journal.service.in doc/stampd.service.in doc/stamp-queue.service.in doc/stampd-backup@.service.in doc/stampd-schema.service.in
doc/stampd.service: doc/stampd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) doc && sed -e 's,[@]sbindir[@],$(sbindir),g' -e 's,[@]sysconfdir[@],$(sysconfdir),g' \
		$(srcdir)/doc/stampd.service.in >$@.new && mv $@.new $@
doc/stamp-forward.service: doc/stamp-forward.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) doc && sed -e 's,[@]sbindir[@],$(sbindir),g' -e 's,[@]sysconfdir[@],$(sysconfdir),g' \
		$(srcdir)/doc/stamp-forward.service.in >$@.new && mv $@.new $@
doc/stamp-journal.service: doc/stamp-journal.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) doc && sed -e 's,[@]sbindir[@],$(sbindir),g' -e 's,[@]sysconfdir[@],$(sysconfdir),g' \
		$(srcdir)/doc/stamp-journal.service.in >$@.new && mv $@.new $@
doc/stamp-queue.service: doc/stamp-queue.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) doc && sed -e 's,[@]sbindir[@],$(sbindir),g' -e 's,[@]sysconfdir[@],$(sysconfdir),g' \
		$(srcdir)/doc/stamp-queue.service.in >$@.new && mv $@.new $@
doc/stampd-backup@.service: doc/stampd-backup@.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) doc && sed -e 's,[@]bindir[@],$(bindir),g' -e 's,[@]sysconfdir[@],$(sysconfdir),g' \
		'$(srcdir)/doc/stampd-backup@.service.in' >$@.new && mv $@.new $@
doc/stampd-schema.service: doc/stampd-schema.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) doc && sed -e 's,[@]bindir[@],$(bindir),g' -e 's,[@]sysconfdir[@],$(sysconfdir),g' \
		$(srcdir)/doc/stampd-schema.service.in >$@.new && mv $@.new $@

# The sample says what the settings table says, the page of faults what theirs does; check-settings fails when not.
.PHONY: update-sample update-faults update-costs
update-sample:
	$(srcdir)/scripts/check-settings --write-sample $(srcdir)
update-faults:
	$(srcdir)/scripts/check-settings --write-faults $(srcdir)
# What a request can cost, on the security page; test_costs fails when it is not what the operations and settings are.
update-costs: test/unit/test_costs
	test/unit/test_costs --write
