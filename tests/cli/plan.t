# With a model and a device alone: does it fit, on how many, how fast for one user, for many?
$ ridge plan llama-3.1-70b --gpu h100-sxm | head -3 | sed -E 's/[0-9.]+ tokens/N tokens/g; s/[0-9.]+ if/N if/; s/[0-9]+ seq/N seq/'
llama-3.1-70b in bf16 (141 GB of weights, as stored): 2 x h100-sxm (tp2) is the least. One user: N tokens/s (N if memory alone decided); N sequences at once; together N tokens/s.
llama-3.1-70b in fp8 (72.7 GB of weights): 2 x h100-sxm (tp2) is the least. One user: N tokens/s (N if memory alone decided); N sequences at once; together N tokens/s.
llama-3.1-70b in int4_g128 (39.8 GB of weights): 1 x h100-sxm (tp1) is the least. One user: N tokens/s (N if memory alone decided); N sequences at once; together N tokens/s.

# A 70B model in 16 bit reads 139 GB of layers and head a token (the input embedding is a lookup):
# two A100 PCIe of 1.935 TB/s give 3870 / 139 = 28 tokens/s at the very most, so that 30 is out of reach.
$ ridge plan llama-3.1-70b --gpu a100-pcie-80gb --isl 1 --tp 2 --pp 1 --weight-type bf16 -f csv | awk -F, 'NR==1{for(i=1;i<=NF;i++)c[$i]=i} NR==2{b=$c["single_stream_bound_tokens_per_s"];s=$c["single_stream_tokens_per_s"];printf "%.0f %s\n",b,(s>0.5*b&&s<b)?"below":"odd"}'
28 below

# Nowhere to go: exit 1.
$ ridge plan llama-3.1-405b --gpu rtx-4090 --weight-type bf16 2>/dev/null | head -1
llama-3.1-405b in bf16 (812 GB of weights): does not fit on 'pcie-rtx-4090', [...] devices of [...] each.
$ ridge plan llama-3.1-405b --gpu rtx-4090 --weight-type bf16 -q >/dev/null
ridge: 'llama-3.1-405b' fits on no machine of the list
[1]

# With traffic and limits: the keys that scripts rely on.
$ ridge plan llama-3.1-8b --hw h100-sxm,l40s --rate 20/s --isl 500 --osl 60 --limit 200 --ttft p95:500ms --tpot p95:40ms -f json >plan.json; grep -oE '"(schema|winner|runners_up|frontier|feasible|lost_because|launch|sensitivity|saturation_requests_per_s)":' plan.json | sort -u | tr -d '\n'
"feasible":"frontier":"launch":"lost_because":"runners_up":"saturation_requests_per_s":"schema":"sensitivity":"winner":
$ grep -c '"feasible": *true\|"feasible":true' plan.json
1

# The same in a file; the command line wins over it. Same question, same bytes, however many threads.
$ printf 'kind: plan\nmodel: llama-3.1-8b\nhw: [h100-sxm, l40s]\nrate: 90/s\nisl: 500\nosl: 60\nlimit: 200\nttft: p95:500ms\ntpot: [p95:40ms]\n' >p.yaml; ridge check p.yaml | head -1
p.yaml: ok, plan for llama-3.1-8b, 2 limits[...]
$ OMP_NUM_THREADS=1 ridge plan p.yaml --rate 20/s >one.txt; OMP_NUM_THREADS=3 ridge plan p.yaml --rate 20/s >three.txt; cmp one.txt three.txt && ridge plan llama-3.1-8b --hw h100-sxm,l40s --rate 20/s --isl 500 --osl 60 --limit 200 --ttft p95:500ms --tpot p95:40ms | cmp - one.txt && echo same
same

# What cannot be: exit 1, and the nearest that can.
$ ridge plan llama-3.1-8b --hw l4 --rate 2/s --isl 500 --osl 60 --limit 200 --tpot p95:2ms -q >/dev/null
ridge: nothing keeps the limits; the nearest is [...] x l4: [...] with p95 tpot [...] instead of 2.00 ms, even for one request alone
[1]

# Nothing to choose from: the reason is the arrangement, or the memory, never the one for the other.
$ ridge plan llama-3.1-8b --hw l4 --rate 1/s --tp 3 -q >/dev/null
ridge: nothing keeps the limits; no arrangement can be: l4: tp '3' does not divide the 32 query heads [...]
[1]
$ ridge plan llama-3.1-70b --hw l4 --rate 1/s --tp 1 --pp 1 -q >/dev/null
ridge: nothing keeps the limits; no candidate fits in memory; the nearest is [...] a device for weights and activations, where [...] can be had; [...]
[1]

