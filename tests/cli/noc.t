# On-chip networks: closed form, simulation, replay, traces.

# The formula of an empty 8 x 8 mesh: 2 + 4 routers, 6.25 routers on average; middle links bind at 4/k.
$ ridge noc mesh:8x8 --closed --links 0
mesh:8x8: 64 nodes, 64 routers
  latency of an empty network, cycles                               27.00
  routers per packet                                                6.250
  bound by the busiest channel, flits per injecting node and cycle  0.500
  bound by the tightest cut, any routing                            0.500
  saturation by the closed form                                     0.425
Assumptions
  - the network names no router: 4 VCs of 8 flits, lookahead routing, one cycle each for VC allocation, switch allocation and traversal

# Past saturation there is no latency, and none is printed.
$ ridge noc mesh:4x4 -t transpose -l 0.2,0.6 --seeds 1 --cycles 400 -f json | grep -E '"(offered_flits|saturated|packet_latency_cycles|hops)"' | sed 's/[0-9.]*[0-9],$/N,/'
      "offered_flits": N,
      "saturated": false,
      "packet_latency_cycles": N,
      "hops": N,
      "offered_flits": N,
      "saturated": true,
      "packet_latency_cycles": null,
      "hops": N,
$ ridge noc torus:4x4 -t tornado -l 0.1 --seeds 2 --cycles 200 -f csv | cut -d, -f1-4 | sed 's/[0-9]*\.[0-9]*/N/g'
offered_flits,accepted_flits,saturated,packet_latency_cycles
N,N,false,14

# Long packets and long links are slow, which is not saturated; no packet at all is an error.
$ ridge noc mesh:4x4 --packet 600 -l 0.1 --seeds 1 --cycles 4000 --links 0 -f csv | cut -d, -f1,3
offered_flits,saturated
0.1,false
$ printf 'kind: noc\nname: far\ntitle: far apart\ntopology: mesh\nextent: [4, 4]\nlink_latency: 200\n' >far.yaml; ridge noc far.yaml -l 0.01 --seeds 1 --links 0 -f csv | cut -d, -f1,3
offered_flits,saturated
0.01,false
$ ridge noc mesh:4x4 --packet 65535 -l 0.3 --cycles 200
ridge: no packet was born in the 600 measured cycles; more cycles or a higher load would do
[2]

# Routing functions of other topologies, and one that deadlocks is named.
$ ridge noc tree:4,2 --routing adaptive -l 0.1
ridge: routing 'adaptive' does not fit this topology; a mesh takes table, adaptive, valiant, romm, xy_yx or adaptive_xy_yx, a torus torus, adaptive or valiant, a tree tree or tree_adaptive, all else table
[2]
$ printf 'router 0 node 0 router 1\nrouter 1 node 1 router 2\nrouter 2 node 2 router 3\nrouter 3 node 3 router 4\nrouter 4 node 4 router 0\n' >ring.any; ridge noc ring.any -t tornado -l 1 --packet 9 --vcs 1 --buffer 2 --cycles 2000 --seeds 1 --links 0 | grep DEADLOCK
DEADLOCK: flits were found that can never move again. Routing 'table' is not free of deadlock with these virtual channels.

# The same seed gives the same bytes, another seed others.
$ ridge noc ring:8 -l 0.1 --cycles 200 -f csv >a; ridge noc ring:8 -l 0.1 --cycles 200 -f csv | cmp - a && ridge noc ring:8 -l 0.1 --cycles 200 -f csv --seed 9 | cmp -s - a || echo differs
differs

# Adaptive routing names what it needs.
$ ridge noc mesh:4x4 -l 0.1 --seeds 1 --cycles 200 --routing adaptive --check | grep adaptive
  - adaptive routing deadlocks when packets share a virtual channel in a row, so routers wait for the tail's credit

# The H100-like network: bytes per second from its ports and clock.
$ ridge noc h100-like --from slice --to sm --closed --links 0 | grep together
  the same bound, all injecting nodes together                      8.986 TB/s

# A trace with dependences, and an operator.
$ printf 'cycle,src,dst,bytes,id,after,delay\n0,0,3,64,a,,\n0,3,0,1,b,a,10\n' >t.csv; ridge noc mesh:4x4 --trace t.csv --flit '32 B' --links 0 | head -2
csv: 2 messages on mesh:4x4, done in 47 cycles (the network names no clock)
  cycles                           47
