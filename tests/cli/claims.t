# Figures that are often quoted, and what is left of them: the exact part of each verdict. The whole of
# it is examples/10-quoted-figures.sh and 30-serving-claims.sh.

# 1. A token of a 70B model in 16 bit reads 139 GB (no embedding: it is a lookup) and does as many GFLOP.
$ ridge estimate --hw h200-sxm --model llama-3.1-70b --ideal --context 1 --output-tokens 1 -q -f csv 2>note | awk -F, 'NR > 1 { f += $2 * $6; b += $2 * $7 } END { printf "%.0f GFLOP, %.0f GB, %.2f\n", f / 1e9, b / 1e9, f / b }'
139 GFLOP, 139 GB, 1.00

# 2 and 3. 1.34 GB of KV at 4096 tokens with 8 KV heads, not 2.5 GB; 2.68 GB in 32 bit. 40 GB are 30 of them.
$ for t in bf16 fp32; do ridge show llama-3.1-70b --context 4096 --kv-type $t -f json | grep '"kv_bytes":'; done
  "kv_bytes": 1342177280.0,
  "kv_bytes": 2684354560.0,

# 4. A request of 2048 tokens of a 7B model holds 1.07 GB; 8.4 GB are a batch of 8.
$ ridge show llama-2-7b --context 2048 -f json | grep '"kv_bytes":'
  "kv_bytes": 1073741824.0,

# 5. 132 SMs with 4 tensor cores are 528; 989 dense in 16 bit, twice that in FP8, 3.2 times an A100.
$ ridge show h100-sxm | grep -E '^  (matrix cores|dense|peaks.matrix.(bf16|fp8)_fp32.rate)'
  dense 16-bit matrix peak    989.4 TFLOP/s
  matrix cores                528
  peaks.matrix.bf16_fp32.rate                     989.4 TFLOP/s       1
  peaks.matrix.fp8_fp32.rate                      1.979 PFLOP/s       1
$ ridge show a100-sxm-80gb | grep '^  dense'
  dense 16-bit matrix peak    312.0 TFLOP/s

# 7. Attention alone does as many flop a byte as a KV head has query heads; matrices as many as the batch.
$ for m in llama-2-7b llama-3.1-8b llama-3.1-70b; do ridge estimate --hw h200-sxm --model $m --ideal --context 4096 --batch 4 -q -f csv 2>note | awk -F, '$1 == "attention" || $1 == "down_proj" { printf "%s %.1f ", $1, $9 } END { print "" }'; done
attention 1.0 down_proj 4.0 
attention 4.0 down_proj 4.0 
attention 8.0 down_proj 4.0 

# 8. Bytes of a token by KV heads (64, 8, 1) and by type, with the scales of groups.
$ for h in 64 8 1; do printf '{"model_type": "llama", "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": %d, "intermediate_size": 28672, "vocab_size": 128256}' $h >kv.json; ridge show kv.json -f json | grep '^  "kv_bytes_per_token"'; done
  "kv_bytes_per_token": 2621440.0,
  "kv_bytes_per_token": 327680.0,
  "kv_bytes_per_token": 40960.0,
$ for t in int8 int4_g64 int2_g32; do ridge show llama-3.1-70b --kv-type $t -f json | grep '^  "kv_bytes_per_token"'; done
  "kv_bytes_per_token": 163840.0,
  "kv_bytes_per_token": 88320.0,
  "kv_bytes_per_token": 52480.0,

# 13. Without a cache the gain grows with the context and is below 20 at 2048 tokens, even in an ideal world.
$ for c in 512 2048 16384; do ridge estimate --hw h200-sxm --model llama-2-7b --ideal --no-cache --context $c --output-tokens 1 -q -f json | sed -nE 's/.*"no_cache_ratio": ([0-9]+).*/\1/p'; done | awk '{ print ($1 > last ? "more" : "not more"), ($1 < 20 ? "below 20" : "20 and more"); last = $1 }'
more below 20
more below 20
more 20 and more

# 17. Two all-reduces a layer with tp, two all-to-alls with ep; a pipeline of p stages and m micro-batches
# is idle for p - 1 of m + p - 1 parts: more micro-batches, less of it.
$ ridge estimate --hw hgx-h100 --model llama-3.1-70b --tp 8 -q -f csv | grep -E '^all_reduce (attention|ffn)' | cut -d, -f1,2
all_reduce attention,80
all_reduce ffn,80
$ ridge estimate --hw hgx-h100 --model mixtral-8x7b --ep 8 --dp 8 --all-to-all -q -f csv | grep -E 'experts,' | cut -d, -f1,2 | sort
combine from experts,32
dispatch to experts,32
experts,32
$ for m in 8 32 128; do ridge train --hw superpod-h100 --model llama-3.1-70b --tp 8 --pp 8 --dp 1 --global-batch $m -q -f csv | awk -F, '$1 == "bubble" { print $3 }'; done | sort -gr -c && echo falls
falls

# 18. Mixtral 8x7B has 46.7B parameters of which a token uses 12.9B.
$ ridge show mixtral-8x7b -f json | grep -E '"parameters_(total|active)"' | head -2
  "parameters_total": 46702792704,
  "parameters_active": 12879925248,
$ for m in mixtral-8x7b qwen3-235b-a22b deepseek-v3 kimi-k2; do ridge show $m -f json | awk -v m=$m '/"parameters_total"/ { t = $2 } /"parameters_active":/ { printf "%s %.0fx\n", m, t / $2; exit }'; done
mixtral-8x7b 4x
qwen3-235b-a22b 11x
deepseek-v3 18x
kimi-k2 31x

# 19. 900 and 128 GB/s are the sums of both directions.
$ ridge show h100-sxm | grep -E '^  links'
  links.nvlink4.links                             18                  1
  links.nvlink4.rate_per_link                     25.00 GB/s         [...]
  links.nvlink4.rate_per_direction                450.0 GB/s         [...]
  links.pcie5x16.rate_per_direction               64.00 GB/s         [...]

# 20. 80 slices of 64 B at 1.755 GHz bound what the network gives to SMs: 9 TB/s, not 30.
$ ridge noc h100-like --from slice --to sm --closed --links 0 | grep 'all injecting'
  the same bound, all injecting nodes together                      8.986 TB/s

# 21. 2048 ranks in nodes of 8: switches that add up beat levels and rings for 1 GB.
$ for a in in_switch hierarchical ring; do ridge coll --hw hgx-h100 --nodes 256 --ranks 2048 --bytes '1 GB' -a $a -q -f csv | tail -1 | cut -d, -f4; done | sort -g -c && echo slower
slower

# 22. Group scales, embedding and head keep 4-bit weights above a quarter.
$ ridge plan llama-3.1-70b --gpu h100-sxm -q 2>&1 | grep -oE 'in (bf16|int4_g128) \([0-9.]+ GB' | sort -u
in bf16 (141 GB
in int4_g128 (39.8 GB

# All of them with their verdicts.
$ $ROOT/examples/10-quoted-figures.sh $(command -v ridge) >all.txt 2>&1; grep -cE '^[0-9]+ ' all.txt; grep -c '^   = ' all.txt; grep -E '^   = refuted$|nan|inf[^o]' all.txt
17
17
[1]
