# Bus bandwidth of collectives over message size. Variables: figure_title, lines, name0 ... name<lines-1>,
# link_rate (GB/s, 0: none), has_measured. coll_csv: line,bytes,busbw GB/s,time us;
# measured_csv: line,bytes,busbw GB/s.
# SPDX-License-Identifier: Apache-2.0
is_text = (GPVAL_TERM eq 'dumb')
set title figure_title noenhanced
set logscale xy
set xlabel 'bytes'
set ylabel 'bus bandwidth (GB/s)'
set format x '10^{%T}'
if (is_text) set format x '%.0s%c'
set format y '%g'
set tics nomirror scale 0.6
set border 3 lc rgb '#444444'
if (!is_text) set grid xtics ytics lc rgb '#e4e4e4' lt 1 lw 0.7
set key bottom right Right vertical noenhanced font ',9'
set datafile separator ','
colour(i) = i % 6 == 0 ? 0xc0392b : i % 6 == 1 ? 0x1f4e9c : i % 6 == 2 ? 0x2a8c6f : i % 6 == 3 ? 0xb07d12 : i % 6 == 4 ? 0x7d5ba6 : 0x555555
of(i, k) = int(column(1)) == i ? column(k) : NaN
if (link_rate > 0) {
    set arrow 1 from graph 0, first link_rate to graph 1, first link_rate nohead dt 2 lc rgb '#888888'
    set label 1 'link, one direction' at graph 0.01, first link_rate offset 0, 0.5 font ',8' tc rgb '#666666'
}
if (has_measured) {
    plot for [i = 0:lines - 1] coll_csv skip 1 using 2:(of(i, 3)) with lines lw 1.8 lc rgb colour(i) title value(sprintf('name%d', i)), \
         for [i = 0:lines - 1] measured_csv skip 1 using 2:(of(i, 3)) with points pt 6 ps 0.9 lc rgb colour(i) title (i == 0 ? 'measured' : '')
} else {
    plot for [i = 0:lines - 1] coll_csv skip 1 using 2:(of(i, 3)) with linespoints lw 1.8 pt 7 ps 0.4 lc rgb colour(i) title value(sprintf('name%d', i))
}
