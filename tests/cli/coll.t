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
ridge: ROOT/NEWS.md:1: no workload: neither a Chakra trace (.et) nor [...]
[2]
$ ridge coll --hw hgx-h200 --op all_gather --workload $ROOT/tests/fuzz/corpus/workload/small.et
ridge: --workload says what is communicated: leave out --op
[2]
