#!/usr/bin/env bash
# What a compiler does not check: layers, headers that stand alone, sources' form, options against
# help, man page and completion, scripts. Prints every finding and exits 1 when there is one.
# usage: tests/lint/run.sh BUILD [fast]     fast leaves clang-tidy out
# SPDX-License-Identifier: Apache-2.0
set -u
build=${1:-build}
mode=${2:-full}
cd "$(dirname "$0")/../.." || exit 2
ridge=$build/ridge
findings=0
say() {
    echo "$*"
    findings=$((findings + 1))
}
need() { command -v "$1" >/dev/null || { echo "lint: $1 is not installed; $2 left out"; return 1; }; }

# 1. A folder of sim/ reads only folders that its line in layers.txt names.
declare -A may
while IFS=: read -r folder reads; do
    [[ $folder == '#'* || -z $folder ]] || may[$folder]=" $folder $reads "
done <tests/lint/layers.txt
while IFS=: read -r file line text; do
    folder=$(cut -d/ -f2 <<<"$file")
    target=$(sed -E 's/.*#include "([^"/]+)\/.*/\1/' <<<"$text")
    [[ ${may[$folder]-} == *" $target "* ]] || say "$file:$line: $folder may not read $target"
done < <(grep -nE '#include "[a-z]+/' sim/*/*.[ch])
while IFS=: read -r file line text; do
    say "$file:$line: include by folder, as \"core/err.h\": $text"
done < <(grep -nE '#include "(\.\.|[^/"]+")' sim/*/*.[ch])

# 2. Libraries stay in their folders.
only() { # header pattern, folders that may have it, name
    while IFS=: read -r file line _; do
        [[ $file =~ ^sim/($2) ]] || say "$file:$line: $3 belongs to $2"
    done < <(grep -nE "#include <$1" sim/*/*.[ch])
}
only 'yaml\.h' 'core/doc' libyaml
only 'gsl/' 'core/|fit/|cli/main' GSL
only 'sqlite3\.h' 'fit/' SQLite
while IFS=: read -r file line text; do
    say "$file:$line: only report/ and cli/ print: $text"
done < <(grep -nE '\b(printf|puts|putchar)\(|fprintf\((stdout|stderr)' sim/*/*.c | grep -vE '^sim/(report|cli)/')
while IFS=: read -r file line text; do
    say "$file:$line: only cli/ exits: $text"
done < <(grep -nE '\b(exit|abort)\(' sim/*/*.c | grep -vE '^sim/cli/')

# 3. Every header compiles alone; every source names its licence.
for header in sim/*.h sim/*/*.h; do
    gcc -std=c11 -D_POSIX_C_SOURCE=200809L -DRG_VERSION='""' -Isim -Wall -Wextra -Werror \
        -fsyntax-only -x c "$header" 2>"$build/lint.txt" ||
        say "$header: does not compile alone: $(head -n 1 "$build/lint.txt")"
done
while read -r file; do say "$file: no SPDX line"; done < <(
    git ls-files '*.[ch]' '*.cu' '*.cuh' '*.S' '*.sh' '*.gp' Makefile '*.mk' | xargs grep -L 'SPDX-License-Identifier: Apache-2.0')

# 4. Public doubles carry their unit in the name, unless the comment on their line says it.
while IFS=: read -r file line text; do
    say "$file:$line: a public double without a unit in its name or a comment: $text"
done < <(awk '
    FNR == 1 { comment = 0 }
    { inside = comment }
    /\/\*/ && !/\*\// { comment = 1 }
    /\*\// { comment = 0 }
    /^ +(const )?double [a-z_0-9]+(\[[A-Z_0-9]+\])?;/ && !inside && !/\/[\*\/]/ {
        name = $0; sub(/^ +(const )?double /, "", name); sub(/[\[;].*/, "", name)
        if (name !~ /_(s|us|ns|ms|bytes|bits|flops|tokens|packets|rate|sum|width|k|ratio|watts|joules|usd|hz|cycles|per_[a-z_]+|share|count|percent|ape|pos|v|flits|db|least|most)$/ &&
            name !~ /^(v|value|real|bytes|sum|at|utilisation|mean|deviation|least|most|p50|p90|p95|p99|median|bias|low|high|share|ratio|efficiency|x|y|seed|weight|exponent|skew|shape|rate|loss)$/)
            print FILENAME ":" FNR ":" $0
    }' sim/*/*.h)

# 5. The option tables, the help, the man page and the completion say the same.
if [ -x "$ridge" ]; then
    "$ridge" help --man >"$build/ridge.1"
    "$ridge" help --completion >"$build/ridge.bash"
    bash -n "$build/ridge.bash" || say "completion script does not parse"
    need mandoc 'the man page' && {
        mandoc -T lint -W warning "$build/ridge.1" 2>&1 | grep -vE 'missing date' >"$build/lint.txt"
        while read -r text; do say "man page: $text"; done <"$build/lint.txt"
    }
    for command in $("$ridge" help --completion | sed -n 's/.*compgen -W "\(.*\)probe".*/\1/p'); do
        while read -r option; do
            grep -qF -- "\\-\\-$(sed 's/-/\\-/g' <<<"${option#--}")" "$build/ridge.1" ||
                say "ridge $command $option: not in the man page"
            grep -qE "(^|[ \"])$option " "$build/ridge.bash" || say "ridge $command $option: not in the completion"
        done < <("$ridge" "$command" --help | grep -oE '^  (-.,|   ) --[a-z0-9-]+' | grep -oE '\-\-[a-z0-9-]+')
        grep -rqs -- "ridge $command" README.md examples tests/cli || say "ridge $command: in no README, example or transcript"
    done
fi

# 6. Form, static analysis, scripts.
need clang-format 'the form of sources' && {
    mapfile -t sources < <(git ls-files 'sim/*.[ch]' 'tests/*.[ch]' 'kernels/*.[ch]')
    clang-format --dry-run -Werror "${sources[@]}" 2>"$build/lint.txt" ||
        say "$(grep -c 'code should be clang-formatted' "$build/lint.txt") places are not in clang-format's form, first $(grep -m1 'code should' "$build/lint.txt" | cut -d: -f1-2)"
}
need shellcheck 'the scripts' && {
    mapfile -t scripts < <(git ls-files '*.sh' .ci/run)
    shellcheck -S warning "${scripts[@]}" || say "shellcheck has findings"
}
if [ "$mode" != fast ] && need clang-tidy 'static analysis'; then
    mapfile -t sources < <(git ls-files 'sim/*.c')
    flags='-std=c11 -D_POSIX_C_SOURCE=200809L -DRG_VERSION="" -DRG_PREFIX="" -Isim -fopenmp'
    # shellcheck disable=SC2016 # the inner shell expands these
    printf '%s\n' "${sources[@]}" | FLAGS=$flags xargs -P "$(nproc)" -n 4 \
        sh -c 'clang-tidy --quiet "$@" -- $FLAGS 2>/dev/null' sh >"$build/tidy.txt"
    grep -q 'error: no input files' "$build/tidy.txt" && say "clang-tidy read nothing"
    count=$(grep -cE '(warning|error):' "$build/tidy.txt")
    if [ "$count" -gt 0 ]; then
        grep -E '(warning|error):' "$build/tidy.txt" | sort -u | head -40
        say "clang-tidy: $count findings"
    fi
fi

[ $findings -eq 0 ] && echo "lint: clean"
exit $((findings > 0))
