#!/usr/bin/env bash
# Every file of tests/bad/{engine,hw,plan} has one mistake. Its first line says what `ridge check` must
# answer:   # expect EXIT: LINE:COLUMN: severity: text [name]
# usage: tests/bad/check_files.sh [BUILD]
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/../.." || exit 2
ridge=${RIDGE:-$PWD/${1:-build}/ridge}
export RIDGE_DATA=$PWD
count=0 failed=0
for file in tests/bad/{engine,hw,plan}/*.yaml; do
    count=$((count + 1))
    expected=$(head -n 1 "$file")
    output=$("$ridge" check "$file" 2>/dev/null)
    got="# expect $?: ${output%%$'\n'*}"
    got=${got/"$file":/}
    if [ "$got" = "$expected" ]; then
        echo "ok $count - $file"
    else
        echo "not ok $count - $file"
        printf '# wanted %s\n# got    %s\n' "$expected" "$got"
        failed=$((failed + 1))
    fi
done
echo "1..$count"
[ "$failed" -eq 0 ]
