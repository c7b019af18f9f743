# Latency against load. Variables: figure_title, x_most, y_most, zero_load, bound (channel bound),
# saturation_found (-1: not looked for). points_csv: offered,latency,p99,accepted (latency nan where
# saturated); estimate_csv: offered,latency of the closed form.
# SPDX-License-Identifier: Apache-2.0
is_text = (GPVAL_TERM eq 'dumb')
set datafile missing 'nan'
set title figure_title noenhanced
set xlabel 'offered load (flits per injecting node and cycle)'
set ylabel 'packet latency (cycles)'
set y2label 'accepted (flits per injecting node and cycle)'
set xrange [0:x_most]
set yrange [0:y_most]
set y2range [0:x_most]
set y2tics
set ytics nomirror
set xtics nomirror
set tics scale 0.6
set border 11 lc rgb '#444444'
if (!is_text) set grid lc rgb '#e4e4e4' lt 1 lw 0.7
set key top left Left reverse
if (saturation_found > 0) set arrow 1 from saturation_found, graph 0 to saturation_found, graph 1 nohead dt (6,4) lc rgb '#c0392b'
if (saturation_found > 0) set label 1 'saturation' at saturation_found, graph 0.5 offset -1,0 rotate by 90 center tc rgb '#c0392b'
if (bound < x_most) set arrow 2 from bound, graph 0 to bound, graph 1 nohead dt (2,4) lc rgb '#888888'
if (bound < x_most) set label 2 'channel bound' at bound, graph 0.25 offset -1,0 rotate by 90 center tc rgb '#888888'
plot points_csv skip 1 using 1:2 with linespoints pt 7 ps 0.8 lw 2 lc rgb '#1f4e9c' title 'mean, simulated', \
     points_csv skip 1 using 1:3 with linespoints pt 6 ps 0.7 lw 1 dt (3,3) lc rgb '#1f4e9c' title '99th percentile', \
     estimate_csv skip 1 using 1:2 with lines lw 1.6 lc rgb '#b07d12' title 'closed form', \
     points_csv skip 1 using 1:4 axes x1y2 with linespoints pt 5 ps 0.6 lw 1.2 lc rgb '#2a8c6f' title 'accepted (right axis)'
