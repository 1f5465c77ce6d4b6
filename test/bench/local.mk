# Programs of the benchmarks (test/bench/run): stampd with a constant answer, and the same behind stampd's own parsing.
check_PROGRAMS += test/bench/constant test/bench/parsed
test_bench_constant_SOURCES = test/bench/constant.c src/stampd.c
test_bench_constant_LDADD = libstampd.a $(LIBS_ALL) $(EVENT_LIBS)
test_bench_constant_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=request_read -Wl,--wrap=route_run
test_bench_parsed_SOURCES = $(test_bench_constant_SOURCES)
test_bench_parsed_LDADD = $(test_bench_constant_LDADD)
test_bench_parsed_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=route_run
# One worker with rows in memory, for test/bench/count.
check_PROGRAMS += test/bench/lone
test_bench_lone_SOURCES = test/bench/lone.c $(FAKE_STORE)
test_bench_lone_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
test_bench_lone_LDADD = libstampd.a $(LIBS_ALL)
# The same with a loop that nothing needs, which test_costs.py expects to be noticed.
check_PROGRAMS += test/bench/dear
test_bench_dear_SOURCES = $(test_bench_lone_SOURCES) test/bench/dear.c
test_bench_dear_CPPFLAGS = $(test_bench_lone_CPPFLAGS)
test_bench_dear_LDADD = $(test_bench_lone_LDADD)
test_bench_dear_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=response_compose
# Writers of a spool, for test/bench/spool.
check_PROGRAMS += test/bench/spool_put
test_bench_spool_put_SOURCES = test/bench/spool_put.c
test_bench_spool_put_LDADD = libstampd-spool.a
# External workers, for test/bench/tasks.
check_PROGRAMS += test/bench/worker_load
test_bench_worker_load_SOURCES = test/bench/worker_load.c
test_bench_worker_load_LDADD = libstampd.a $(LIBS_ALL)
# The load of test/bench/records.
check_PROGRAMS += test/bench/records_load
test_bench_records_load_SOURCES = test/bench/records_load.c
check_PROGRAMS += test/bench/records_fill
test_bench_records_fill_SOURCES = test/bench/records_fill.c
test_bench_records_fill_LDADD = libstampd.a $(LIBS_ALL)
# Empty responders: the best that we know, and a plain one.
check_PROGRAMS += test/bench/empty test/bench/prefork
RESPONDER = test/bench/responder.c test/bench/responder.h
test_bench_empty_SOURCES = test/bench/empty.c $(RESPONDER)
test_bench_empty_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
test_bench_empty_LDADD = libstampd.a $(LIBS_ALL)
test_bench_prefork_SOURCES = test/bench/prefork.c $(RESPONDER)
test_bench_prefork_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
test_bench_prefork_LDADD = libstampd.a $(LIBS_ALL)
# Everything that test/bench/run and test/bench/count want, the programs too.
bench: config.h all-am test/bench/constant test/bench/parsed test/bench/empty test/bench/prefork test/bench/lone test/bench/dear test/bench/spool_put test/bench/worker_load test/bench/records_load test/bench/records_fill
.PHONY: bench
