# Collectives: what is printed, and what is refused.

# An all-reduce of one node, sizes as nccl-tests counts them; NVLS is named where busbw passes the link.
$ ridge coll --hw hgx-h200 --bytes '1 KiB' --bytes '1 GiB' | head -5
all_reduce of 1.07 GB over 8 ranks: [...] ms, busbw [...] GB/s, in_switch, limited by switch
Collectives
  op          ranks      size [...]
  all_reduce      8  1.024 kB [...]  ring       ll        latency [...]
  all_reduce      8  1.074 GB [...]  in_switch  simple    switch [...]
$ ridge coll --hw hgx-h200 --bytes '1 GiB' | grep -c 'above the link rate'
1
$ ridge coll --hw hgx-h200 --bytes '1 MiB' -f json | grep -E '"(op|ranks|bytes|algorithm|limit|in_validated_range)"'
      "op": "all_reduce",
      "ranks": 8,
      "bytes": 1048576.0,
      "algorithm": "ring",
      "limit": "latency",
      "in_validated_range": true
$ ridge coll --hw hgx-h200 --bytes '1 MiB' -f csv | head -1
op,ranks,bytes,time_s,algbw_bytes_per_s,busbw_bytes_per_s,algorithm,protocol,limit,steps,latency_s,sent_bytes,above_link,in_validated_range

# Outside of what was validated it says so.
$ ridge coll --hw hgx-h200 --bytes '8 GiB' | grep extrapolated
  - points outside 512 B to 512 MiB, 2 to 8 ranks of one node are extrapolated: not validated

# The ideal ring and its simulation are one.
$ ridge coll --hw hgx-h200 --library ideal -a ring --simulate --bytes '450 MB' -f csv | cut -d, -f1-4,14-
op,ranks,bytes,time_s,in_validated_range,simulated_time_s
all_reduce,8,450000000,0.001757,true,0.001757

# 2048 devices, flat and by level.
$ ridge coll --hw hgx-h100 --nodes 256 --ranks 2048 --bytes '4 GB' -a hierarchical | head -1
all_reduce of 4.00 GB over 2048 ranks: [...] ms, busbw [...] GB/s, hierarchical, limited by network
$ ridge coll --hw hgx-h100 --nodes 256 --ranks 2048 --bytes '4 GB' | head -1
all_reduce of 4.00 GB over 2048 ranks: [...]

# Refusals.
$ ridge coll --hw hgx-h200 --ranks 9 --bytes '1 MiB'
ridge: 9 ranks, 1 device apart, do not fit on the 8 devices of 'hgx-h200'; give it more nodes (--nodes)
[2]
$ ridge coll --hw hgx-h200 --op all_redoce
ridge: collective 'all_redoce' is not known, 'all_reduce' is near; all_reduce, [...]
[2]
$ ridge coll --hw hgx-h200 -a torus --bytes '1 MiB'
ridge: all_reduce by torus over 8 ranks: the cluster is no torus
[2]
$ ridge coll --hw hgx-h200 -a halving_doubling --ranks 6 --bytes '1 MiB'
ridge: all_reduce by halving_doubling over 6 ranks: halving-doubling needs a power of two of ranks
[2]
$ ridge coll --hw hgx-h200 --bytes 1024
ridge: [...]'1024'[...]
[2]
$ ridge coll --hw hgx-h200 --ranks 2,x --bytes '1 MiB'
ridge: option --ranks: 'x' is no number of ranks
[2]

# One rank in the singular.
$ ridge coll --hw hgx-h200 --ranks 1 --bytes '1 MiB' | grep -o 'over 1 rank[^:]*'
over 1 rank

# Workloads of other simulators: what is exposed, each collective once, and where the numbers are from.
$ ridge coll --hw hgx-h200 --nodes 2 --workload $ROOT/tests/fuzz/corpus/workload/layers.txt | head -12
one rank of the simai workload ends after [...] ms; [...] % of it is communication with the device idle
  last node ends        [...]
  device                2.700 ms
  host                  0.000 s
  network               [...]
  network, device idle  [...]
