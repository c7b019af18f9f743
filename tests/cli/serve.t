# One server, one step a token: four users in a closed loop, 100 + 10 tokens each.
$ ridge serve --step-time 20ms --arrivals closed:4 --prompt 100 --answer 10 --limit 20 --kv-blocks 100 | head -18
Half of the requests: first token after 20.0 ms (p99 20.0 ms), then one every 20.0 ms; whole request 200 ms.
  requests                                20
  finished                                20
  first arrival to last token             1 s
  requests served                         20.00 1/s
  requests within all limits              no limits given
  output tokens                           200.0 1/s
  prompt and output tokens                2200 1/s
  output tokens per device                200.0 1/s
  output tokens in all                    200
  prompt tokens in all                    2000
Steady state, from warm-up (400 ms) to the last arrival (800 ms)
  requests served                         20.00 1/s
  output tokens                           200.0 1/s
  prompt and output tokens                2200 1/s
What users see

# The same in JSON has the keys that scripts rely on.
$ ridge serve --step-time 20ms --arrivals closed:4 --prompt 100 --answer 10 --limit 20 --kv-blocks 100 -f json | grep -oE '"(requests|ttft_s|tpot_excl_first_s|e2e_s|goodput_requests_per_s|output_tokens_per_s|makespan_s|steps|preemptions|recomputed_tokens|prefix_hit_blocks_share|kv_blocks)":' | sort | tr -d '\n'
"e2e_s":"goodput_requests_per_s":"kv_blocks":"makespan_s":"output_tokens_per_s":"preemptions":"prefix_hit_blocks_share":"recomputed_tokens":"requests":"steps":"tpot_excl_first_s":"ttft_s":

# The same seed gives the same bytes, another seed others.
$ for s in 1 1 2; do ridge serve --seed $s --step-time 20ms --arrivals poisson:9/s --prompt lognormal:300 --answer lognormal:50 --limit 300 --requests r$s.csv -q >out$s; md5sum r$s.csv | cut -c1-8; done | uniq -c | sed 's/ [0-9a-f]*$//'
      2
      1

# One row a request.
$ ridge serve --step-time 1s --arrivals uniform:2/s --prompt 5 --answer 2 --limit 2 --sync --requests r.csv --kv-blocks unlimited -o /dev/null; cat r.csv
request_id,arrival_s,first_token_s,last_token_s,input_tokens,output_tokens,scheduled_s,cached_tokens,preemptions,recomputed_tokens,replica
0,0.500000000,1.500000000,2.500000000,5,2,0.500000000,0,0,0,0
1,1.000000000,2.500000000,3.500000000,5,2,1.500000000,0,0,0,0

# A scenario file has the names of the options as keys; the command line wins.
$ printf 'step-time: 20 ms\narrivals: poisson:5/s\nprompt: 64\nanswer: 8\nlimit: 50\nkv-blocks: 100\n' >s.yaml; ridge serve s.yaml --limit 10 | head -1
Half of the requests: first token after 45.5 ms (p99 51.9 ms), then one every 20.0 ms; whole request 186 ms.

# Lengths have one name everywhere, and the other names in use are understood, in files too.
$ for c in serve plan estimate; do ridge $c --help | grep -oE -- '--(isl|osl) .*also.*' | sed 's/  .*(/ (/'; done
--isl SPEC (also --prompt, --context)
--osl SPEC (also --answer, --output-tokens)
--isl SPEC (also --prompt, --context)
--osl SPEC (also --answer, --output-tokens)
--isl N (also --prompt, --context) [2048]
--osl N (also --answer, --output-tokens) [256]
$ ridge serve s.yaml --limit 10 --context 64 --output-tokens 8 -q | md5sum | cut -c1-8 >a; ridge serve s.yaml --limit 10 -q | md5sum | cut -c1-8 | cmp a -
$ printf 'step-time: 20 ms\nisl: 64\nprompt: 8\n' >bad.yaml; ridge serve bad.yaml
ridge: bad.yaml:3:1: 'prompt' means 'isl', which is given too
[2]
$ printf 'kind: sweep\nfixed: {hw: h200-sxm, model: llama-3.1-8b, osl: 4}\ngrid: {isl: [128, 256]}\n' >g.yaml; ridge sweep g.yaml | cut -d, -f1-3
cell,isl,status
0,128,ok
1,256,ok

