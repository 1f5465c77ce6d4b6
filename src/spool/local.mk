# libstampd-spool, which needs the C library only, and stamp-spool.  The archive and the shared library have the same objects.
lib_LIBRARIES = libstampd-spool.a
libstampd_spool_a_CFLAGS = $(AM_CFLAGS) -fPIC
libstampd_spool_a_SOURCES = src/spool/stampd_spool.h src/spool/spool_private.h \
	src/spool/spool_board.c src/spool/spool_crc.c src/spool/spool_crc.h src/spool/spool_dead.c src/spool/spool_files.c \
	src/spool/spool_folder.c src/spool/spool_position.c src/spool/spool_put.c src/spool/spool_read.c \
	src/spool/spool_record.c src/spool/spool_record.h src/spool/spool_recovery.c src/spool/spool_segment.c \
	src/spool/spool_shared.c src/spool/spool_step.c src/spool/spool_step.h src/spool/spool_wait.c
include_HEADERS += src/spool/stampd_spool.h
pkgconfig_DATA += src/spool/stampd-spool.pc
EXTRA_DIST += src/spool/stampd-spool.pc.in src/spool/spool.symbols
CLEANFILES += src/spool/stampd-spool.pc $(SPOOL_SHARED)

bin_PROGRAMS += src/stamp-spool
src_stamp_spool_SOURCES = src/stamp-spool.c src/line_input.c src/line_input.h src/spool_print.c src/spool_print.h
src_stamp_spool_LDADD = libstampd-spool.a

SPOOL_SHARED = libstampd-spool.so.0
all-local: $(SPOOL_SHARED)
$(SPOOL_SHARED): libstampd-spool.a $(srcdir)/src/spool/spool.symbols
	$(AM_V_CCLD)$(CC) $(CFLAGS) $(SANITIZE_CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$@ -Wl,-z,relro -Wl,-z,now \
		-Wl,--version-script=$(srcdir)/src/spool/spool.symbols -Wl,--whole-archive libstampd-spool.a -Wl,--no-whole-archive -o $@
install-exec-hook: install-spool
uninstall-hook: uninstall-spool
.PHONY: install-spool uninstall-spool
install-spool: $(SPOOL_SHARED)
	$(MKDIR_P) "$(DESTDIR)$(libdir)" && $(INSTALL_PROGRAM) $(SPOOL_SHARED) "$(DESTDIR)$(libdir)/$(SPOOL_SHARED)" && \
		cd "$(DESTDIR)$(libdir)" && rm -f libstampd-spool.so && $(LN_S) $(SPOOL_SHARED) libstampd-spool.so
uninstall-spool:
	rm -f "$(DESTDIR)$(libdir)/$(SPOOL_SHARED)" "$(DESTDIR)$(libdir)/libstampd-spool.so"

src/spool/stampd-spool.pc: src/spool/stampd-spool.pc.in Makefile
	$(AM_V_GEN)$(MKDIR_P) src/spool && sed -e 's,[@]prefix@,$(prefix),g' -e 's,[@]includedir@,$(includedir),g' \
		-e 's,[@]libdir@,$(libdir),g' -e 's,[@]VERSION@,$(VERSION),g' $(srcdir)/src/spool/stampd-spool.pc.in >$@.new && mv $@.new $@
