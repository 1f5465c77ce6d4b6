# Programs of the system tests, which run on a real PostgreSQL (STAMPD_TEST_CONNINFO); pytest runs them.
SYSTEM_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/test/system -DSTAMPD_TEST_SQL='"$(abs_top_srcdir)/sql"'
SCRATCH_SOURCES = test/system/scratch.c test/system/scratch.h
check_PROGRAMS += test/system/torture test/system/cron_lines
if HAVE_CMOCKA
check_PROGRAMS += test/system/check_pg test/system/check_store test/system/check_once
endif
test_system_check_pg_SOURCES = test/system/check_pg.c $(SCRATCH_SOURCES)
test_system_check_pg_CPPFLAGS = $(SYSTEM_CPPFLAGS)
test_system_check_pg_LDADD = $(UNIT_LDADD)
test_system_check_store_SOURCES = test/system/check_store.c $(SCRATCH_SOURCES)
test_system_check_store_CPPFLAGS = $(SYSTEM_CPPFLAGS)
test_system_check_store_LDADD = $(UNIT_LDADD)
test_system_check_once_SOURCES = test/system/check_once.c $(SCRATCH_SOURCES)
test_system_check_once_CPPFLAGS = $(SYSTEM_CPPFLAGS)
test_system_check_once_LDADD = $(UNIT_LDADD)
test_system_torture_SOURCES = test/system/torture.c test/system/torture.h test/system/torture_client.c \
	test/system/torture_keeper.c test/system/ledger.c test/system/ledger.h $(SCRATCH_SOURCES)
test_system_torture_CPPFLAGS = $(SYSTEM_CPPFLAGS)
test_system_torture_LDADD = libstampd.a $(LIBS_ALL)
test_system_cron_lines_SOURCES = test/system/cron_lines.c
test_system_cron_lines_LDADD = libstampd.a $(LIBS_ALL)
