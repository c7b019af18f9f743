# A baseline from one run, and the same run against it.
$ ridge guard $ROOT/tests/fuzz/corpus/probe/two_kernels.json --baseline base.yaml --update
base.yaml: 0 kernels rewritten, 3 added, all else as it was
$ ridge guard $ROOT/tests/fuzz/corpus/probe/two_kernels.json --baseline base.yaml
No regression: 3 ok
Measured by ridge-probe on NVIDIA H200, driver 570.86.15; clocks unlocked
Verdicts, worst first
  verdict  kernel       problem                        type  change  baseline       run  reason
  ok       gemm         m=8192 n=8192 k=8192           bf16  +0.0 %  1.391 ms  1.391 ms  +0.0 %, changes under 1.0 % cannot be seen
  ok       kv_read      batch=64 context=4096 page=16  bf16  +0.0 %  250.1 us  250.1 us  +0.0 %, changes under 1.0 % cannot be seen
  ok       static_only                                       -              -         -  no time on either side; no rule is broken
Assumptions
  - clocks were not locked: lock them (nvidia-smi -lgc), or fail on it with --require-locked
  - noise between processes is assumed (0.20 %): fewer than three runs were given
$ grep -v '^#' base.yaml | sed -n 1,9p
schema: ridge.baseline/1
tool: "ridge-probe"
device: "NVIDIA H200"
driver: "570.86.15"
ecc: "on"
clocks: "unlocked"
kernels:
  - kernel: "gemm"
    problem: "m=8192 n=8192 k=8192"

# Efficiency against the roofline of a device.
$ printf 'default: {min_efficiency: 95 %%}\n' >rules.yaml
$ ridge guard $ROOT/tests/fuzz/corpus/probe/two_kernels.json --rules rules.yaml --hw h200-sxm --only 'kv*' --format csv | cut -d, -f1-3,7
verdict,kernel,problem,run_s
regressed,kv_read,batch=64 context=4096 page=16,0.0002501

# Mistakes name the place and what would do.
$ ridge guard
ridge: no run given; 'ridge guard RUN --baseline FILE', or --history FILE alone
[2]
$ ridge guard $ROOT/tests/fuzz/corpus/table/do_bench.csv
ridge: nothing to judge by; give --baseline FILE, --rules FILE or --history FILE
[2]
$ printf 'N,torch\n128,0.5\n' >bare.csv
$ ridge guard bare.csv --rules rules.yaml
ridge: bare.csv:1:1: column 'torch' names no unit; call it 'torch_ms' or 'torch (TFLOPS)', or give the unit as an option (--unit ms)
[2]
$ ridge guard $ROOT/tests/fuzz/corpus/probe/two_kernels.json -b base.yaml --across weather
ridge: option --across 'weather': known are device, driver, clock, cache, tool, ecc
[2]
$ printf 'schema: ridge.baseline/1\nkernels:\n  - kernel: a\n    medain: 1 us\n' >typo.yaml
$ ridge guard $ROOT/tests/fuzz/corpus/probe/two_kernels.json -b typo.yaml
ridge: typo.yaml:4:5: unknown key 'medain'; did you mean 'median'?
[2]
$ ridge guard $ROOT/tests/fuzz/corpus/nsys/kern_sum_old.csv $ROOT/tests/fuzz/corpus/probe/two_kernels.json -b base.yaml
ridge: ROOT/tests/fuzz/corpus/probe/two_kernels.json:1: a run measured by 'ridge-probe' cannot repeat one measured by 'nsys'
[2]

# Real logs: each size is judged by itself, the printed average never.
$ ridge guard $SHARED/inputs/files/nccl_allreduce_h100x4_2nodes_outlier.log --baseline $SHARED/inputs/files/nccl_allreduce_h100x4_2nodes_outlier.log --only all_reduce | head -1
No regression: 62 ok
$ ridge guard $SHARED/inputs/files/ncu_details_leading_stdout_thousands.csv --baseline $SHARED/inputs/files/nsys_cuda_gpu_kern_sum.csv | head -1
No regression seen, but not all could be compared: 7 missing, 1 new

# A value that is no measurement never vanishes: text, JSON and Markdown name its line; nothing is "ok".
$ sed 's/105,38/nan/' $ROOT/tests/fuzz/corpus/ncu/european_details.csv >nan.csv; ridge guard nan.csv -b nan.csv --markdown nan.md | grep -E '^No reg|nan'; grep -c 'nan.csv:8:' nan.md
No regression seen, but not all could be compared: 1 incomparable
  incomparable  gemm(float *, const float *, int)  [...]  no time on either side: Duration 'nan' is no measurement
  - nan.csv:8: gemm(float *, const float *, int) grid=(64,64,1) block=(256,1,1): Duration 'nan' is no measurement
1
$ ridge guard nan.csv -b nan.csv -f json | grep -c 'nan.csv:8: '
1

# A cell of a table that is no time is named, on both sides too; an empty one is a gap.
$ printf 'kernel,time_us\na,nan\nb,4\nc,\n' >cells.csv; ridge guard cells.csv -b cells.csv | sed -n '1p;/incomparable  /p;/cells.csv/p'
No regression seen, but not all could be compared: 1 incomparable, 2 ok
  incomparable  a                      -              -         -  no time on either side: time_us 'nan' is no measurement
  - cells.csv:2: a: time_us 'nan' is no measurement
$ printf 'kernel,time_us\na,\nb,\n' >gaps.csv; ridge guard gaps.csv -b cells.csv
ridge: gaps.csv:1:1: table file without a single measurement
[2]

# A metric of ncu that was asked for and has no value, and a time without a unit, are told.
$ printf '"ID","Process ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum","dram__bytes_read.sum"\n"","","","","","us","Mbyte"\n"0","1","k","(1, 1, 1)","(1, 1, 1)","10.5",""\n"1","1","k","(1, 1, 1)","(1, 1, 1)","10.5","n/a"\n' >m.csv; ridge guard m.csv -b m.csv | grep metric
  - metric 'dram__bytes_read.sum' is empty where it was asked for
  - metric 'dram__bytes_read.sum' is n/a where it was asked for
$ sed '2d' m.csv >bare.csv; ridge guard bare.csv -b m.csv | grep 'without a unit'
  - 'gpu__time_duration.sum' comes without a unit: taken as ns, the unit of its counter

# All kernels slower alike and no clock recorded: it may be the machine, and that is said.
$ for k in a b c d; do for i in 1 2 3 4 5 6 7 8; do echo "$k,$((1000+i))"; done; done | sed '1i kernel,time_us' >before.csv; sed 's/,100/,105/' before.csv >after.csv
$ ridge guard after.csv -b before.csv | grep -E '^Regressed|about the same'
Regressed: 4 regressed, all alike: possibly the machine, see below
  - all 4 kernels are slower by about the same (5.0 to 5.0 %), and no clock is recorded: a lower clock or power limit, or a busy machine, does that too; measure the baseline again as the machine is now, or record clocks, before looking for the change
$ sed 's/d,105/d,100/' after.csv >some.csv; ridge guard some.csv -b before.csv | grep -E '^Regressed|about the same'
Regressed: 3 regressed, 1 ok

# Rates stand in the table as rates.
$ printf 'N,torch (TFLOPS)\n128,200\n' >rate.csv; ridge guard rate.csv -b rate.csv | grep -E '^  (verdict|ok)'
  verdict  kernel  problem  type  change       baseline            run  reason
  ok       torch   N=128          +0.0 %  200.0 TFLOP/s  200.0 TFLOP/s  +0.0 %, changes under 21.2 % cannot be seen
