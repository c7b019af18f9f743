# Course of kernels over runs, relative to the best run of each. Variables: lines, name0 ...
# name<lines-1>, runs, most (highest of relative - 1). trend_csv: series,run,label,relative,throttled.
# SPDX-License-Identifier: Apache-2.0
is_text = (GPVAL_TERM eq 'dumb')
set title 'median time over that of the best run' noenhanced
set xlabel 'run'
set ylabel ''
set format y '%+.1f %%'
set tics nomirror scale 0.6
set xtics rotate by -45 font ',8'
set border 3 lc rgb '#444444'
set grid ytics lc rgb '#e4e4e4' lt 1 lw 0.7
set xrange [0.5:runs + 0.5]
set yrange [most > 0.02 ? -10 * most : -0.2:most > 0.005 ? 108 * most : 0.5]
set key outside bottom horizontal noenhanced font ',9'
set datafile separator ','
colour(i) = i % 6 == 0 ? 0xc0392b : i % 6 == 1 ? 0x1f4e9c : i % 6 == 2 ? 0x2a8c6f : i % 6 == 3 ? 0xb07d12 : i % 6 == 4 ? 0x7d5ba6 : 0x555555
steady(s, i, held) = int(column(1)) == i && int(column(5)) == held ? 100 * (column(4) - 1) : NaN
plot for [i = 0:lines - 1] trend_csv skip 1 using 2:(steady(1, i, 0)):xtic(3) with linespoints lw 1.6 pt 7 ps 0.6 lc rgb colour(i) title value(sprintf('name%d', i)), \
     for [i = 0:lines - 1] trend_csv skip 1 using 2:(steady(1, i, 1)) with points pt 6 ps 0.8 lc rgb colour(i) notitle
