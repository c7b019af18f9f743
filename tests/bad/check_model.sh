#!/usr/bin/env bash
# Every file of tests/bad/model has one mistake; NAME.expect beside it says what `ridge check` must
# answer: EXIT: LINE:COLUMN: severity: text [name]
# usage: tests/bad/check_model.sh [BUILD]
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/../.." || exit 2
ridge=${RIDGE:-$PWD/${1:-build}/ridge}
export RIDGE_DATA=$PWD
count=0 failed=0
for file in tests/bad/model/*.yaml tests/bad/model/*.json; do
    case $file in *.hf_quant_config.json) continue ;; esac
    count=$((count + 1))
    expected=$(cat "${file%.*}.expect")
    output=$("$ridge" check "$file" 2>/dev/null)
    got="$?: ${output%%$'\n'*}"
    got=${got//"${file%.*}"/NAME}
    got=${got/"NAME.${file##*.}":/}
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
