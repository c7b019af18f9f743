# Hierarchical roofline. Variables: figure_title, figure_note, x_least, x_most, y_least, y_most
# (flop/byte, TFLOP/s). roofs_csv: kind,name,x0,y0,x1,y1,label_x,label_y,angle,rank;
# points_csv: id,name,x,y,share,class,label_x,label_y,line_x,phase (a thin line joins the point and
# line_x,label_y); class 0 compute, 1 device memory, 2 L2, 3 L1, 4 fixed cost, 6 measured.
# row_1 ... row_<point_rows> and row_class_N are the lines of the table.
# SPDX-License-Identifier: Apache-2.0
is_text = (GPVAL_TERM eq 'dumb')
set logscale xy
set xrange [x_least:x_most]
set yrange [y_least:y_most]
set xlabel 'arithmetic intensity (flop/byte)'
set ylabel 'TFLOP/s' offset 0.5
set format x '10^{%T}'
set format y '%g'
if (is_text) set format x '%g'
set title figure_title noenhanced
set tics nomirror scale 0.6
set border 3 lc rgb '#444444'
if (!is_text) set grid xtics ytics lc rgb '#e4e4e4' lt 1 lw 0.7
set lmargin at screen 0.085
set rmargin at screen (has_points && !is_text ? 0.70 : 0.97)
set tmargin at screen 0.92
set bmargin at screen 0.135
unset key

level_colour(i) = int(i) == 0 ? 0x1f4e9c : int(i) == 1 ? 0x2a8c6f : int(i) == 2 ? 0xb07d12 : 0x8a8a8a
class_colour(i) = int(i) == 0 ? 0xc0392b : int(i) == 1 ? 0x1f4e9c : int(i) == 2 ? 0x2a8c6f : int(i) == 3 ? 0xb07d12 : int(i) == 4 ? 0x7d5ba6 : 0x222222
table_x = 0.725
table_step = point_rows > 32 ? 0.0245 * 32 / point_rows : 0.0245
table_y(row) = 0.925 - table_step * row
on_level(k) = strcol(1) eq 'level' ? k : NaN
on_peak(k) = strcol(1) eq 'peak' ? k : NaN
point_scale = GPVAL_TERM eq 'svg' ? 0.65 : 1.0
point_size(share) = point_scale * (0.9 + 1.8 * sqrt(share > 0 ? share : 0))

if (!is_text && has_points) {
    set label 2 point_heading at screen table_x, screen 0.945 font ',10' noenhanced
    do for [i = 1:point_rows] {
        set label (20 + i) value(sprintf('row_%d', i)) at screen table_x, screen table_y(i) font 'DejaVu Sans Mono,8' tc rgb class_colour(value(sprintf('row_class_%d', i))) noenhanced
    }
}

if (!is_text) {
    set label 1 figure_note at screen 0.985, screen 0.022 right font ',9' tc rgb '#777777' noenhanced
    if (has_points) {
        set label 3 'what binds:' at screen 0.085, screen 0.022 font ',9' tc rgb '#777777'
        array binds[6] = ['compute', 'device memory', 'L2', 'L1', 'fixed cost', 'measured']
        array at_x[6] = [0.165, 0.245, 0.365, 0.405, 0.445, 0.535]
        do for [i = 1:6] {
            set label (3 + i) '● ' . binds[i] at screen at_x[i], screen 0.022 font ',9' tc rgb class_colour(i == 6 ? 6 : i - 1)
        }
    }
}

# On a terminal, points get their ids; lines need no colours.
# The layers of the figure as one string, so that a figure without points has none.
layers = "roofs_csv skip 1 using (on_level($3)):4:($5-$3):($6-$4):(level_colour($10)) with vectors nohead lw 2.2 lc rgb variable"
layers = layers . ", roofs_csv skip 1 using (on_peak($3)):4:($5-$3):($6-$4) with vectors nohead lw 1.6 dt (6,4) lc rgb '#c0392b'"
if (is_text) layers = layers . ", roofs_csv skip 1 using (on_level($7)):($8*1.5):2 with labels left"
if (is_text) layers = layers . ", roofs_csv skip 1 using (on_peak($7)):($8*1.15):2 with labels right"
if (!is_text) layers = layers . ", roofs_csv skip 1 using (on_level($7)):8:2:9:(level_colour($10)) with labels rotate variable left offset 0,0.6 font ',9' tc rgb variable noenhanced"
if (!is_text) layers = layers . ", roofs_csv skip 1 using (on_peak($7)):8:2 with labels right offset 0,0.55 font ',9' tc rgb '#c0392b' noenhanced"
if (has_points && is_text) layers = layers . ", points_csv skip 1 using 3:4:1 with labels"
if (has_points && !is_text) layers = layers . ", points_csv skip 1 using 3:4:(point_size($5)):(class_colour($6)) with points pt 7 ps variable lc rgb variable"
if (has_points && !is_text) layers = layers . ", points_csv skip 1 using 3:4:($9-$3):($8-$4) with vectors nohead lw 0.6 lc rgb '#999999'"
if (has_points && !is_text) layers = layers . ", points_csv skip 1 using 7:8:1 with labels left font ',8' tc rgb '#222222'"
plot @layers
