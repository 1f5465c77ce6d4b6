# Unit tests (cmocka): test/unit/test_<module>.c, one line each here.
if HAVE_CMOCKA
UNIT_TESTS += test/unit/test_base
UNIT_TESTS += test/unit/test_stamp
UNIT_TESTS += test/unit/test_cache
UNIT_TESTS += test/unit/test_cron
UNIT_TESTS += test/unit/test_schedule
UNIT_TESTS += test/unit/test_json
UNIT_TESTS += test/unit/test_json_string
UNIT_TESTS += test/unit/test_document
UNIT_TESTS += test/unit/test_delta
UNIT_TESTS += test/unit/test_fcgi
UNIT_TESTS += test/unit/test_transaction
UNIT_TESTS += test/unit/test_operation
UNIT_TESTS += test/unit/test_once
UNIT_TESTS += test/unit/test_draft
UNIT_TESTS += test/unit/test_module
UNIT_TESTS += test/unit/test_module_values
UNIT_TESTS += test/unit/test_arguments
UNIT_TESTS += test/unit/test_segment
UNIT_TESTS += test/unit/test_stamps
UNIT_TESTS += test/unit/test_instance
UNIT_TESTS += test/unit/test_pg
UNIT_TESTS += test/unit/test_history
UNIT_TESTS += test/unit/test_control
UNIT_TESTS += test/unit/test_page
UNIT_TESTS += test/unit/test_response
UNIT_TESTS += test/unit/test_request
UNIT_TESTS += test/unit/test_condition
UNIT_TESTS += test/unit/test_multipart
check_PROGRAMS += $(UNIT_TESTS)
# Run by the system tests: it needs a PostgreSQL server.
check_PROGRAMS += test/system/session_test
endif
test_unit_test_base_SOURCES = test/unit/test_base.c
test_unit_test_base_LDADD = $(UNIT_LDADD)
test_unit_test_base_CPPFLAGS = $(AM_CPPFLAGS) -DSTAMPD_SAMPLE='"$(abs_top_srcdir)/doc/stampd.conf.sample"'
test_unit_test_stamp_SOURCES = test/unit/test_stamp.c
test_unit_test_stamp_LDADD = $(UNIT_LDADD)
test_unit_test_cache_SOURCES = test/unit/test_cache.c
test_unit_test_cache_LDADD = $(UNIT_LDADD)
test_unit_test_cron_SOURCES = test/unit/test_cron.c
test_unit_test_cron_LDADD = $(UNIT_LDADD)
test_unit_test_json_SOURCES = test/unit/test_json.c
test_unit_test_json_LDADD = $(UNIT_LDADD)
test_unit_test_json_string_SOURCES = test/unit/test_json_string.c
test_unit_test_json_string_LDADD = $(UNIT_LDADD)
test_unit_test_document_SOURCES = test/unit/test_document.c
test_unit_test_document_LDADD = $(UNIT_LDADD)
test_unit_test_delta_SOURCES = test/unit/test_delta.c
test_unit_test_delta_LDADD = $(UNIT_LDADD)
test_unit_test_fcgi_SOURCES = test/unit/test_fcgi.c test/unit/fastcgi_client.c test/unit/fastcgi_client.h
test_unit_test_fcgi_LDADD = $(UNIT_LDADD)
test_unit_test_transaction_SOURCES = test/unit/test_transaction.c test/unit/fake_store.c test/unit/fake_store.h
test_unit_test_transaction_LDADD = $(UNIT_LDADD)
test_unit_test_operation_SOURCES = test/unit/test_operation.c test/unit/fake_store.c test/unit/fake_store.h
test_unit_test_operation_LDADD = $(UNIT_LDADD)
test_unit_test_once_SOURCES = test/unit/test_once.c test/unit/fake_store.c test/unit/fake_store.h
test_unit_test_once_LDADD = $(UNIT_LDADD)
test_unit_test_draft_SOURCES = test/unit/test_draft.c
test_unit_test_draft_LDADD = $(UNIT_LDADD)
test_unit_test_arguments_SOURCES = test/unit/test_arguments.c
test_unit_test_arguments_LDADD = $(UNIT_LDADD)
test_unit_test_segment_SOURCES = test/unit/test_segment.c test/unit/child.c test/unit/child.h
test_unit_test_segment_LDADD = $(UNIT_LDADD)
test_unit_test_stamps_SOURCES = test/unit/test_stamps.c test/unit/child.c test/unit/child.h
test_unit_test_stamps_LDADD = $(UNIT_LDADD)
test_unit_test_instance_SOURCES = test/unit/test_instance.c test/unit/child.c test/unit/child.h
test_unit_test_instance_LDADD = $(UNIT_LDADD)
test_unit_test_pg_SOURCES = test/unit/test_pg.c
test_unit_test_pg_LDADD = $(UNIT_LDADD)
test_unit_test_history_SOURCES = test/unit/test_history.c test/unit/history_world.c test/unit/history_world.h \
	test/unit/foreign_client.c test/unit/foreign_client.h
test_unit_test_history_LDADD = $(UNIT_LDADD)
test_unit_test_page_SOURCES = test/unit/test_page.c
test_unit_test_page_LDADD = $(UNIT_LDADD)
test_unit_test_control_SOURCES = test/unit/test_control.c
test_unit_test_control_LDADD = $(UNIT_LDADD) $(CURL_LIBS)
test_system_session_test_SOURCES = test/system/session_test.c test/system/administrator.c test/system/administrator.h \
	test/unit/child.c test/unit/child.h
test_system_session_test_LDADD = $(UNIT_LDADD)
test_system_session_test_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir) -DSTAMPD_TEST_SQL='"$(abs_top_srcdir)/sql"'
test_unit_test_response_SOURCES = test/unit/test_response.c
test_unit_test_response_LDADD = $(UNIT_LDADD)
test_unit_test_request_SOURCES = test/unit/test_request.c
test_unit_test_request_LDADD = $(UNIT_LDADD)
test_unit_test_schedule_SOURCES = test/unit/test_schedule.c
test_unit_test_schedule_LDADD = $(UNIT_LDADD)
test_unit_test_condition_SOURCES = test/unit/test_condition.c
test_unit_test_condition_LDADD = $(UNIT_LDADD)
MODULE_WORLD = test/unit/module_world.c test/unit/module_world.h test/unit/fake_store.c test/unit/fake_store.h \
	$(SOURCES_OF_INTERFACE)
test_unit_test_module_SOURCES = test/unit/test_module.c $(MODULE_WORLD)
test_unit_test_module_LDADD = $(UNIT_LDADD)
test_unit_test_module_values_SOURCES = test/unit/test_module_values.c $(MODULE_WORLD)
test_unit_test_module_values_LDADD = $(UNIT_LDADD)
test_unit_test_multipart_SOURCES = test/unit/test_multipart.c
test_unit_test_multipart_LDADD = $(UNIT_LDADD)
