# Programs of the benchmarks (test/bench/run): stampd with a constant answer, and the same behind stampd's own parsing.
check_PROGRAMS += test/bench/constant test/bench/parsed
test_bench_constant_SOURCES = test/bench/constant.c src/stampd.c
test_bench_constant_LDADD = libstampd.a $(LIBS_ALL)
test_bench_constant_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=request_read -Wl,--wrap=operation_run
test_bench_parsed_SOURCES = $(test_bench_constant_SOURCES)
test_bench_parsed_LDADD = $(test_bench_constant_LDADD)
test_bench_parsed_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=operation_run
