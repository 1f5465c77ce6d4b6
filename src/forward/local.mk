# stamp-forward: sends the records of a spool to the server.
sbin_PROGRAMS += src/stamp-forward
src_stamp_forward_SOURCES = src/stamp-forward.c src/forward/forward_settings.c src/forward/forward_settings.h \
	src/forward/forward_settings_table.h src/forward/forwarder.c src/forward/forwarder.h src/forward/lane.c src/forward/lane.h
src_stamp_forward_LDADD = libstampd-spool.a libstampd.a $(LIBS_ALL)