# Mistakes are named with their place and what would do.
$ printf 'step-time: 20 ms\narivals: poisson:5/s\n' >bad.yaml; ridge serve bad.yaml
ridge: bad.yaml:2:1: unknown key 'arivals'; did you mean 'arrivals'?
[2]
$ printf 'step-time: 20 ms\nreplicas: none\narrivals: at-once\n' >bad.yaml; ridge serve bad.yaml
ridge: bad.yaml:2:11: replicas 'none' is not a whole number from 1 to 4096
[2]
$ ridge serve --step-time 20ms --arrivals sometimes:5
ridge: option --arrivals: arrivals 'sometimes:5' not understood; write poisson:10/s, gamma:10/s,cv=2, mmpp:2/s,20/s,30s,5s, uniform:4/s, at-once, closed:32 or closed:32,think=2s
[2]
$ ridge serve --step-time 20ms
ridge: no requests: give --trace FILE, --measured RUN, or --arrivals with --isl and --osl
[2]
$ ridge serve --arrivals poisson:1/s
ridge: what runs on what? give --model and --hw, or --kernel-times, or a constant --step-time
[2]
$ ridge serve --step-time 20ms --arrivals poisson:1/s --policy fifo
ridge: option --policy 'fifo' is not one of vllm, vllm-v0, sarathi, orca, static, vidur-vllm, trtllm, trtllm-max, trtllm-static, sglang
[2]
$ ridge serve --step-time 20ms --trace nosuch.csv
ridge: nosuch.csv: cannot be read: No such file or directory
[2]
$ printf 'a,b\n1,2\n' >t.csv; ridge serve --step-time 20ms --trace t.csv
ridge: t.csv:1:1: header is of no known trace: wanted TIMESTAMP,ContextTokens,GeneratedTokens (Azure), Timestamp,...,Request tokens,Response tokens (BurstGPT), num_prefill_tokens,num_decode_tokens (Vidur) or arrival_s,input_tokens,output_tokens (ridge); first column is 'a'
[2]
$ printf 'num_prefill_tokens,num_decode_tokens\n100,5\n' >v.csv; ridge serve --step-time 20ms --trace v.csv
ridge: v.csv:1:1: the trace has lengths only; say when requests come, such as --arrivals poisson:4/s or --arrivals closed:32
[2]
$ ridge serve --step-time 20ms --arrivals at-once --prompt 5000 --answer 10 --limit 3 --kv-blocks 100
ridge: no request was served: 3 came, 3 are larger than the KV memory
[1]
$ ridge serve --step-time 20ms --arrivals at-once --prompt 5000 --answer 10 --limit 3 --max-model-len 4096 --over-long fail
ridge: request 0 has '5000' prompt and '10' output tokens, over the model's 4096; choose --over-long reject or cut to go on
[2]
$ ridge serve --step-time 20ms --fit-engine x.yaml --arrivals at-once
ridge: --fit-engine needs --measured RUN
[2]

$ printf '\037\213\010' >t.csv.gz; ridge serve --step-time 20ms --trace t.csv.gz
ridge: t.csv.gz: packed with gzip; unpack it first, as with 'gunzip -k t.csv.gz'
[2]

# What a run wrote is a measured run of its own: replayed, it is met exactly; a fit finds its pause.
$ ridge serve --step-time 21ms --arrivals poisson:9/s --prompt lognormal:300 --answer lognormal:50 --limit 80 --requests r.csv --kv-blocks unlimited -o /dev/null; ridge serve --step-time 21ms --kv-blocks unlimited --measured r.csv | sed -n '2,4s/ *[-+]0.00 %$//p'
  time to first token      0.00 %
  time per output token    0.00 %
  whole request            0.00 %
$ ridge serve --step-time 20ms --kv-blocks unlimited --measured r.csv --fit-engine fit.yaml | grep -c '^fitted'; ridge serve fit.yaml --step-time 20ms --kv-blocks unlimited --measured r.csv | sed -n '2,4s/ 0\.[0-4][0-9] .*/ under 0.5/p'
4
  time to first token      under 0.5
  time per output token    under 0.5
  whole request            under 0.5

