#!/usr/bin/env bash
# Run a transcript: lines "$ command" with the output that they must give. TAP on stdout.
#   $ ridge list hw | head -1       a command, run by bash with `ridge` on the path; stderr joins stdout
#   expected text                   compared to the letter
#   [2]                             last line: the exit code, when it is not 0
#   line with ... [...]             "[...]" stands for any text within a line; a line "[...]" for any lines
#   # text                          a comment where no output can stand: at the top or after a blank line
# usage: tests/cli/run.sh FILE.t      run.sh -u FILE.t accepts what the commands print now
# SPDX-License-Identifier: Apache-2.0
set -u
update=0
[ "${1:-}" = -u ] && { update=1; shift; }
file=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 2
root=$PWD
: "${RIDGE:=$root/build/ridge}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/cwd"
ln -s "$RIDGE" "$work/bin/ridge"
export PATH="$work/bin:$PATH" ROOT="$root" SHARED="$root/../shared" RIDGE_DATA="$root" LC_ALL=C.UTF-8
cd "$work/cwd" || exit 2

matches() { # expected-file got-file: line by line with [...] as a wildcard
    awk -v EXPECTED="$1" '
    function pattern(s,   r) { r = s; gsub(/[][\\.^$*+?(){}|]/, "\\\\&", r); gsub(/\\\[\\\.\\\.\\\.\\\]/, ".*", r); return "^" r "$" }
    function fits(i, j) {
        while (i <= n) {
            if (e[i] == "[...]") { for (; j <= m + 1; j++) if (fits(i + 1, j)) return 1; return 0 }
            if (j > m || (g[j] != e[i] && g[j] !~ pattern(e[i]))) return 0
            i++; j++
        }
        return j > m
    }
    BEGIN { while ((getline line < EXPECTED) > 0) e[++n] = line }
    { g[++m] = $0 }
    END { exit !fits(1, 1) }' "$2"
}

count=0 failed=0 new=$work/new
: >"$new"
mapfile -t lines <"$file"
i=0
while [ $i -lt ${#lines[@]} ]; do
    line=${lines[$i]}
    i=$((i + 1))
    if [[ $line != '$ '* ]]; then
        printf '%s\n' "$line" >>"$new"
        continue
    fi
    command=${line#\$ }
    : >"$work/expected"
    while [ $i -lt ${#lines[@]} ] && [[ ${lines[$i]} != '$ '* && -n ${lines[$i]} ]]; do
        printf '%s\n' "${lines[$i]}" >>"$work/expected"
        i=$((i + 1))
    done
    # a crash counts even where a pipe hides the exit code (141: the reader has closed the pipe)
    bash -c "$command"'
        ended=("${PIPESTATUS[@]}")
        for code in "${ended[@]}"; do
            [ "$code" -gt 128 ] && [ "$code" -ne 141 ] && echo "ended by signal $((code - 128))"
        done
        exit "${ended[-1]}"' >"$work/raw" 2>&1 </dev/null
    rc=$?
    sed -e "s#$root#ROOT#g" -e '/^$/d' "$work/raw" >"$work/got"
    [ $rc -ne 0 ] && echo "[$rc]" >>"$work/got"
    count=$((count + 1))
    printf '%s\n' "$line" >>"$new"
    if [[ $command == *SHARED* && ! -d $SHARED ]]; then
        echo "ok $count - $command # SKIP no shared data"
        cat "$work/expected" >>"$new"
    elif matches "$work/expected" "$work/got"; then
        echo "ok $count - $command"
        cat "$work/expected" >>"$new"
    else
        echo "not ok $count - $command"
        diff -u "$work/expected" "$work/got" | tail -n +3 | sed 's/^/# /'
        failed=$((failed + 1))
        cat "$work/got" >>"$new"
    fi
done
echo "1..$count"
if [ $update -eq 1 ]; then
    cp "$new" "$file"
    exit 0
fi
[ $failed -eq 0 ]
