# Unit tests (cmocka): test/unit/test_<module>.c, one line each here.
if HAVE_CMOCKA
UNIT_TESTS += test/unit/test_base
UNIT_TESTS += test/unit/test_stamp
UNIT_TESTS += test/unit/test_cache
check_PROGRAMS += $(UNIT_TESTS)
endif
test_unit_test_base_SOURCES = test/unit/test_base.c
test_unit_test_base_LDADD = $(UNIT_LDADD)
test_unit_test_stamp_SOURCES = test/unit/test_stamp.c
test_unit_test_stamp_LDADD = $(UNIT_LDADD)
test_unit_test_cache_SOURCES = test/unit/test_cache.c
test_unit_test_cache_LDADD = $(UNIT_LDADD)
