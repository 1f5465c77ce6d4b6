# libstampd-journal, which needs the C library only.  The archive and the shared library have the same objects.
lib_LIBRARIES += libstampd-journal.a
libstampd_journal_a_CFLAGS = $(AM_CFLAGS) -fPIC
libstampd_journal_a_SOURCES = src/journal_client/stampd_journal.h src/journal_client/journal_session.c \
	src/journal_client/journal_wire.c src/journal_client/journal_wire.h
include_HEADERS += src/journal_client/stampd_journal.h
pkgconfig_DATA += src/journal_client/stampd-journal.pc
EXTRA_DIST += src/journal_client/stampd-journal.pc.in src/journal_client/journal.symbols
CLEANFILES += src/journal_client/stampd-journal.pc $(JOURNAL_SHARED)

JOURNAL_SHARED = libstampd-journal.so.0
all-local: $(JOURNAL_SHARED)
$(JOURNAL_SHARED): libstampd-journal.a $(srcdir)/src/journal_client/journal.symbols
	$(AM_V_CCLD)$(CC) $(CFLAGS) $(SANITIZE_CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$@ -Wl,-z,relro -Wl,-z,now \
		-Wl,--version-script=$(srcdir)/src/journal_client/journal.symbols -Wl,--whole-archive libstampd-journal.a -Wl,--no-whole-archive -o $@
install-exec-hook: install-journal
uninstall-hook: uninstall-journal
.PHONY: install-journal uninstall-journal
install-journal: $(JOURNAL_SHARED)
	$(MKDIR_P) "$(DESTDIR)$(libdir)" && $(INSTALL_PROGRAM) $(JOURNAL_SHARED) "$(DESTDIR)$(libdir)/$(JOURNAL_SHARED)" && \
		cd "$(DESTDIR)$(libdir)" && rm -f libstampd-journal.so && $(LN_S) $(JOURNAL_SHARED) libstampd-journal.so
uninstall-journal:
	rm -f "$(DESTDIR)$(libdir)/$(JOURNAL_SHARED)" "$(DESTDIR)$(libdir)/libstampd-journal.so"

src/journal_client/stampd-journal.pc: src/journal_client/stampd-journal.pc.in Makefile
	$(AM_V_GEN)$(MKDIR_P) src/journal_client && sed -e 's,[@]prefix@,$(prefix),g' -e 's,[@]includedir@,$(includedir),g' \
		-e 's,[@]libdir@,$(libdir),g' -e 's,[@]VERSION@,$(VERSION),g' $(srcdir)/src/journal_client/stampd-journal.pc.in >$@.new && mv $@.new $@
