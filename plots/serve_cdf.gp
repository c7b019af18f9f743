# Distributions of latencies. latency_csv: ttft_s,tpot_s,e2e_s, one row a request.
# SPDX-License-Identifier: Apache-2.0
is_text = (GPVAL_TERM eq 'dumb')
set datafile separator ','
set multiplot layout 1,3
set yrange [0:1]
set ylabel 'share of requests'
set border 3
set tics nomirror scale 0.6
set grid xtics ytics lc rgb '#e4e4e4' lt 1 lw 0.7
unset key
set logscale x
set format x '%g'
do for [i = 1:3] {
    set xrange [*:*] # else ranges of the last panel hide data from stats
    set yrange [*:*]
    stats latency_csv using i skip 1 nooutput
    n = STATS_records
    least = STATS_min > 1e-5 ? STATS_min : 1e-5
    most = STATS_max > least ? STATS_max : least * 10
    set xrange [10 ** floor(log10(least)):10 ** ceil(log10(most))]
    set yrange [0:1]
    set xlabel (i == 1 ? 'time to first token (s)' : i == 2 ? 'time per output token (s)' : 'whole request (s)')
    plot latency_csv using i:(1.0 / n) skip 1 smooth cumulative with lines lw 2 lc rgb '#1f4e9c'
    unset ylabel
}
unset multiplot
