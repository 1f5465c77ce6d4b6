# Fuzz targets: test/fuzz/fuzz_<target>.c.  With --enable-fuzzers they are linked with libFuzzer; without, make
# check replays each one's corpus (README.md).
FUZZ_COMMON = test/fuzz/fuzz.h
fuzz_arguments_sources = test/fuzz/fuzz_arguments.c $(FUZZ_COMMON)
fuzz_json_sources = test/fuzz/fuzz_json.c test/fuzz/oracle.c test/fuzz/oracle.h $(FUZZ_COMMON)
fuzz_multipart_sources = test/fuzz/fuzz_multipart.c $(FUZZ_COMMON)
fuzz_path_sources = test/fuzz/fuzz_path.c $(FUZZ_COMMON)
fuzz_request_sources = test/fuzz/fuzz_request.c test/unit/fake_store.c test/unit/fake_store.h $(FUZZ_COMMON)
FUZZ_REQUEST_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
fuzz_settings_sources = test/fuzz/fuzz_settings.c $(FUZZ_COMMON)
FUZZ_LDADD = libstampd.a $(LIBS_ALL)

if FUZZERS
noinst_PROGRAMS = test/fuzz/fuzz_arguments test/fuzz/fuzz_json test/fuzz/fuzz_multipart test/fuzz/fuzz_path \
	test/fuzz/fuzz_request test/fuzz/fuzz_settings
test_fuzz_fuzz_arguments_SOURCES = $(fuzz_arguments_sources)
test_fuzz_fuzz_arguments_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_arguments_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_json_SOURCES = $(fuzz_json_sources)
test_fuzz_fuzz_json_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_json_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_multipart_SOURCES = $(fuzz_multipart_sources)
test_fuzz_fuzz_multipart_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_multipart_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_path_SOURCES = $(fuzz_path_sources)
test_fuzz_fuzz_path_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_path_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_request_SOURCES = $(fuzz_request_sources)
test_fuzz_fuzz_request_CPPFLAGS = $(FUZZ_REQUEST_CPPFLAGS)
test_fuzz_fuzz_request_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_request_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
test_fuzz_fuzz_settings_SOURCES = $(fuzz_settings_sources)
test_fuzz_fuzz_settings_LDADD = $(FUZZ_LDADD)
test_fuzz_fuzz_settings_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
else
FUZZ_REPLAYS = test/fuzz/replay_arguments test/fuzz/replay_json test/fuzz/replay_multipart test/fuzz/replay_path \
	test/fuzz/replay_request test/fuzz/replay_settings
check_PROGRAMS += $(FUZZ_REPLAYS)
TESTS += $(FUZZ_REPLAYS)
test_fuzz_replay_arguments_SOURCES = test/fuzz/replay.c $(fuzz_arguments_sources)
test_fuzz_replay_arguments_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_json_SOURCES = test/fuzz/replay.c $(fuzz_json_sources)
test_fuzz_replay_json_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_multipart_SOURCES = test/fuzz/replay.c $(fuzz_multipart_sources)
test_fuzz_replay_multipart_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_path_SOURCES = test/fuzz/replay.c $(fuzz_path_sources)
test_fuzz_replay_path_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_request_SOURCES = test/fuzz/replay.c $(fuzz_request_sources)
test_fuzz_replay_request_CPPFLAGS = $(FUZZ_REQUEST_CPPFLAGS)
test_fuzz_replay_request_LDADD = $(FUZZ_LDADD)
test_fuzz_replay_settings_SOURCES = test/fuzz/replay.c $(fuzz_settings_sources)
test_fuzz_replay_settings_LDADD = $(FUZZ_LDADD)
endif

EXTRA_DIST += test/fuzz/README.md test/fuzz/dictionaries test/fuzz/corpus
