# KV memory over time. kv_csv: time_s,used_blocks,running,waiting,internal_fragmentation;
# kv_blocks: blocks of the replica, 0 unlimited.
# SPDX-License-Identifier: Apache-2.0
is_text = (GPVAL_TERM eq 'dumb')
set datafile separator ','
set multiplot layout 2,1
set border 3
set tics nomirror scale 0.6
set grid xtics ytics lc rgb '#e4e4e4' lt 1 lw 0.7
set key top left
set xlabel 'time (s)'
set ylabel 'KV blocks'
set yrange [0:*]
if (kv_blocks > 0) set arrow from graph 0, first kv_blocks to graph 1, first kv_blocks nohead lc rgb '#c0392b' dt 2
plot kv_csv using 1:2 skip 1 with lines lw 1.5 lc rgb '#1f4e9c' title 'in use', \
     kv_csv using 1:($2 * $5) skip 1 with lines lw 1 lc rgb '#b07d12' title 'reserved, not filled'
unset arrow
set ylabel 'requests'
plot kv_csv using 1:3 skip 1 with lines lw 1.5 lc rgb '#2a8c6f' title 'running', \
     kv_csv using 1:4 skip 1 with lines lw 1.5 lc rgb '#7d5ba6' title 'waiting'
unset multiplot
