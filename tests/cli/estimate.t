# The main job: a machine and a model in, times, memory and bottleneck out.

$ ridge estimate --hw h200-sxm --model llama-3.1-8b --ideal --batch 8 | sed -n '1,2p;4,5p'
llama-3.1-8b on 1 x NVIDIA H200 SXM5 141GB (tp 1, pp 1, ep 1, cp 1, dp 1)
weights bf16, KV bf16 (ideal); batch 8, 2048 tokens of context and 256 of output each
  time to first token (one prompt, idle machine)  32.59 ms
  time per output token after the first (mean)    3.623 ms

# Bare roofline, by hand: 7,504,924,672 weights of layers and head in 2 bytes, 8 sequences x 2049
# tokens x 131072 B of KV, over 4.8 TB/s are 3.574 ms; activations, norms and logits are the rest.
$ ridge estimate --hw h200-sxm --model llama-3.1-8b --ideal --batch 8 -f json | grep -c '"roofline_time_s"'
24

# The identity: in an ideal world each operator takes its roofline time to the last digit.
$ ridge estimate --hw h200-sxm --model llama-3.1-8b --ideal --batch 8 -f csv | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } { f = $c["flops"] / (989.4e12); b = $c["hbm_bytes"] / 4.8e12; r = $c["roofline_time_s"]; if ($c["time_s"] != r) bad++; if ($1 ~ /proj|head|attention/ && (r / (f > b ? f : b) - 1) ^ 2 > 1e-20) bad++ } END { print NR - 1, "operators,", bad + 0, "off" }'
12 operators, 0 off

$ ridge estimate --hw l40s --model llama-3.1-70b 2>/dev/null | sed -n "1p;4p"
llama-3.1-70b on 1 x NVIDIA L40S 48GB (tp 1, pp 1, ep 1, cp 1, dp 1)
DOES NOT FIT: needs 146 GB of the 43.5 GB that the engine may use on each device; about 4 devices would hold it. The times are what it would take if it did fit.

$ ridge estimate --hw l40s --model llama-3.1-70b --format csv -o /dev/null
ridge: 1 sequences do not fit in memory; the most is 0
[1]

$ ridge estimate --hw h200-sxm --model llama-3.1-8b --tp 3
ridge: [...]
[2]

$ ridge estimate --hw h100 --model llama-3.1-8b
ridge: hardware 'h100' stands for several; name one of: h100-nvl, h100-pcie, h100-sxm
[2]

$ ridge estimate --hw h200-sxm --model lama-3.1-8b
ridge: no model 'lama-3.1-8b'; nearest is 'llama-3.1-8b'
[2]

$ ridge estimate --hw h200-sxm --model llama-3.1-8b --weight-type bf61
ridge: option --weight-type: format 'bf61' is not known; did you mean 'bf16'?
[2]

$ ridge estimate --hw h200-sxm --model llama-3.1-8b --set hw.memory.hbm.bandwith=x2
ridge: --set hw.memory.hbm.bandwith=x2: change 'memory.hbm.bandwith': no 'bandwith' there; did you mean 'bandwidth'?
[2]

$ ridge estimate --hw h200-sxm --model llama-3.1-8b --batch 1 --context 1 --output-tokens 1 -f json | grep -E '"(schema|tpot_excl_first_s|band)"' | cut -c1-40
[...]
[...]
[...]

# Twice the bandwidth never slows; more sequences never lower the whole rate until memory ends.
$ for b in x1 x1.5 x2 x3; do ridge estimate --hw h200-sxm --model llama-3.1-8b --set hw.memory.hbm.bandwidth=$b -f json | sed -n 's/.*"tpot_excl_first_s": \([^,]*\),/\1/p'; done | sort -r -g -c && echo falls
falls

$ for b in 1 2 3 7 8 16 31 32 64 100 200; do ridge estimate --hw h200-sxm --model llama-3.1-8b --batch $b -f json | sed -n 's/.*"total_tokens_per_s": \([^,]*\),*/\1/p'; done | sort -g -c && echo rises
rises

# Same input, same bytes.
$ ridge estimate --hw hgx-h200 --model deepseek-v3 --tp 8 -f json -o a.json; ridge estimate --hw hgx-h200 --model deepseek-v3 --tp 8 -f json -o b.json; cmp a.json b.json && echo same
same

# What the model was not made for is said.
$ ridge estimate --hw h200-sxm --model gpt2 --context 1024 --output-tokens 1 | grep 'than the'
  - 1025 tokens are more than the 1024 that the model takes; engines refuse that unless told otherwise
$ ridge estimate --hw h200-sxm --model gpt2 --context 1023 --output-tokens 1 | grep -c 'than the'
0
[1]

# TPOT is the mean over the answer: the same for any prompt and answer with the same middle, and the operators are of it.
$ for l in '1000 8192' '3048 4096' '5095 2'; do set -- $l; ridge estimate --hw h200-sxm --model llama-3.1-8b --batch 32 --isl $1 --osl $2 -f json | grep '"tpot_excl_first_s"'; done | uniq | wc -l
1

$ ridge estimate --hw h200-sxm --model llama-3.1-8b --isl 1000 --osl 8192 | grep '^One decode pass'
One decode pass, at 5096 tokens in the cache of each (mean of the answer)

# A change that nothing reads is said to be without effect; one that is read is not.
$ for c in hw.links.pcie5x16.rate_per_direction hw.links.nvlink4.rate_per_direction hw.memory.hbm.capacity; do ridge estimate --hw hgx-h200 --model llama-3.1-70b --tp 8 --set $c=x0.9 | grep -c 'has no effect'; done; true
1
0
0

# With data-parallel attention eight ranks prefill eight prompts at once: nearly eight times the tokens of one after
# another, and a lone prompt keeps one device in eight busy with its attention.
$ for b in 1 8; do ridge estimate --hw hgx-h200 --model deepseek-v3 --tp 8 --ep 8 --attention-dp --batch $b --isl 4096 --osl 1 -f json | awk -F'[:,]' '/"(total_tokens_per_s|mfu_prefill_ratio)"/ { print $2 + 0 }'; done | paste -s | awk '{ print ($3 / $1 > 2 && $3 / $1 <= 8 ? "more" : "no"), ($4 / $2 > 2 ? "busier" : "no") }'
more busier

# Experts of a few rows: three times the memory's rate leaves tiles that are mostly padding, which is said; below,
# memory binds.
$ for x in x0.5 x1.5 x3; do ridge estimate --hw hgx-h200 --model qwen3-235b-a22b --tp 8 --batch 64 --isl 4096 --set hw.memory.hbm.bandwidth=$x | grep 'what binds decoding' | grep -oE 'memory|compute|\(at [1-9] % of peak\)' | paste -s; done
memory
memory
compute	(at 2 % of peak)
