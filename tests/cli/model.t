# Models: import, show, list, check.
$ ridge show gpt-oss-20b --context 8192 --kv-layout uniform_page --format json | grep -E '"(parameters_(total|active)|kv_bytes(_per_token)?|kv_layout)"' | head -5
  "parameters_total": 20914757184,
  "parameters_active": 4187440704,
  "kv_layout": "uniform_page",
  "kv_bytes_per_token": 49152.0,
  "kv_bytes": 402653184.0,
$ ridge show deepseek-v3 --kv-type fp8 --format json | grep -E '"(kv_bytes_per_token|weight_type)"' | head -2
  "weight_type": "fp8_block",
  "kv_bytes_per_token": 35136.0,
$ ridge show llama-3.1
ridge: hardware, model or engine 'llama-3.1' stands for several; name one of: llama-3.1-405b, llama-3.1-70b, llama-3.1-8b
[2]
$ ridge show llama-3.1-80b
ridge: no hardware, model or engine 'llama-3.1-80b'; nearest is 'llama-3.1-70b'
[2]
$ ridge show mixtral-8x7b
  model                           mixtral-8x7b
  family                          mixtral
  source                          config.json of mistralai/Mixtral-8x7B-v0.1 on Hugging Face, read in ai-dynamo/aiconfigurator@095f58a51c:aic-core/src/aiconfigurator_core/model_configs/mistralai--Mixtral-8x7B-v0.1_config.json
  parameters                      46702792704
  active                          12879925248
  active means                    all parameters but those of routed experts that a token does not choose; input embedding and LM head counted
  active without input embedding  12748853248
  input embedding                 131072000
  LM head beside it               131072000
  hidden size                     4096
  vocabulary                      32000
  layers                          32
  longest context                 32768
  embedding and head              two matrices
  type before quantisation        bf16
  weights as engines load them    93.41 GB
  cache type                      bf16
  cache layout                    ideal
  cache a token, all layers       131.1 kB
  recurrent state a sequence      0.000 B
Layers
  layers  attention                      FFN                 parameters     active  KV a token
      32  full: 32 heads, 8 KV, dim 128  moe 2 of 8 x 14336  1451270144  394305536    4.096 kB
$ ridge list models --format csv | grep -E "^(name|bloom|gpt2)"
name,family,parameters_total,parameters_active,kv_bytes_per_token,max_context_tokens,path
bloom-176b,bloom,176247271424,176247271424,4014080,0,ROOT/models/bloom-176b.yaml
gpt2,gpt2,124439808,124439808,36864,1024,ROOT/models/gpt2.yaml
$ printf '{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100, "tie_word_embeddings": true}' > config.json
$ ridge import config.json --name tiny --source 'made up'
kind: model
name: "tiny"
family: "llama"
source: "made up"
hidden: 64
vocab: 100
tied_embeddings: true
parameters: {total: 88640, active: 88640}
layers:
  kinds:
    full:
      mixer: {kind: full, heads: 4, kv_heads: 4, head_dim: 16, rope_dim: 16}
      ffn: {kind: dense, gated: true, inter: 128}
      norms: {count: 2}
  order:
    - {repeat: 2, of: [full]}
$ ridge import config.json --name tiny --output tiny.yaml && ridge check tiny.yaml && ridge show ./tiny.yaml --format json | grep parameters_total
tiny.yaml: ok, model tiny, 88640 parameters, 0 figures, 0 of them assumed
  files            1
  figures          0
  of them assumed  0
  files refused    0
  contradictions   0
  warnings         0
  "parameters_total": 88640,
$ printf '{"model_type": "nearly_llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100}' > other.json
$ ridge import other.json
ridge: other.json:1:16: model_type 'nearly_llama' is not known; if its layers are those of a known family, import it with --family
[2]
$ ridge import other.json --family llama --format json | grep parameters_total
  "parameters_total": 95040,
$ ridge show llama-3.1-8b --kv-type bf17
ridge: format 'bf17' is not known; did you mean 'bf16'?
[2]
$ ridge show llama-3.1-8b --kv-layout best
ridge: KV layout 'best' is not known; one of ideal, window_capped, uniform_page, mla_latent, mla_expanded
[2]
