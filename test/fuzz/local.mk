# Fuzz targets: test/fuzz/fuzz_<target>.c.  With --enable-fuzzers they are linked with libFuzzer; without, make
# check replays each one's corpus (README.md).
FUZZ_LDADD = libstampd.a $(LIBS_ALL)
FUZZ_REQUEST_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
fuzz_answer_sources = test/fuzz/fuzz_answer.c test/fuzz/fuzz.h
fuzz_arguments_sources = test/fuzz/fuzz_arguments.c test/fuzz/fuzz.h
fuzz_condition_sources = test/fuzz/fuzz_condition.c test/fuzz/fuzz.h
fuzz_form_sources = test/fuzz/fuzz_form.c test/fuzz/fuzz.h
fuzz_holdings_sources = test/fuzz/fuzz_holdings.c test/fuzz/fuzz.h
fuzz_json_sources = test/fuzz/fuzz_json.c test/fuzz/fuzz.h test/fuzz/oracle.c test/fuzz/oracle.h
fuzz_live_sources = test/fuzz/fuzz_live.c test/fuzz/fuzz.h
fuzz_load_sources = test/fuzz/fuzz_load.c test/fuzz/fuzz.h
fuzz_multipart_sources = test/fuzz/fuzz_multipart.c test/fuzz/fuzz.h
fuzz_mutation_sources = test/fuzz/fuzz_mutation.c test/fuzz/fuzz.h
fuzz_path_sources = test/fuzz/fuzz_path.c test/fuzz/fuzz.h
fuzz_refusal_sources = test/fuzz/fuzz_refusal.c test/fuzz/fuzz.h
fuzz_request_sources = test/fuzz/fuzz_request.c test/fuzz/fuzz.h $(FAKE_STORE)
fuzz_schema_sources = test/fuzz/fuzz_schema.c test/fuzz/fuzz.h
fuzz_settings_sources = test/fuzz/fuzz_settings.c test/fuzz/fuzz.h
fuzz_wakeup_sources = test/fuzz/fuzz_wakeup.c test/fuzz/fuzz.h
fuzz_words_sources = test/fuzz/fuzz_words.c test/fuzz/fuzz.h

if FUZZERS
noinst_PROGRAMS = test/fuzz/fuzz_answer test/fuzz/fuzz_arguments test/fuzz/fuzz_condition test/fuzz/fuzz_form \
	test/fuzz/fuzz_holdings test/fuzz/fuzz_json test/fuzz/fuzz_live test/fuzz/fuzz_load test/fuzz/fuzz_multipart test/fuzz/fuzz_mutation test/fuzz/fuzz_path test/fuzz/fuzz_refusal \
	test/fuzz/fuzz_request test/fuzz/fuzz_schema test/fuzz/fuzz_settings test/fuzz/fuzz_wakeup test/fuzz/fuzz_words