# Drafts and split pools run where the engines have them, and are refused elsewhere.
$ for p in vllm sglang trtllm trtllm-max; do ridge serve --policy $p --step-time 10ms --kv-blocks 40000 --arrivals poisson:20/s --isl lognormal:200 --osl lognormal:40 --limit 200 --drafts 3 --acceptance 0.7 --prefill-replicas 1 --transfer-rate '50 GB/s' --transfer-latency 1ms -q -f json | grep -oE '"(finished|output_tokens)": [0-9]+' | tr '\n' ' '; echo $p; done
"finished": 200 "output_tokens": 7454 vllm
"finished": 200 "output_tokens": 7454 sglang
"finished": 200 "output_tokens": 7454 trtllm
"finished": 200 "output_tokens": 7454 trtllm-max
$ ridge serve --policy orca --step-time 10ms --arrivals at-once --limit 5 --drafts 3
ridge: speculation runs under vllm, sglang, trtllm and trtllm-max; 'orca' as it is simulated has none
[2]
$ ridge serve --policy vllm-v0 --step-time 10ms --arrivals at-once --limit 5 --prefill-replicas 1 --transfer-rate '50 GB/s'
ridge: split pools run under vllm, sglang, trtllm and trtllm-max; 'vllm-v0' as it is simulated has none
[2]

# Every scheduler serves every token.
$ for p in vllm vllm-v0 sarathi orca static vidur-vllm trtllm trtllm-max trtllm-static sglang; do ridge serve --policy $p --step-time 10ms --arrivals poisson:20/s --prompt lognormal:200 --answer lognormal:40 --limit 200 -f json | grep -oE '"(finished|output_tokens)": [0-9]+' | tr '\n' ' '; echo $p; done
"finished": 200 "output_tokens": 7454 vllm
"finished": 200 "output_tokens": 7454 vllm-v0
"finished": 200 "output_tokens": 7454 sarathi
"finished": 200 "output_tokens": 7454 orca
"finished": 200 "output_tokens": 7454 static
"finished": 200 "output_tokens": 7454 vidur-vllm
"finished": 200 "output_tokens": 7454 trtllm
"finished": 200 "output_tokens": 7454 trtllm-max
"finished": 200 "output_tokens": 7454 trtllm-static
"finished": 200 "output_tokens": 7454 sglang

# Public traces: prefix hits with unlimited memory are exact (11068 of 41702 ids, 1644 of 14873).
$ ridge serve --step-time 20ms --kv-blocks unlimited --max-model-len 200000 --trace $SHARED/serving/traces/mooncake_conversation_first1500.jsonl -f json | grep -E '"prefix_(hit|queried)_blocks"'
  "prefix_queried_blocks": 41702,
  "prefix_hit_blocks": 11068,
$ ridge serve --step-time 20ms --kv-blocks unlimited --max-model-len 200000 --trace $SHARED/serving/traces/mooncake_synthetic_first600.jsonl -f json | grep -E '"prefix_(hit|queried)_blocks"'
  "prefix_queried_blocks": 14873,
  "prefix_hit_blocks": 1644,

# Latency against load: twice the load never waits less.
$ ridge serve --step-time 20ms --arrivals poisson:4/s --prompt 100 --answer 10 --limit 200 --kv-blocks 100 --max-sequences 1 --load 0.5,1,2 -f csv | cut -d, -f1,12
load,overloaded
0.5,false
1,false
2,true
$ ridge serve --step-time 20ms --arrivals poisson:4/s --load 1,none
ridge: option --load: 'none' is not a factor of the load; write up to 64 of them, such as 0.5,1,1.5,2
[2]

# What is written beside the report.
$ ridge serve --step-time 20ms --arrivals closed:2 --prompt 100 --answer 10 --limit 6 --kv-blocks 100 --timeline t.json --series s.csv --series-interval '1 ms' -o /dev/null; head -2 s.csv; grep -c '"ph":"X"' t.json
time_s,replica,step,running,waiting,prefill_tokens,decodes,used_blocks,internal_fragmentation,external_fragmentation
0.000000000,0,1,2,0,200,0,14,0.107143,0.000000
18

