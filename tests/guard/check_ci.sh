#!/usr/bin/env bash
# What CI systems read from ridge guard: JUnit XML against a schema, GitHub lines, GitLab JSON, Markdown,
# and every exit code. TAP.
# SPDX-License-Identifier: Apache-2.0
set -u
build=${1:-build}
cd "$(dirname "$0")/../.." || exit 2
root=$PWD ridge=$PWD/$build/ridge n=0 bad=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

check() { # name, then a command that must succeed
    local name=$1
    shift
    n=$((n + 1))
    if "$@" >out 2>&1; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        sed 's/^/# /' out | head -20
        bad=$((bad + 1))
    fi
}
exits() { # code command...
    local want=$1 got
    shift
    "$@" >/dev/null 2>err
    got=$?
    [ "$got" -eq "$want" ] || { echo "exit $got, wanted $want: $*"; cat err; return 1; }
}
record() { # file scale: kernels with awkward names; the last one only in scale 1
    awk -v s="$2" 'BEGIN {
        print "{\"schema\": \"ridge.probe/1\", \"date\": \"2026-05-02T10:11:12\", \"device\": {\"name\": \"NVIDIA H200\"}, \"kernels\": ["
        split("void f<float, 3>(a const&, \\\"b\\\")|g & h|caf\303\251 | tab\\there|steady", name, "|")
        for (k = 1; k <= 5; k++) {
            if (k == 4 && s != 1) continue
            printf "%s{\"name\": \"%s\", \"problem\": {\"n\": %d}, \"samples_us\": [", (k > 1 ? "," : ""), name[k], k
            for (i = 0; i < 24; i++) printf "%s%.4f", (i ? "," : ""), 100 * k * (k == 5 ? 1 : s) * (1 + 0.004 * ((i * 7) % 5 - 2))
            print "]}"
        }
        print "]}" }' >"$1"
}
record base.json 1
record slow.json 1.2
record same.json 1
"$ridge" guard base.json --baseline base.yaml --update >/dev/null

check "equal runs exit 0" exits 0 "$ridge" guard same.json -b base.yaml
check "a regression exits 1" exits 1 "$ridge" guard slow.json -b base.yaml
check "a missing kernel alone exits 4" exits 4 "$ridge" guard slow.json -b base.yaml --only '*tab*'
printf 'kernel,time_us\nk,10\n' >one.csv
printf 'kernel,time_us\nk,11\n' >other.csv
check "inconclusive exits 0" exits 0 "$ridge" guard other.csv -b one.csv
check "inconclusive exits 3 under --strict" exits 3 "$ridge" guard other.csv -b one.csv --strict
printf '{"schema": "ridge.probe/1", "skipped": "no device", "kernels": []}' >skipped.json
check "a skipped run exits 77" exits 77 "$ridge" guard skipped.json -b base.yaml
printf 'schema: ridge.baseline/1\nkernels:\n  - kernel: a\n    medain: 1 us\n' >typo.yaml
check "a mistake in the baseline exits 2" exits 2 "$ridge" guard same.json -b typo.yaml
check "a missing file exits 2" exits 2 "$ridge" guard same.json -b nowhere.yaml
check "a gain never fails" exits 0 "$ridge" guard base.json -b slow.json --only 'g*' --strict
check "an unconfirmed regression does not fail" exits 0 "$ridge" guard slow.json -b base.yaml --only 'g*' \
    --rerun "cp $work/same.json \$RIDGE_RUN"
check "a confirmed regression fails" exits 1 "$ridge" guard slow.json -b base.yaml --only 'g*' \
    --rerun "cp $work/slow.json \$RIDGE_RUN"
check "a failing rerun exits 3" exits 3 "$ridge" guard slow.json -b base.yaml --only 'g*' --rerun false

"$ridge" guard slow.json -b base.yaml --junit junit.xml --markdown summary.md --github --gitlab quality.json \
    --format json >verdicts.json 2>annotations
if command -v xmllint >/dev/null; then
    check "JUnit XML fits the schema" xmllint --noout --schema "$root/tests/golden/junit.xsd" junit.xml
    check "JUnit counts are those of the verdicts" test "$(xmllint --xpath 'count(//failure)' junit.xml) $(xmllint \
        --xpath 'count(//error)' junit.xml)" = "3 1"
else
    n=$((n + 1))
    echo "ok $n - JUnit XML fits the schema # SKIP no xmllint"
fi
check "annotations point at the baseline's lines" bash -c '
    [ "$(grep -c "^::error file=base.yaml,line=[0-9]*,title=" annotations)" -eq 4 ] &&
    line=$(sed -n "s/^::error file=base.yaml,line=\([0-9]*\),title=regressed%3A g & h.*/\1/p" annotations) &&
    sed -n "${line}p" base.yaml | grep -q "kernel: \"g & h\""'
check "GitLab's report names path and line" grep -q '"path": "base.yaml"' quality.json
check "the Markdown summary lists what is not ok" grep -q '\*\*regressed\*\* | g & h' summary.md
check "JSON holds the agreed keys" grep -q '"schema": *"ridge.guard/1"' verdicts.json
check "JSON counts" bash -c 'tr -d " \n" <verdicts.json | grep -q "\"regressed\":3"'
check "no nan or inf in any output" bash -c 'test -s summary.md && ! grep -iwE "nan|inf|infinity" verdicts.json junit.xml summary.md quality.json'
"$ridge" guard slow.json -b base.yaml --format json >again.json
check "same input, same bytes" cmp verdicts.json again.json
echo "1..$n"
[ "$bad" -eq 0 ]
