# What people who size, measure and compare such systems stumbled over, and what ridge does instead.

# KV of a token: 2 x layers x KV heads x head size x bytes, never query heads, never the embedding's width.
$ for m in llama-2-7b llama-3.1-8b; do ridge show $m -f json | grep '^  "kv_bytes_per_token"'; done
  "kv_bytes_per_token": 524288.0,
  "kv_bytes_per_token": 131072.0,

# A latent cache is the latent and the rotated part once; expanded keys and values only when asked; which is said.
$ for l in mla_latent mla_expanded; do ridge show deepseek-v3 --kv-layout $l -f json | grep -E '^  "kv_(layout|bytes_per_token)"'; done
  "kv_layout": "mla_latent",
  "kv_bytes_per_token": 70272.0,
  "kv_layout": "mla_expanded",
  "kv_bytes_per_token": 4997120.0,

# What fits is given with its definition: type and layout of the cache, the engine's share, the reserve.
$ ridge estimate --hw h200-sxm --model gemma-3-27b --batch 8 | grep -oE 'KV bf16 \(ideal\)|reserve [0-9.]+ GB|takes 0.90 of the device.s memory|a sequence fits when'
KV bf16 (ideal)
reserve 2.50 GB
takes 0.90 of the device's memory
a sequence fits when

# A head size that the configuration names wins over hidden / heads (1024 / 16 is 64, it is 128).
$ ridge show qwen3-0.6b -f json | grep '^  "kv_bytes_per_token"'
  "kv_bytes_per_token": 114688.0,

# Each layer is of its own kind: windows, recurrent state, latent, whole.
$ for m in gemma-3-27b qwen3.5-35b-a3b deepseek-v3 jamba-v0.1; do ridge show $m -f csv; done | grep -oE '(window|full|linear|mla|mamba1): ' | sort | uniq -c | sed 's/^ *//'
[...] full: 
[...] linear: 
[...] mamba1: 
[...] mla: 
[...] window: 

# Requests a second times the time each stays are the requests inside, and their KV is the memory they hold.
$ ridge plan llama-3.1-8b --gpu h100-sxm --rate 5/s --limit 200 | grep -oE 'requests inside at once \(rate x time\)|KV memory that they hold'
requests inside at once (rate x time)
KV memory that they hold

# Types have names; a bare width is refused, so that bits cannot be taken for bytes.
$ ridge estimate --hw h100-sxm --model llama-3.1-8b --kv-type 8
ridge: option --kv-type: format '8' is not known; did you mean 'fp8'?
[2]

# One user, how many at once, and all of them together are three lines.
$ ridge estimate --hw h200-sxm --model llama-3.1-8b --batch 8 | grep -cE '^  (one user alone, tokens/s|all users, decoding, tokens/s|most sequences of this length that fit) '
3

# A model and a GPU are question enough; the least number of GPUs by type is the answer.
$ ridge plan llama-3.1-70b --gpu rtx-4090 -q | grep -oE '^llama-3.1-70b in [a-z0-9_]+|[0-9]+ x rtx-4090 \(tp[0-9]+\) is the least' | head -6
llama-3.1-70b in bf16
8 x rtx-4090 (tp8) is the least
llama-3.1-70b in fp8
4 x rtx-4090 (tp4) is the least
llama-3.1-70b in int4_g128
2 x rtx-4090 (tp2) is the least

# A prediction says whether its constants were measured on that device; where nothing was, "not validated".
$ for h in h200-sxm h100-sxm mi300x; do ridge estimate --hw $h --model llama-3.1-8b | sed -nE 's/^  band of decoding.*(validated on this device|carried to another device|  not validated).*/\1/p'; done
validated on this device
carried to another device
  not validated
$ ridge estimate --hw h100-sxm --model llama-3.1-8b | grep 'not validated on'
  - constants borrowed from h200-sxm: not validated on h100-sxm

# Time to first token is split: queue, earlier chunks, the step that writes it.
$ ridge serve --step-time 20ms --arrivals poisson:40/s --prompt 100 --answer 10 --limit 100 --kv-blocks 200 -f json | awk '/"(ttft_s|ttft_queue_s|ttft_prefill_s|ttft_first_step_s)"/ { k = $1 } k != "" && $1 == "\"mean\":" { sub(/,/, "", $2); v[k] = $2; k = "" } END { d = v["\"ttft_s\":"] - v["\"ttft_queue_s\":"] - v["\"ttft_prefill_s\":"] - v["\"ttft_first_step_s\":"]; print (d * d < 1e-18 ? "adds up" : d) }'
adds up

