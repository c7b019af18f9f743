#!/usr/bin/env bash
# Examples of serving run, and say what they should. TAP.
# SPDX-License-Identifier: Apache-2.0
set -u
build=${1:-build}
cd "$(dirname "$0")/../.." || exit 2
ridge=${RIDGE:-$PWD/$build/ridge}
export RIDGE_DATA=$PWD
n=0 bad=0
result() { # ok? name
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; bad=1; fi
}
out=$(examples/30-serving-claims.sh "$ridge" 2>&1)
result $? "claims about serving are simulated"
[ "$(grep -cE '^(9|1[0-9]) ' <<<"$out")" -eq 7 ]
result $? "all seven of them"
! grep -qE 'nan|inf[^o]| - |ridge:' <<<"$out"
result $? "without a figure missing"
# Signs that hold whatever the step times are.
grep -qE 'pages of 16: [0-9]+ requests at once, [0-4]\.' <<<"$out"
result $? "pages waste under 5 %"
grep -q '4 streams of 100000 tokens: .*, 1028 with' <<<"$out"
result $? "a window bounds memory whatever the length"
chat=$("$ridge" serve examples/31-chat.yaml -q -f json)
result $? "the chat scenario runs"
share=$(grep -oE '"prefix_hit_tokens_share": [0-9.]+' <<<"$chat" | cut -d' ' -f2)
awk -v s="$share" 'BEGIN {exit !(s > 0.5)}'
result $? "its sessions find most of their text cached ($share)"
echo "1..$n"
exit $bad
