# Roofs, operators and measured kernels in one figure; data and script lie beside it.

$ ridge roofline --hw h200-sxm -f csv | cut -d, -f1,2,5
name,bandwidth_bytes_per_s,ridge_bf16_flops_per_byte
[...]
hbm,4800000000000,206.125

$ ridge roofline --hw h200-sxm --model llama-3.1-8b --phase decode --plot r.svg -q | tail -12 | head -1 && ls
[...]
r.gp
r.points.csv
r.roofs.csv
r.svg

$ grep -c '<svg' r.svg; grep -c . r.points.csv
[...]
[...]

$ printf 'name,flops,bytes,time_us\ngemm,1e12,1e9,2000\ncopy,0,1e9,300\n' > k.csv; ridge roofline --hw h200-sxm --measured k.csv | tail -7
Points
  id  operator  phase     type  count  time of one  flop/byte           rate  of roofline  bound
  m1  gemm      measured  bf16      1     2.000 ms       1000  500.0 TFLOP/s       50.5 %  measured
Assumptions
  - measured rows are of type bf16: the table has no column dtype
  - measured kernel copy is not on the plot: it has bytes but no flops, so its intensity is 0

$ ridge roofline --hw h200-sxm --measured missing.csv
ridge: missing.csv: cannot be [...]: No such file or directory
[2]

$ printf 'name,flops,bytes,time_us\ngemm,1e12,x,2000\n' > k.csv; ridge roofline --hw h200-sxm --measured k.csv
ridge: k.csv:2:11: bytes 'x' is not a finite number
[2]

$ ridge roofline --hw h200-sxm --plot r.bmp
ridge: figure 'r.bmp' should end in .svg, .png, .pdf or .txt
[2]

# Roofs that a tool measured, a level that is none left out with its reason.
$ ridge roofline --hw v100-sxm2 --ceilings $SHARED/inputs/files/ert_broadwell_report.txt --plot e.svg | grep -A6 'Measured roofs' | grep -c 'L4'; grep -c 'measured' e.roofs.csv
1
[...]

$ ridge roofline --hw h200-sxm --measured $SHARED/inputs/files/ncu_raw_page_units_row.csv | grep -c 'is not on the plot'
2

# A model's points are the operators of its step, engine and arrangement counted: name, count and
# time are those of estimate, whatever is split how.
$ for a in '--hw hgx-h200 --model deepseek-v3 --tp 8 --ep 8 --attention-dp' '--hw dgx-a100-80gb --model jamba-v0.1 --tp 2 --pp 2 --engine sglang'; do ridge estimate $a --batch 64 --isl 4096 --osl 2 -f csv 2>/dev/null | awk -F, '$5 != "link" && $6 > 0 { print $1 "," $2 "," $3 }' >e.csv; ridge roofline $a --batch 64 --context 4097 --phase decode -f csv | awk -F, '{ print $2 "," $5 "," $6 }' >r.csv; sed -i 1d r.csv; grep -v '^name' e.csv | cmp - r.csv && grep -c . r.csv; done
20
18

$ ridge roofline --hw hgx-h200 --model llama-3.1-70b --tp 8 --phase decode | grep -o 'communication, which has no place under the roofs'
communication, which has no place under the roofs

# Measured rows that cannot be are refused in place; a type that is taken is told.
$ printf 'name,flops,bytes,time_us\nk,1e9,1e6,-1\n' >neg.csv; ridge roofline --hw h100-sxm --measured neg.csv
ridge: neg.csv:2:11: '-1' is under 0
[2]
$ printf 'name,flops,bytes,time_us\nk,1e9,1e6,0\n' >zero.csv; ridge roofline --hw h100-sxm --measured zero.csv
ridge: zero.csv:2:11: a time of '0' gives no rate; leave the row out
[2]
$ printf 'name,flops,bytes,time_us\nk,1e9,1e6,10\n' >good.csv; ridge roofline --hw h100-sxm --measured good.csv | grep dtype
  - measured rows are of type bf16: the table has no column dtype
