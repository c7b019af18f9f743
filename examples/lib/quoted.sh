# examples/lib/quoted.sh: what the examples about quoted figures share; sourced, $ridge is set.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
serve() { "$ridge" serve -q -f json "$@"; }
estimate() { "$ridge" estimate -q -f json "$@"; }
# One number of a result: get KEY [INNER] <JSON
get() {
    awk -v key="\"$1\":" -v inner="${2:+\"$2\":}" '
        index($0, key) { if (inner == "") { v = $NF; sub(/,$/, "", v); print v; exit } inside = 1; next }
        inside && index($0, inner) { v = $NF; sub(/,$/, "", v); print v; exit }'
}
ratio() { awk -v a="$1" -v b="$2" -v f="${3:-%.1f}" 'BEGIN {printf f, a / b}'; }
per() { awk -v a="$1" 'BEGIN {printf "%.1f %%", 100 * a}'; }
ms() { awk -v a="$1" 'BEGIN {printf "%.1f ms", 1000 * a}'; }
# A number in units: units 1.34e9 1e9 [FORMAT]
units() { ratio "$1" "$2" "${3:-%.2f}"; }
# judge CONDITION WHEN ELSE: the verdict on a figure; the condition is arithmetic.
judge() {
    if awk "BEGIN {exit !($1)}"; then printf '   = %s\n' "$2"; else printf '   = %s\n' "$3"; fi
}