test_fuzz_fuzz_answer_SOURCES = $(fuzz_answer_sources)
test_fuzz_fuzz_answer_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_answer_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_arguments_SOURCES = $(fuzz_arguments_sources)
test_fuzz_fuzz_arguments_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_arguments_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_condition_SOURCES = $(fuzz_condition_sources)
test_fuzz_fuzz_condition_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_condition_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_form_SOURCES = $(fuzz_form_sources)
test_fuzz_fuzz_form_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_form_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_holdings_SOURCES = $(fuzz_holdings_sources)
test_fuzz_fuzz_holdings_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_holdings_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_json_SOURCES = $(fuzz_json_sources)
test_fuzz_fuzz_json_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_json_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_live_SOURCES = $(fuzz_live_sources)
test_fuzz_fuzz_live_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_live_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_load_SOURCES = $(fuzz_load_sources)
test_fuzz_fuzz_load_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_load_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_multipart_SOURCES = $(fuzz_multipart_sources)
test_fuzz_fuzz_multipart_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_multipart_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_mutation_SOURCES = $(fuzz_mutation_sources)
test_fuzz_fuzz_mutation_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_mutation_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_path_SOURCES = $(fuzz_path_sources)
test_fuzz_fuzz_path_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_path_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_refusal_SOURCES = $(fuzz_refusal_sources)
test_fuzz_fuzz_refusal_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_refusal_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_request_SOURCES = $(fuzz_request_sources)
test_fuzz_fuzz_request_CPPFLAGS = $(FUZZ_REQUEST_CPPFLAGS)
test_fuzz_fuzz_request_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_request_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_schema_SOURCES = $(fuzz_schema_sources)
test_fuzz_fuzz_schema_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_schema_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_settings_SOURCES = $(fuzz_settings_sources)
test_fuzz_fuzz_settings_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_settings_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_wakeup_SOURCES = $(fuzz_wakeup_sources)
test_fuzz_fuzz_wakeup_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_wakeup_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_words_SOURCES = $(fuzz_words_sources)
test_fuzz_fuzz_words_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_words_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
else
FUZZ_REPLAYS = test/fuzz/replay_answer test/fuzz/replay_arguments test/fuzz/replay_condition \
	test/fuzz/replay_form test/fuzz/replay_holdings test/fuzz/replay_json test/fuzz/replay_live test/fuzz/replay_load test/fuzz/replay_multipart \
	test/fuzz/replay_mutation test/fuzz/replay_path test/fuzz/replay_refusal test/fuzz/replay_request test/fuzz/replay_schema \
	test/fuzz/replay_settings test/fuzz/replay_wakeup test/fuzz/replay_words
check_PROGRAMS += $(FUZZ_REPLAYS)
TESTS += $(FUZZ_REPLAYS)
test_fuzz_replay_answer_SOURCES = test/fuzz/replay.c $(fuzz_answer_sources)
test_fuzz_replay_answer_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_arguments_SOURCES = test/fuzz/replay.c $(fuzz_arguments_sources)
test_fuzz_replay_arguments_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_condition_SOURCES = test/fuzz/replay.c $(fuzz_condition_sources)
test_fuzz_replay_condition_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_form_SOURCES = test/fuzz/replay.c $(fuzz_form_sources)
test_fuzz_replay_form_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_holdings_SOURCES = test/fuzz/replay.c $(fuzz_holdings_sources)
test_fuzz_replay_holdings_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_json_SOURCES = test/fuzz/replay.c $(fuzz_json_sources)
test_fuzz_replay_json_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_live_SOURCES = test/fuzz/replay.c $(fuzz_live_sources)
test_fuzz_replay_live_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_load_SOURCES = test/fuzz/replay.c $(fuzz_load_sources)
test_fuzz_replay_load_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_multipart_SOURCES = test/fuzz/replay.c $(fuzz_multipart_sources)
test_fuzz_replay_multipart_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_mutation_SOURCES = test/fuzz/replay.c $(fuzz_mutation_sources)
test_fuzz_replay_mutation_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_path_SOURCES = test/fuzz/replay.c $(fuzz_path_sources)
test_fuzz_replay_path_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_refusal_SOURCES = test/fuzz/replay.c $(fuzz_refusal_sources)
test_fuzz_replay_refusal_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_request_SOURCES = test/fuzz/replay.c $(fuzz_request_sources)
test_fuzz_replay_request_CPPFLAGS = $(FUZZ_REQUEST_CPPFLAGS)
test_fuzz_replay_request_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_schema_SOURCES = test/fuzz/replay.c $(fuzz_schema_sources)
test_fuzz_replay_schema_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_settings_SOURCES = test/fuzz/replay.c $(fuzz_settings_sources)
test_fuzz_replay_settings_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_wakeup_SOURCES = test/fuzz/replay.c $(fuzz_wakeup_sources)
test_fuzz_replay_wakeup_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_words_SOURCES = test/fuzz/replay.c $(fuzz_words_sources)
test_fuzz_replay_words_LDADD = $(FUZZ_LDADD)
endif

EXTRA_DIST += test/fuzz/README.md test/fuzz/run test/fuzz/dictionaries test/fuzz/corpus