$ ridge noc h100-like --operator kv-read --bytes '64 KiB' --links 0 | grep -E 'payload  |both'
  payload                                       65.54 kB
  what the cores' ports carry, both directions  29.65 TB/s

# Mistakes.
$ ridge noc
ridge: no network; name one (mesh:8x8, a file of hw/noc, an anynet file) or give --replay CURVE.csv
[2]
$ ridge noc mesh:8by8
ridge: network 'mesh:8by8' is not understood; mesh:8x8, torus:4x4x4, ring:16, crossbar:16, fly:4,3 (radix, stages) and tree:4,3 (radix, levels) are
[2]
$ ridge noc mesh:8x8 -l 0.1,x
ridge: option --load '0.1,x': write loads in flits per node and cycle, above 0 and up to 1, as 0.1,0.2
[2]
$ ridge noc torus:8x8 --vcs 1 -l 0.1
ridge: class 0 has '1' virtual channels; routing 'torus' needs 2 or more to be free of deadlock
[2]
$ ridge noc h100-like --from cu --closed
ridge: the network has no group 'cu'; it has all, sm, slice, mem, nvlink
[2]
$ printf 'cycle,src,dst,bytes\n0,0,99,8\n' >t.csv; ridge noc mesh:4x4 --trace t.csv --flit '32 B'
ridge: t.csv:2:5: node '99' is not in the network; all has 0 to 15
[2]
$ ridge noc mesh:4x4 --trace t.csv
ridge: the network does not say how many bytes a flit has; give it with --flit '32 B'
[2]

# A reference curve, every parameter from its columns.
$ ridge noc --replay $SHARED/noc/curves/x16_hot_p1_v4_b8.csv --seeds 2 --strict | head -3
6 of 6 judged rows are within tolerance (latency 2 % or 0.5 cycles up to 70 % of saturation, 8 % up to 90 %; accepted load 3 % past it).
  rows judged                                                      6
  rows within tolerance                                            6
$ sed -n '1p;2s/,0.02,latency/,1.2,throughput/p' $SHARED/noc/curves/h32_rw_p15_v4_b8.csv >rw.csv; ridge noc --replay rw.csv --topology $SHARED/noc/hier32.any -f csv | cut -d, -f1,2   # flits of a transaction, which are six
offered_flits,saturated
1.2,true
$ printf 'topology,k\nmoebius,4\n' >c.csv; ridge noc --replay c.csv
ridge: c.csv:[...]column[...]
[2]

# What an accelerator's network feeds it with.
$ ridge noc --hw h100-sxm | head -7
NVIDIA H100 SXM5 80GB: what its on-chip network (H100-like network (132 SMs, 80 L2 slices)) carries, without contention at the caches and the memory themselves
Feeds
  what                    by the network [...]
  L2 to units, bound          8.986 TB/s [...]
  L2 to units, sustained      7.636 TB/s [...]
  memory to L2, bound         3.370 TB/s   3.350 TB/s  1.006
  links to L2, bound          505.4 GB/s   450.0 GB/s  1.123
$ ridge noc --hw a10
ridge: ROOT/hw/a10.yaml: a10 names no on-chip network; add noc: {file: NAME}
[2]

# The H100-like network says what it takes for granted: SMs send to slices.
$ ridge noc h100-like -l 0.1 --seeds 1 --cycles 200 --links 0 | grep 'slices alike'
  - no --traffic, --from or --to was given: each sm sends to all slices alike

# Several classes, each with its rates and channels.
$ ridge noc h100-like --workload $ROOT/examples/41-noc-traffic.yaml -l 0.2 --seeds 1 --cycles 200 --links 0 -f csv | cut -d, -f1,3
offered_flits,saturated
0.2,false

# A flit without bytes carries nothing.
$ sed 's/flit: {value: 64 B/flit: {value: 0 B/' $ROOT/hw/noc/h100-like.yaml >flit.yaml; ridge noc flit.yaml --closed
ridge: flit.yaml:7:7: flit is not above 0
[2]
