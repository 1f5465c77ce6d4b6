#!/bin/sh
# test_checker: the checker of histories on histories written by hand, and the numbers of networks.  Run by make check; 77 where there is no Python.
here=$(cd "$(dirname "$0")" && pwd)
[ -x /usr/bin/python3 ] || exit 77
/usr/bin/python3 "$here/test_network.py" && /usr/bin/python3 "$here/test_judges.py" && /usr/bin/python3 "$here/test_records_judge.py" && /usr/bin/python3 "$here/test_rights.py" && exec /usr/bin/python3 "$here/test_checker.py"