# A device that lacks a type is left out with its reason; it does not end the search.
$ ridge plan llama-3.1-8b --hw v100-sxm2,l4 --weight-type fp8 --kv-type fp8 --rate 1/s --goal devices --isl 200 --osl 20 --limit 100 | grep -e 'v100-sxm2 .*tp1 ' -e 'replica of' -m 2
1 x l4: 1 replica of tp1[...]
[...] v100-sxm2 [...] has no matrix rate for 'fp8'[...]

# Mistakes are named with their place and what would do.
$ printf 'kind: plan\nmodel: llama-3.1-8b\nrate: 20/s\nttfft: p95:1s\n' >bad.yaml; ridge plan bad.yaml
ridge: bad.yaml:4:1: unknown key 'ttfft'; did you mean 'ttft'?
[2]
$ ridge plan llama-3.1-8b --hw l4 --rate 20/s --ttft p95:fast
ridge: option --ttft: [...]
[2]
$ ridge plan llama-3.1-8b --hw l4 --rate 20/s --ttft q95:1s
ridge: option --ttft 'q95:1s' is not a limit such as p95:1s, p99.9:300ms or mean:2s
[2]
$ ridge plan llama-3.1-8b --hw h100 --rate 20/s
ridge: hardware 'h100' [...]
[2]
$ ridge plan llama-3.1-8b --hw l4 --rate 20/s --provider Modul
ridge: no price of provider 'Modul' in [...]prices.yaml; did you mean 'Modal'?
[2]
$ printf 'kind: plan\nmodel: llama-3.1-8b\nrate: 20/s\nprovider: nobody\n' >bad.yaml; ridge plan bad.yaml
ridge: bad.yaml:4:11: no price of provider 'nobody' in [...]
[2]
$ ridge plan llama-3.1-8b --rate 20/s --users 4
ridge: a rate and users that wait for answers exclude each other; keep one
[2]
$ ridge plan llama-3.1-8b
ridge: on what? --gpu NAME asks whether it fits; --rate, --users or --trace ask for the cheapest; 'ridge list hw' names devices
[2]
$ ridge plan llama-3.1-70b --hw a100-pcie-80gb --tp 2 --pp 1 --users 1 --limit 50 --isl 200 --osl 50 --tpot mean:33.3ms -q >/dev/null
ridge: nothing keeps the limits; the nearest is 2 x a100-pcie-80gb: 1 replica of tp2, weights bf16, KV bf16 with mean tpot [...] ms instead of 33.3 ms, even for one request alone
[1]

# What the winner carries is never less than what was asked of it.
$ ridge plan --model llama-3.1-8b --hw h100-sxm --rate 20/s --isl 500 --osl 100 --ttft p95:1s --tpot p95:30ms -f json | awk -F'[:,]' '/"saturation_requests_per_s"/ { print ($2 >= 20 ? "at least 20" : "less: " $2) }'
at least 20

# One device in the singular.
$ ridge plan llama-3.1-405b --gpu gh200 2>&1 | grep -o "does not fit on .*, 1 [a-z]* of" | head -1
does not fit on 'gh200-node', 1 device of

# Offline: the best split on each device, ranked by tokens a second and device; what says nothing is refused.
$ ridge plan llama-3.1-8b --offline --hw l4,h100-sxm --scheduler trtllm --isl 500 --osl 100 --tp 1 --pp 1 --limit 200 --goal devices -q | head -1
1 x h100-sxm: 1 replica of tp1, weights bf16, KV bf16: [...] output tokens/s, [...] a device.
$ ridge plan llama-3.1-8b --offline --hw l4 --rate 3/s
ridge: offline, all requests are there at once: 'rate' says nothing then; a limit on tpot would do
[2]
$ ridge plan llama-3.1-8b --offline --hw h100-sxm --scheduler trtllm --isl 20000 --limit 20 --tp 1 --pp 1 -q >/dev/null
ridge: nothing keeps the limits; prompts are longer than a step of 8192 tokens, and 'trtllm' does not cut them; --max-tokens would do
[1]
$ ridge plan llama-3.1-8b --hw h100-sxm --rate 3/s --prefill-tp 2
ridge: option --prefill-tp '2' is not read without split pools; add --pools disaggregated
[2]
$ ridge plan llama-3.1-8b --hw h100-sxm --rate 50/s --power-cap 1W -q >/dev/null
ridge: nothing keeps the limits; the least that holds the model is 1 device and [...] kW at TDP
[1]

