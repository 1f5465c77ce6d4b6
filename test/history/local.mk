# The checker of histories, on histories written by hand; the campaign itself needs servers: test/history/README.md.
HOUSE_CHECKS += test/history/test_checker.sh
EXTRA_DIST += test/history/test_checker.py test/history/test_rights.py test/history/test_judges.py test/history/test_network.py test/history/test_records_judge.py test/history/network.py test/history/book.py test/history/check \
	test/history/checker.py test/history/decide.py test/history/decisions.py test/history/graph.py test/history/judge_external.py test/history/judge_rights.py test/history/judges.py test/history/members.py \
	test/history/records.py test/history/records_judge.py test/history/report.py test/history/state.py test/history/tallies.py
