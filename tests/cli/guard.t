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
