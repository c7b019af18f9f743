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
set ytics (0, 0.25, 'p50' 0.5, 0.75, 'p90' 0.9, 'p99' 0.99)
names = "'time to first token' 'time per output token' 'whole request'"
do for [i = 1:3] {
    unset logscale x
    set xrange [*:*] # else ranges of the last panel hide data from stats
    set yrange [*:*]
    stats latency_csv using i skip 1 nooutput
    n = STATS_records
    scale = STATS_max < 1 ? 1e3 : 1
    least = scale * (STATS_min > 1e-5 ? STATS_min : 1e-5)
    most = scale * STATS_max > least ? scale * STATS_max : least * 1.1
    if (most > 20 * least) {
        set logscale x
        set xrange [10 ** floor(log10(least)):10 ** ceil(log10(most))]
        set xtics autofreq
    } else {
        span = most - least
        set xrange [least - 0.06 * span:most + 0.06 * span]
        power = 10 ** floor(log10(span / 4))
        set xtics power * (span / 4 / power < 1.5 ? 1 : span / 4 / power < 3.5 ? 2 : span / 4 / power < 7.5 ? 5 : 10)
    }
    set format x '%g'
    set yrange [0:1]
    set xlabel word(names, i) . (scale > 1 ? ' (ms)' : ' (s)')
    plot latency_csv using (scale * column(i)):(1.0 / n) skip 1 smooth cumulative with lines lw 2 lc rgb '#1f4e9c'
    unset ylabel
}
unset multiplot