# Time per output token has two definitions, and two names.
$ ridge estimate --hw h200-sxm --model llama-3.1-8b --ideal -f json | grep -oE '"tpot_(excl|incl)_first_s"'
"tpot_excl_first_s"
"tpot_incl_first_s"

# A device without bf16 runs it in fp16 and says so; what nothing can stand in for is refused, with what it has.
$ for h in t4 v100-sxm2; do ridge estimate --hw $h --model llama-3.2-1b | grep -E '^weights|products'; done
weights fp16, KV fp16 (ideal); batch 1, 2048 tokens of context and 256 of output each
  - t4 has no bf16 products: what is in it runs in fp16
weights fp16, KV fp16 (ideal); batch 1, 2048 tokens of context and 256 of output each
  - v100-sxm2 has no bf16 products: what is in it runs in fp16
$ ridge serve --hw t4 --model llama-3.2-1b --limit 10 --arrivals poisson:1/s --prompt 100 --answer 20 -q | grep products
  - t4 has no bf16 products: what is in it runs in fp16
$ ridge plan llama-3.2-1b --gpu t4 -q | grep -oE 'in fp16 .* is the least|t4 has no bf16.*'
in fp16 (2.47 GB of weights, as stored): 1 x t4 (tp1) is the least
t4 has no bf16 products: fp16 in its place
$ ridge estimate --hw v100-sxm2 --model llama-3.2-1b --act-type int8
ridge: v100-sxm2 has no matrix rate for 'int8'; it multiplies fp16, and weight-only formats in one of these
[2]

# Policies of engines are files with the versions that they hold for.
$ ridge show vllm | grep '^  note'
  note             Defaults of vLLM [...]

# Hybrid models: what the model needs and what engines set aside are two figures (6.09 and 12.00 GiB).
$ for l in window_capped uniform_page; do ridge show gpt-oss-20b --context 8192 --kv-layout $l -f json | awk '/^  "kv_bytes"/ { printf "%.2f\n", $2 * 32 / 2^30 }'; done
6.09
12.00

# A window holds the lesser of itself and the length: more length is never less, capped is never above whole.
$ for c in 16 512 1024 1025 8192; do a=$(ridge show gemma-3-27b --context $c --kv-layout window_capped -f json | awk '/^  "kv_bytes"/ { print $2 + 0 }'); b=$(ridge show gemma-3-27b --context $c --kv-layout uniform_page -f json | awk '/^  "kv_bytes"/ { print $2 + 0 }'); echo "$a $b"; done | awk '{ print ($1 >= last ? "grows" : "shrinks"), ($1 <= $2 ? "within" : "above"); last = $1 }' | sort | uniq -c | sed 's/^ *//'
5 grows within

# Without fast links two replicas of tp 4 give more than one of tp 8.
$ for r in "8 1" "4 2"; do set -- $r; ridge serve --model qwen2.5-72b --hw pcie-a100-80gb --tp $1 --replicas $2 --arrivals at-once --prompt 500 --answer 100 --limit 100 -q -f json | awk '/^  "output_tokens_per_s"/ { print $2 + 0 }'; done | sort -gc && echo 'tp 4 twice'
tp 4 twice

# Generated tokens and all tokens are two fields; with more users each one is slower.
$ ridge estimate --hw h200-sxm --model llama-3.1-8b --ideal -f json | grep -oE '"(output|total)_tokens_per_s"'
"output_tokens_per_s"
"total_tokens_per_s"
$ for b in 1 4 16 64 128; do ridge estimate --hw h200-sxm --model llama-3.1-8b --batch $b -f json | awk '/"tpot_excl_first_s"/ { print $2 + 0 }'; done | sort -gc && echo slower
slower

# Loads at which each user is as fast as without load make a vertical line of a frontier; that is said.
$ ridge serve --step-time 20ms --arrivals poisson:4/s --prompt 500 --answer 100 --limit 200 --kv-blocks 4000 --load 0.5,1 -q | grep 'no longer'
  - the time of a token at load 1 is no longer than at 0.5: these loads say nothing about speed per user against throughput

