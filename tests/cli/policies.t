# Speculation, offloading, life without a cache, experts: what estimate says of them.

# Claim: speculative decoding gives two to three times for one user; it does, at such acceptance.
$ ridge estimate --hw hgx-h100 --model llama-3.1-70b --tp 8 --speculate draft_model --draft-model llama-3.2-1b --acceptance 0.8 | grep -A7 'speculation by'
  speculation by                                  draft_model
    candidates verified a pass                    4
    expected tokens a pass                        3.362
    drafting                                      [...] ms
    verification                                  [...] ms
    time per output token                         [...] ms
    faster than without                           2.[...]
    no longer pays from batch                     [...]
$ ridge estimate --hw hgx-h100 --model llama-3.1-70b --tp 8 --speculate medusa --tree 4,2 --drafts 2 --acceptance 0.6,0.4 -f json | grep -E 'speculation_(candidates|tokens)'
  "speculation_candidates": 6,
  "speculation_tokens_per_pass": 1.84,
$ ridge estimate --hw hgx-h100 --model llama-3.1-70b --tp 8 --speculate draft_model
ridge: --speculate draft_model needs --draft-model NAME
[2]
$ ridge estimate --hw hgx-h100 --model llama-3.1-70b --tp 8 --acceptance 0.9
ridge: --acceptance '0.9' changes nothing without --speculate HOW
[2]
$ ridge estimate --hw hgx-h100 --model llama-3.1-70b --tp 8 --speculate mtp --draft-model llama-3.2-1b
ridge: --draft-model 'llama-3.2-1b' changes nothing without --speculate draft_model
[2]
$ ridge estimate --hw hgx-h100 --model llama-3.1-70b --tp 8 --speculate eagel
ridge: speculation 'eagel' is not known, nearest is eagle; none, draft_model, self, medusa, eagle or mtp would do
[2]
$ ridge estimate --hw hgx-h100 --model llama-3.1-70b --tp 8 --speculate mtp --acceptance 1.2
ridge: acceptance '1.2' is not within 0 to 1
[2]

# Weights in host memory come at the host link's rate.
$ ridge estimate --hw hgx-h100 --model llama-3.1-70b --tp 8 --offload-weights 0.5 | grep -E 'bound by|link alone'
    the host link alone                           [...] ms
    bound by                                      host link

# A capacity factor keeps the busiest expert at its room and says what is dropped.
$ ridge estimate --hw hgx-h100 --model mixtral-8x7b --tp 8 --ep 8 --batch 64 --moe-skew 0.5 --capacity-factor 1.25 --capacity-drop | grep -E 'busiest expert|dropped'
  rows of the busiest expert rank                 1.250
  rows dropped                                    0.[...]
$ ridge estimate --hw hgx-h100 --model mixtral-8x7b --tp 8 --ep 16
ridge: ep '16' [...]
[2]

# Loads of experts need experts.
$ ridge estimate --hw h100-sxm --model llama-3.1-8b --expert-load 1,2 -q
ridge: a load of 2 experts is given, model 'llama-3.1-8b' has no experts
[2]

# A grid takes every option of estimate by its name, the finer splits too, and means the same.
$ printf 'kind: sweep\nfixed: {hw: hgx-h100, model: deepseek-v3, weight-type: fp8, kv-type: fp8, tp: 8, ep: 8, attention-dp: true, all-to-all: true, moe-skew: 0.3, batch: 128}\ngrid: {expert-replicas: [0, 8]}\n' >g.yaml; ridge sweep g.yaml 2>/dev/null | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } { print $c["tpot_excl_first_s"] + 0 }' >sweep.txt; for n in 0 8; do ridge estimate --hw hgx-h100 --model deepseek-v3 --weight-type fp8 --kv-type fp8 --tp 8 --ep 8 --attention-dp --all-to-all --moe-skew 0.3 --batch 128 --expert-replicas $n -f json 2>/dev/null | sed -n 's/.*"tpot_excl_first_s": \([^,]*\),/\1/p' | awk '{ print $1 + 0 }'; done | cmp - sweep.txt && sort -u sweep.txt | grep -c .
2
$ printf 'kind: sweep\nfixed: {hw: hgx-h100, model: deepseek-v3, kv-type: bf61}\ngrid: {tp: [8]}\n' >g.yaml; ridge sweep g.yaml
ridge: g.yaml:2:43: format 'bf61' is not known; did you mean 'bf16'?
[2]
$ printf 'kind: sweep\nfixed: {hw: hgx-h100, model: deepseek-v3}\ngrid: {tp: [8, nine]}\n' >g.yaml; ridge sweep g.yaml
ridge: g.yaml:3:16: tp 'nine' is not a whole number from 1 to 65536
[2]