# Speculation by kind: what writes the drafts is named, engines without it say so.
$ ridge plan llama-3.1-8b --hw h100-sxm --tp 1 --pp 1 --rate 1/s --limit 50 --speculate draft_model
ridge: option --speculate 'draft_model' is not possible without --draft-model NAME
[2]
$ ridge plan llama-3.1-8b --hw h100-sxm --tp 1 --pp 1 --rate 1/s --limit 50 --speculate eagle --draft-cost 0.2
ridge: option --draft-cost '0.2' is not read with --speculate, which knows what drafts take
[2]
$ ridge plan llama-3.1-8b --hw h100-sxm --tp 1 --pp 1 --rate 1/s --limit 50 --speculate medusa --acceptance medusa=0.6 --brief -q | grep -e '^1 x' -e 'trtllm-serve' -e 'by medusa'
1 x h100-sxm: 1 replica of tp1 medusa3, weights bf16, KV bf16 [...]
  trtllm-serve [...]   # without its drafts: no option of this engine makes them so
  - 3 drafts by medusa: each right with chance 0.6 when those before it are
$ ridge plan llama-3.1-8b --hw h100-sxm --tp 8 --pp 1 --rate 1/s --limit 50 --speculate draft_model --draft-model gpt2 --brief -q >/dev/null
ridge: nothing keeps the limits; no candidate can run: what writes the drafts: tp '8' does not divide the 12 query heads [...]
[1]

# A price that nobody offers is called assumed.
$ ridge plan llama-3.1-8b --hw mi210 --tp 1 --pp 1 --rate 1/s --limit 50 --isl 200 --osl 20 --brief -q | grep 'h a device'
  - mi210: 0.80 $/h a device is assumed: [...]; --price mi210=... sets it

# A pipeline's stages take turns: what memory allows one user does not grow with them.
$ ridge plan llama-3.1-405b --gpu superpod-h100 --tp 8 --pp 1,2,4 --weight-type fp8 -f csv -q | awk -F, 'NR==1{for(i=1;i<=NF;i++)c[$i]=i;next} NF>5{printf "%.1f ",$c["single_stream_bound_tokens_per_s"]}'
65.9 65.9 65.9 [...]

# With a latent cache beside experts, data-parallel attention is listed of its own accord, for many users.
$ ridge plan deepseek-v3 --gpu hgx-h200 --weight-type fp8 -q | grep -o 'tp8 ep8 a[^ ]*'
tp8 ep8 attention-dp

# Rows that differ in their cache say so; latencies are those of the row's own count, or none; what constants are
# from is said; TensorRT-LLM is not started on devices that it does not run on, and its settings are commands.
$ ridge plan llama-3.1-8b --rate 60/s --isl 1000 --osl 100 --ttft p95:1s --tpot p95:30ms --hw mi300x --tp 1,8 --pp 1 --kv-type bf16,fp8 --limit 600 --brief -q >mi.txt; grep -e '^  vllm' -e 'trtllm' -e 'weights  KV' -e 'constants' mi.txt
  vllm serve meta-llama/[...]
  device  replica  weights  KV [...]
  - mi300x: constants borrowed from h200-sxm: not validated on mi300x[...]
$ ridge plan llama-3.1-8b --rate 5/s --isl 1000 --osl 100 --hw h100-sxm --tp 1 --pp 1 --kv-type fp8 --limit 60 --brief -q | grep -o "printf.*; trtllm-serve\|--config [^ ]*"
printf '%s\n' 'kv_cache_config: {dtype: fp8}' >trtllm.yaml; trtllm-serve
--config trtllm.yaml
$ ridge plan llama-3.1-70b --hw h100-sxm,b200-sxm --tp 1,2,4,8 --pp 1 --rate 20/s --isl 2000 --osl 300 --limit 2400 --ttft p95:1s --tpot p95:40ms --brief -q -f csv | awk -F, 'NR==1{for(i=1;i<=NF;i++)c[$i]=i;next} /tp8,/&&/^h100/{print $c["replicas"], "simulated " $c["simulated"], "tpot " $c["tpot_p95_s"] "."}'
2 simulated true tpot .