# Axes are the machine's: two figures of one machine can be laid over each other; a point outside is named.
$ printf 'name,flops,bytes,time_us\nfar,1e3,1e15,1\n' >far.csv; printf 'name,flops,bytes,time_us\nnear,1e12,1e9,2000\n' >near.csv
$ for p in far near; do ridge roofline --hw h200-sxm --measured $p.csv --plot $p.svg >$p.txt; grep -E '^set [xy]range' $p.gp | sort -u >$p.axes; done; [ -s far.axes ] && cmp far.axes near.axes && grep -o 'lies outside the axes' far.txt
lies outside the axes

# A kernel of a type without a ceiling is reported, not dropped, and the others are drawn.
$ printf 'name,flops,bytes,time_us,dtype\nint,1e12,1e9,2000,int32\ngemm,1e12,1e9,2000,bf16\n' >k.csv; ridge roofline --hw h200-sxm --measured k.csv | grep -E '^  (m[0-9]|- measured)' | cut -c1-42
  m1  gemm      measured  bf16      1     
  - measured kernel int is not on the plot

# The size of a line is the hardware file's, and printed: 128 B in L2.
$ ridge roofline --hw h200-sxm | sed -nE 's/^  l2 .* (128.0 B) .*/\1/p'
128.0 B

# Ceilings follow the clock; one quoted at a lower clock of its own stays until the clock is below that.
$ for c in 1.98 1.9 0.99; do ridge roofline --hw h100-sxm --set "hw.clocks.boost=$c GHz" | awk '$1 == "bf16_fp32" || $1 == "fp32_fp32" { printf "%s ", $3 } END { print "" }'; done
989.4 66.91 
989.4 64.21 
535.2 33.45 
$ ridge show h100-sxm -f json >/dev/null && ridge estimate --hw h100-sxm --model llama-3.1-8b --ideal --set hw.clocks.boost=x0.5 -f json | awk '/"ttft_s"/ { print ($2 + 0 > 0.04 ? "slower" : "as fast") }'
slower

# Peaks are kept by input and accumulate type.
$ ridge roofline --hw rtx-4090 | grep -cE '^  (fp16_fp32|fp16_fp16|int4_int32|int8_int32|tf32_fp32) +matrix'
5

# Attention reads KV heads: 32 query heads on 8 read a quarter of what 32 on 32 read.
$ for m in llama-2-7b llama-3.1-8b; do ridge estimate --hw h200-sxm --model $m --ideal --context 8192 --output-tokens 1 -f csv -q | awk -F, '$1 == "attention" { print $7 }'; done | awk '{ v[NR] = $1 } END { printf "%.2f\n", v[1] / v[2] }'
4.00

# A log's average over sizes is not used: sizes are compared, each by itself (average 48, plateau near 148).
$ ridge coll --hw hgx-h100 --nodes 2 --ranks 4 --ranks-per-node 2 --measured $SHARED/inputs/files/nccl_allreduce_h100x4_2nodes_outlier.log | grep -o 'the average bus bandwidth is not used.*'
the average bus bandwidth is not used: it mixes all sizes

# A device without measurements is predicted with a warning; a model without room is refused before any work.
$ ridge serve --hw l4 --model mixtral-8x7b --ep 2 --limit 10 -q
ridge: no memory for KV: weights [...]
[1]

# A trace with nothing to do is an error, not a run of 0 seconds.
$ printf 'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,0,0\n' >empty.csv; ridge serve --hw h100-sxm --model llama-3.1-8b --trace empty.csv
ridge: empty.csv:1:1: no request in it (1 rows, 1 without output)
[2]

# Any size of a collective has a time above 0; outside of what was measured it says so.
$ ridge coll --hw hgx-h200 --bytes '17 B' --bytes '777 kB' --bytes '100 GB' -f csv -q | awk -F, 'NR > 1 { print ($4 > 0 ? "above 0" : "not"), $NF }'
above 0 false
above 0 true
above 0 false

# Above saturation there is no latency, only what gets through.
$ ridge noc mesh:4x4 -l 0.95 --seeds 1 --cycles 200 --links 0 -f json | grep -oE '"(saturated|packet_latency_cycles)": (true|null)'
"saturated": true
"packet_latency_cycles": null

# The estimate says that queueing is left out; ridge says how long it took itself, outside of the result.
$ ridge estimate --help | grep -o 'Queueing is left out'
Queueing is left out
$ ridge estimate --hw h200-sxm --model llama-3.1-8b --own-time -o /dev/null
ridge: took [...] s

# A comparison needs the device that was measured.
$ ridge validate --op gemm --measured gemm.csv
ridge: option --hw is missing; give --hw DEVICE --measured FILE.csv, or --table DIR
[2]
