# Manual pages, documents, the sample of the settings and the systemd unit.
dist_man_MANS = doc/stampctl.1 doc/stampd.conf.5 doc/stampd.8 doc/stamp-queue.8

dist_doc_DATA = LICENSE README.md NEWS.md SECURITY.md \
	doc/architecture.md doc/arguments.md doc/commit.md doc/faults.md doc/freshness.md doc/glossary.md doc/modules.md doc/operating.md \
	doc/collections.md doc/copies.md doc/live.md doc/performance.md doc/protocol.md doc/push.md doc/reliability.md doc/schema.md \
	doc/subscriptions.md doc/tasks.md
EXTRA_DIST += HACKING.md src/segment/README.md

# A module, told and built: modules.md
exampledir = $(docdir)/examples/asso
dist_example_DATA = doc/examples/asso/Makefile doc/examples/asso/README.md doc/examples/asso/asso.c

dist_pkgdata_DATA = doc/stampd.conf.sample
dist_pkgdata_SCRIPTS = scripts/run-due-tasks

if INSTALL_UNIT
systemdsystemunit_DATA = doc/stampd.service doc/stamp-queue.service
endif
CLEANFILES += doc/stampd.service doc/stamp-queue.service
EXTRA_DIST += doc/stampd.service.in doc/stamp-queue.service.in
doc/stampd.service: doc/stampd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) doc && sed -e 's,[@]sbindir[@],$(sbindir),g' -e 's,[@]sysconfdir[@],$(sysconfdir),g' \
		$(srcdir)/doc/stampd.service.in >$@.new && mv $@.new $@
doc/stamp-queue.service: doc/stamp-queue.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) doc && sed -e 's,[@]sbindir[@],$(sbindir),g' -e 's,[@]sysconfdir[@],$(sysconfdir),g' \
		$(srcdir)/doc/stamp-queue.service.in >$@.new && mv $@.new $@

# The sample says what the settings table says, the page of faults what theirs does; check-settings fails when not.
.PHONY: update-sample update-faults
update-sample:
	$(srcdir)/scripts/check-settings --write-sample $(srcdir)
update-faults:
	$(srcdir)/scripts/check-settings --write-faults $(srcdir)
