# Predicted against measured, left; error over measured time, right. Variables: figure_title,
# figure_note, least_us, most_us, most_error. rows_csv: measured_us,predicted_us,error_percent,class;
# class 0 from memory or compute, 1 from L2.
# SPDX-License-Identifier: Apache-2.0
is_text = (GPVAL_TERM eq 'dumb')
set tics nomirror scale 0.6
set border 3 lc rgb '#444444'
set grid xtics ytics lc rgb '#e4e4e4' lt 1 lw 0.7
of_class(wanted, value) = int(column(4)) == wanted ? value : NaN
set multiplot layout 1,2 title figure_title noenhanced
set logscale x
set xrange [least_us:most_us]
set xlabel 'measured (us)'
set format x (is_text ? '%g' : '10^{%T}')
set logscale y
set yrange [least_us:most_us]
set ylabel 'predicted (us)'
set format y (is_text ? '%g' : '10^{%T}')
set key top left
set title ' '
plot rows_csv skip 1 using 1:(of_class(0, $2)) with points pt 7 ps 0.22 lc rgb '#1f4e9c' title 'memory or compute', \
     rows_csv skip 1 using 1:(of_class(1, $2)) with points pt 7 ps 0.22 lc rgb '#2a8c6f' title 'from L2', \
     x with lines lc rgb '#c0392b' lw 1.2 title 'equal'
unset logscale y
set yrange [-most_error:most_error]
set format y '%g'
set ylabel 'error (%)'
unset key
set title figure_note font ',10' tc rgb '#777777' noenhanced
plot rows_csv skip 1 using 1:(of_class(0, $3)) with points pt 7 ps 0.22 lc rgb '#1f4e9c', \
     rows_csv skip 1 using 1:(of_class(1, $3)) with points pt 7 ps 0.22 lc rgb '#2a8c6f', \
     0 with lines lc rgb '#c0392b' lw 1.2
unset multiplot
