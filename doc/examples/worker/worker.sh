#!/bin/bash
# worker.sh: takes tasks of one queue, runs a program for each, and ends them.  Needs curl and jq.
#   worker.sh https://host/namespace QUEUE KEY_FILE PROGRAM…
# The program gets the task's param on its input and leaves JSON on its output; another status than 0 is a failure.
set -uo pipefail
url=$1 queue=$2 headers=$(mktemp) stop=
printf 'Authorization: Bearer %s\nContent-Type: application/json\n' "$(cat "$3")" > "$headers"
shift 3
trap 'rm -f "$headers"' EXIT
trap 'stop=1' TERM INT
call() { curl -sS $CURL_OPTIONS "$url/op/$1" -H "@$headers" -d "$2"; }
: "${CURL_OPTIONS:=}"
end() { # sent again, as it may be, after a fault of the server or no answer: perhaps it was done
  for pause in 0 1 3 9; do sleep $pause; answer=$(call "$@"); jq -e '.out or .status < 500' <<< "$answer" > /dev/null 2>&1 && return; done
}
wanted="\"qn\":$queue,\"claim\":60,\"worker\":\"$(hostname)-$$\"" answer=
while task=$(jq -c '.out.tasks[0] // empty' <<< "$answer") || task=; [ -n "$task" ] || [ -z "$stop" ]; do
  if [ -z "$task" ]; then
    answer=$(call take "{\"param\":{$wanted,\"wait\":20}}")
    sleep "$(jq -r '(.out.pause // 2000) / 1000' <<< "${answer:-null}" 2> /dev/null || echo 2)"
    continue
  fi
  claim=$(jq -c '{id, starttime, retry}' <<< "$task")
  (while sleep 20; do call keep "{\"param\":$claim}" > /dev/null; done) & keeper=$!
  if result=$("$@" <<< "$(jq -c .param <<< "$task")"); then # a here-string: a program need not read it
    [ -n "$stop" ] && next=null || next="{$wanted}"
    param=$(jq -nc --argjson claim "$claim" --argjson take "$next" --arg result "$result" '{param: ($claim + {take: $take, result: ($result | fromjson? // $result)})}')
    end done "$param"
  else
    end fail "{\"param\":$(jq -c --arg report "status $?" '. + {report: $report}' <<< "$claim")}"
    answer=
  fi
  kill "$keeper" 2> /dev/null; wait "$keeper" 2> /dev/null
done
