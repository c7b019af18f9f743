# Links of an on-chip network by utilisation. Variables: figure_title, router_count.
# links_csv: from,to,x0,y0,dx,dy,utilisation; routers_csv: router,x,y,exit_utilisation.
# SPDX-License-Identifier: Apache-2.0
is_text = (GPVAL_TERM eq 'dumb')
set title figure_title noenhanced
unset xtics
unset ytics
unset border
unset key
set palette defined (0 '#dfe8f3', 0.35 '#7fb2d9', 0.6 '#f2c14e', 0.8 '#e8743b', 1 '#a3122b')
set cbrange [0:1]
set cblabel 'share of the link that is busy'
set offsets graph 0.06, graph 0.06, graph 0.08, graph 0.08
box = router_count > 100 ? 0.9 : router_count > 40 ? 1.5 : 2.6
if (is_text) {
    plot links_csv skip 1 using 3:4:5:6 with vectors nohead, routers_csv skip 1 using 2:3:1 with labels
} else {
    plot links_csv skip 1 using 3:4:5:6:7 with vectors head filled size screen 0.006,20,60 lw 3 lc palette, \
         routers_csv skip 1 using 2:3 with points pt 5 ps (box + 0.3) lc rgb '#444444', \
         routers_csv skip 1 using 2:3:4 with points pt 5 ps box lc palette, \
         routers_csv skip 1 using 2:3:(router_count > 100 ? '' : stringcolumn(1)) with labels font ',8' tc rgb '#111111'
}
