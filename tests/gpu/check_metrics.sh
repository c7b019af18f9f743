#!/usr/bin/env bash
# The metric sets of every chip that ridge claims, against CUPTI's host interface: names exist, sets
# take one pass, units are those that the code assumes, link counters refuse company, a wrong name is
# named, counter data that holds nothing is an error. Needs libcupti, no GPU.
# usage: tests/gpu/check_metrics.sh BUILD
# SPDX-License-Identifier: Apache-2.0
set -u
build=${1:-build}
probe=$build/ridge-probe
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0
report() { # condition-status name
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then echo "ok $count - $2"; else
        echo "not ok $count - $2"
        sed 's/^/# /' "$work/out" | head -8
    fi
}
"$probe" metrics >"$work/all" 2>"$work/err"
code=$?
if [ "$code" -eq 3 ] && grep -q 'no CUPTI' "$work/err"; then
    echo "ok 1 - metric sets # SKIP $(cut -d: -f2- "$work/err" | cut -c2-80)"
    exit 0
fi
cp "$work/err" "$work/out"
report "$code" "every metric of every set of every chip exists"
for chip in GA100 GA102 AD102 GH100 GB100 GB102 GB110 GB202; do
    grep "^$chip " "$work/all" >"$work/out"
    grep -q "^$chip core: 1 pass$" "$work/all" && grep -q "^$chip flops: 1 pass$" "$work/all"
    report $? "$chip: core and flops sets take one pass each"
done
for chip in GA100 GH100 GB100 GB102 GB110; do
    grep -q "^$chip link: 1 pass$" "$work/all"
    report $? "$chip: link set takes one pass"
done
# a unit per metric family; the code divides bytes by time and cycles by time
awk '/^  dram__bytes|^  lts__t_bytes|^  nvl/ && $2 != "byte" { bad = 1; print } \
     /^  gpu__time_duration/ && $2 != "nanosecond" { bad = 1; print } \
     /^  lts__t_sectors/ && $2 != "l2_sector" { bad = 1; print } \
     /^  sm__cycles_/ && $2 !~ /cycle/ { bad = 1; print } END { exit bad }' "$work/all" >"$work/out"
report $? "bytes, sectors, nanoseconds and cycles are what CUPTI counts in"

"$probe" metrics --chip GH100 dram__bytes_read.sum nvlrx__bytes.sum >"$work/out" 2>&1
[ $? -eq 2 ] && grep -q 'cannot be counted together' "$work/out"
report $? "link and DRAM counters in one set are refused, saying why"
"$probe" metrics --chip GH100 dram__bytes_read.sum dram__bytes_rread.sum >"$work/out" 2>&1
[ $? -eq 2 ] && grep -q "no metric 'dram__bytes_rread.sum'" "$work/out"
report $? "a wrong name among right ones is the one that is named"
"$probe" metrics --chip GH100 dram__bytes_read >"$work/out" 2>&1
[ $? -eq 2 ] && grep -q "rollup such as '.sum'" "$work/out"
report $? "a base name without rollup is refused with what would do"
"$probe" metrics --chip GH200X >"$work/out" 2>&1
[ $? -eq 2 ] && grep -q "GH200X" "$work/out"
report $? "an unknown chip is named"
got=$("$probe" metrics --chip GH100 lts__t_sector_hit_rate.pct 2>"$work/out")
[ "$got" = 2 ]
report $? "a metric of two passes is known as such"
[ "$("$probe" metrics --chip GH100 --all 2>"$work/out" | wc -l)" -gt 3000 ]
report $? "--all lists the chip's base metrics"

# Counter data images: whole ones are evaluated, all else is refused before CUPTI sees it.
head -c 9000 /dev/urandom >"$work/noise.cdimg"
"$probe" evaluate "$work/noise.cdimg" >"$work/out" 2>&1
[ $? -eq 2 ] && grep -q 'noise.cdimg:1:1: the first line is no JSON' "$work/out"
report $? "bytes that are no counter data image are refused by place"
toolkit=$(cut -d' ' -f1 "$build/kernels/toolkit" 2>/dev/null)
if ! ${CC:-cc} -std=c11 -D_GNU_SOURCE -Ikernels/compat -isystem "$toolkit/include" tests/gpu/empty_image.c \
    -o "$work/empty_image" -ldl 2>"$work/out" ||
    ! "$work/empty_image" libcupti.so.13 libnvperf_host.so GH100 >"$work/raw" 2>"$work/out"; then
    count=$((count + 1))
    echo "ok $count - evaluation of images # SKIP no CUPTI and NVPW of version 13: $(head -c 80 "$work/out" | tr '\n' ' ')"
else
    sum=$(sha256sum <"$work/raw" | cut -d' ' -f1)
    {
        printf '{"schema":"ridge.counterdata/1","chip":"GH100","device":"none","metrics":["dram__bytes_read.sum"],'
        printf '"values":[1.0],"bytes":%d,"sha256":"%s"}\n' "$(stat -c %s "$work/raw")" "$sum"
        cat "$work/raw"
    } >"$work/nothing.cdimg"
    "$probe" evaluate "$work/nothing.cdimg" >"$work/out" 2>&1
    [ $? -eq 3 ] && grep -q "metric 'dram__bytes_read.sum' was not counted" "$work/out"
    report $? "an image in which nothing was counted is an error, not a NaN"
    head -c -1 "$work/nothing.cdimg" >"$work/cut.cdimg"
    "$probe" evaluate "$work/cut.cdimg" >"$work/out" 2>&1
    [ $? -eq 2 ] && grep -q "cut or changed" "$work/out"
    report $? "an image that lacks a byte is refused"
fi
# Images recorded on GPUs, with the values that they gave there.
for image in tests/golden/gpu/*.cdimg; do
    [ -e "$image" ] || continue
    "$probe" evaluate "$image" >"$work/out" 2>&1
    report $? "$image evaluates to the recorded values"
done
echo "1..$count"