Communications, the most time first
  op          group  ranks      size  count [...]
  all_reduce  dp         4  134.2 MB      1 [...]
  all_reduce  dp_ep      2  67.11 MB      1 [...]
  all_reduce  tp         4  33.55 MB      2 [...]
  all_to_all  ep         2  16.78 MB      2 [...]
$ ridge coll --hw hgx-h200 --workload $ROOT/tests/fuzz/corpus/workload/small.et | grep -c 'process group\|bare roofline\|does not say'
3
$ ridge coll --hw hgx-h200 --workload $ROOT/tests/fuzz/corpus/workload/layers.txt
ridge: 4 ranks, 4 devices apart, do not fit on the 8 devices of 'hgx-h200'; give it more nodes (--nodes)
[2]
$ ridge coll --hw hgx-h200 --workload $ROOT/NEWS.md
ridge: ROOT/NEWS.md:1:1: no workload: neither a Chakra trace (.et) nor [...]
[2]
$ ridge coll --hw hgx-h200 --op all_gather --workload $ROOT/tests/fuzz/corpus/workload/small.et
ridge: --workload says what is communicated: leave out --op
[2]

# Logs as nccl-tests and rccl-tests have written them over the years: colons in the header of old
# releases, several tests in one file, rows of which one is spoilt, no command line and no ranks.
$ printf '# nThread: 1 nGpus: 2 minBytes: 1048576 maxBytes: 1048576 step: 2(factor) warmup iters: 5 iters: 20 validation: 1\n#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n     1048576        262144   float     sum    51.24   20.46   20.46  1e-07    50.61   20.72   20.72  1e-07\n' >old.log; ridge coll --hw hgx-h100 --measured old.log -f csv | cut -d, -f1-3
op,ranks,bytes
all_reduce,2,1048576

$ for t in all_gather reduce_scatter; do printf '$ ./build/%s_perf -b 1M\n# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20\n# Using devices\n#  Rank  0 Group  0 Pid 1 on a device  0 [0x1b] NVIDIA H100\n#  Rank  1 Group  0 Pid 2 on a device  1 [0x43] NVIDIA H100\n#  Rank  2 Group  0 Pid 3 on b device  0 [0x1b] NVIDIA H100\n#  Rank  3 Group  0 Pid 4 on b device  1 [0x43] NVIDIA H100\n#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n     1048576        262144     float    none      -1    61.24   17.12   12.84      0    60.61   17.30   12.97    N/A\n' $t; done >two.log; ridge coll --hw hgx-h100 --measured two.log | grep -E 'of 1.05 MB|on each'
all_gather of 1.05 MB over 4 ranks: [...]
reduce_scatter of 1.05 MB over 4 ranks: [...]
  - two.log: 2 ranks on each of 2 nodes

$ printf '#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n     1048576        262144     float    none      -1    61.24   17.12   12.84      0    60.61   17.30   12.97    N/A\n     2097152        524288     float    none      -1    6l.24   17.12   12.84      0    60.61   17.30   12.97    N/A\n' >bare.log; ridge coll --hw hgx-h100 --measured bare.log
ridge: bare.log:2:6: nothing before this row says which operation ran ("all_reduce_perf ..."), nor do its rates over the ranks; give --op OP
[2]
$ ridge coll --hw hgx-h100 --op all_gather --measured bare.log
ridge: bare.log:2:6: the log lists no ranks ("# Rank 0 ..."); give --ranks N
[2]
$ ridge coll --hw hgx-h100 --op all_gather --ranks 4 --measured bare.log | grep -E 'of 1.05|bare.log:3|left out'
all_gather of 1.05 MB over 4 ranks: [...]
  - bare.log:3:57: collective ranks=0 bytes=2097152 out-of-place: time '6l.24' is no measurement
  - bare.log: 1 row without a time is left out