# Real files: CRLF, seven-digit fractions, no end of the last line.
$ ridge serve --step-time 20ms --kv-blocks 20000 --trace $SHARED/serving/traces/azure2023_code_first3000.csv -f json | grep -E '"(requests|finished|prompt_tokens|output_tokens|trace_format)"'
  "requests": 3000,
  "finished": 3000,
  "output_tokens": 84937,
  "prompt_tokens": 6017797,
  "trace_format": "azure",

# Requests that are all too long: said why, and how many.
$ ridge serve --hw h100-sxm --model llama-3.1-8b --arrivals poisson:4/s --limit 20 --max-model-len 100 --prompt 500 --answer 10
ridge: no request was served: 20 are longer than the '100' tokens that a request may have
[1]

# Rates beyond any service.
$ ridge serve --step-time 20ms --arrivals poisson:1e300/s --prompt 10 --answer 5 --limit 3
ridge: option --arrivals: arrival rate '1e300/s' is more than the most, 1e6/s; at-once lets all come together
[2]

# Every part of the page has its heading.
$ ridge serve --step-time 20ms --arrivals closed:4 --prompt 10 --answer 5 --limit 3 --kv-blocks 100 -f html | grep -o '<h2>[^<]*'
<h2>What users see
<h2>Engine
<h2>KV memory
<h2>Assumptions

# What the mean length of a batch leaves out is said where lengths differ, and only there.
$ for o in '' '--attention-skew 0.5'; do ridge serve --hw h100-sxm --model llama-3.1-8b --trace $SHARED/inputs/files/azure_llm_trace_code_head300.csv $o | grep -c 'charged for the mean length of its batch'; done; ridge serve --hw h100-sxm --model llama-3.1-8b --arrivals poisson:5/s --isl 1000 --osl 20 --limit 50 | grep -c 'mean length'
1
0
0
[1]

# The record of a run with a word where a part belongs, and a scenario with a model that is none.
$ mkdir odd; printf 'model: llama\n' >odd/meta.yaml; printf 'a\n1\n' >odd/requests.csv; ridge serve --measured odd
ridge: odd/meta.yaml:1:8: model is a single value, expected a map of keys
[2]
$ printf 'kind: serve\nmodel: llama3\nhw: l4\narrivals: poisson:1/s\n' >odd.yaml; ridge serve odd.yaml
ridge: odd.yaml:2:8: no model 'llama3'; names that begin alike: llama-3.1-405b[...]
[2]
$ printf 'kind: serve\nmodel: llama-3.2-1b\nhw: l4\narrivals: poison:1/s\n' >odd.yaml; ridge serve odd.yaml
ridge: odd.yaml:4:11: arrivals 'poison:1/s' not understood; write poisson:10/s, gamma:10/s,cv=2, mmpp:2/s,20/s,30s,5s, uniform:4/s, at-once, closed:32 or closed:32,think=2s
[2]

# With sessions, arrivals are those of sessions, and it is said.
$ ridge serve --step-time 20ms --arrivals poisson:2/s --prompt 64 --answer 8 --limit 60 --turns 3 --think 1s --kv-blocks 1000 | grep counts
  - --arrivals counts sessions: each brings up to 3 requests, one a turn

# A prefix router tells where requests went.
$ ridge serve --step-time 20ms --arrivals poisson:20/s --prompt 64 --answer 8 --limit 600 --system-prompt 1000 --kv-blocks 4000 --replicas 2 --router prefix | grep -E 'of a replica|by queue|unevenly'
  requests of a replica, fewest           0
  requests of a replica, most             600
  requests sent by queue, not by prefix   0
  - replicas are loaded unevenly: one of 2 got 600 of 600 requests, as the router sends them


# A grid says what kind of file it is.
$ printf 'grid: {isl: [128, 256]}\n' >g.yaml; ridge sweep g.yaml
ridge: g.yaml:1:1: missing key 'kind'; a sweep file says 'kind: sweep'
[2]
