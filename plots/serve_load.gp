# Latency against load. load_csv: served,ttft_p50,ttft_p99,tpot_p50,tpot_p99,e2e_p50,goodput,
# overloaded; one row a load.
# SPDX-License-Identifier: Apache-2.0
set datafile separator ','
set multiplot layout 1,2
set border 3
set tics nomirror scale 0.6
set grid xtics ytics lc rgb '#e4e4e4' lt 1 lw 0.7
set key top left
set xlabel 'requests served (1/s)'
set xrange [0:*]
set logscale y
set format y '%g'
set ylabel 'time to first token (s)'
plot load_csv using 1:2 skip 1 with linespoints pt 7 lw 1.5 lc rgb '#1f4e9c' title 'p50', \
     load_csv using 1:3 skip 1 with linespoints pt 6 lw 1.5 lc rgb '#c0392b' title 'p99', \
     load_csv using ($8 == 1 ? $1 : NaN):3 skip 1 with points pt 2 ps 2 lc rgb '#222222' title 'overloaded'
set ylabel 'time per output token (s)'
plot load_csv using 1:4 skip 1 with linespoints pt 7 lw 1.5 lc rgb '#1f4e9c' title 'p50', \
     load_csv using 1:5 skip 1 with linespoints pt 6 lw 1.5 lc rgb '#c0392b' title 'p99'
unset multiplot
