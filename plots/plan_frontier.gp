# Cost against latency of a plan. sK_csv for K = 1 .. series: cost,e2e_p95_s,meets_limits,on_frontier
# of one machine; frontier_csv: cost,e2e_p95_s of the points that none beats; whole: cost is a number
# of devices.
# SPDX-License-Identifier: Apache-2.0
is_text = (GPVAL_TERM eq 'dumb')
set datafile separator ','
set title plot_title
set xlabel cost_label
set ylabel 'whole request, p95 (s)'
set border 3
set tics nomirror scale 0.6
set grid xtics ytics lc rgb '#e4e4e4' lt 1 lw 0.7
set key outside right top Left reverse samplen 2
# Axes around the points: latency in the logarithm, cost too where it spans a factor of 20.
wide = least_cost > 0 && most_cost / least_cost > 20
if (wide) set logscale x
set xrange [wide ? least_cost / 1.3 : 0 : wide ? most_cost * 1.3 : most_cost * 1.06]
set logscale y
set yrange [least_latency / 1.3 : most_latency * 1.3]
set format y '%g'
if (wide) set format x '%g'
if (whole && !wide) set xtics ceil(most_cost / 12.0)
do for [e = -4:6] {
    do for [m in '2 5'] {
        set ytics add (sprintf('%g', m * 10**e) m * 10**e)
        eval (wide ? sprintf("set xtics add ('%g' %g)", m * 10**e, m * 10**e) : '')
    }
}
array colour[8] = ['#1f4e9c', '#c0392b', '#2e8b57', '#d68910', '#7d3c98', '#117a8b', '#6b6b6b', '#a04000']
array name[8]
array file[8]
do for [i = 1:series] {
    name[i] = value(sprintf('s%d_title', i))
    file[i] = value(sprintf('s%d_csv', i))
}
plot frontier_csv using 1:2 skip 1 with steps lw 1.2 lc rgb '#888888' title 'none is cheaper and faster', \
     for [i = 1:series] file[i] using 1:($3 > 0 ? $2 : 1/0) skip 1 with points pt 7 ps 1.1 lc rgb colour[i] title name[i], \
     for [i = 1:series] file[i] using 1:($3 > 0 ? 1/0 : $2) skip 1 with points pt 6 ps 1.1 lc rgb colour[i] notitle, \
     1/0 with points pt 6 lc rgb '#444444' title 'beyond a limit', \
     '+' every ::0::0 using (winner_cost):(winner_latency) with points pt 6 ps 2.4 lc rgb '#111111' lw 1.6 title 'least within the limits'
