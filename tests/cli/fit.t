# fit and validate: a table of six products, predicted as bare roofline, so no fitted constant is in it.
$ printf 'kernel,dtype,m,n,k,time_us\na,bfloat16,8192,8192,8192,1400\na,bfloat16,8192,8192,8192,1000\nb,bfloat16,1,65536,8192,280\nb,bfloat16,1,65536,8192,100\nc,bfloat16,4,512,512,3\nd,fp8,8192,8192,8192,700\n' >gemm.csv
$ ridge validate --hw h200-sxm --measured gemm.csv --ideal --worst 2
Errors of predicted over measured, rows served from L2 left out
  op    type  sample        rows    mean  median     p90     bias
  gemm  bf16  carried_over     2  20.4 %  20.4 %  20.6 %  -20.4 %
  gemm  fp8   carried_over     1  20.6 %  20.6 %  20.6 %  -20.6 %
By size and residency
  op    type  size    from  sample        rows    mean  median     p90     bias
  gemm  bf16  m>1024  dram  carried_over     1  20.6 %  20.6 %  20.6 %  -20.6 %
  gemm  bf16  m<=16   dram  carried_over     1  20.1 %  20.1 %  20.1 %  -20.1 %
  gemm  bf16  m<=16   l2    carried_over     1  96.3 %  96.3 %  96.3 %  -96.3 %
  gemm  fp8   m>1024  dram  carried_over     1  20.6 %  20.6 %  20.6 %  -20.6 %
Rows left out
  reason                           rows
  faster than the hardware allows     2
Worst rows
  line  point                           measured  predicted   error
     6  dtype=bfloat16 m=4 n=512 k=512  3.000 us   110.9 ns  -0.963
     7  dtype=fp8 m=8192 n=8192 k=8192  700.0 us   555.6 us  -0.206
Assumptions
  - constants: own fit for 15 of 19 kernel classes, the rest borrowed
  - predictions are for ideal kernels: the bare roofline
$ ridge validate --hw h200-sxm --measured gemm.csv --ideal --format json | grep -E '"(reason|rows)"' | tail -2
      "reason": "faster than the hardware allows",
      "rows": 2
$ ridge validate --hw h200-sxm --measured gemm.csv --ideal --rows out.csv >/dev/null && cut -d, -f2-8 out.csv
dtype,m,n,k,time_us,predicted_us,skipped
bfloat16,8192,8192,8192,1400,1111.29,
bfloat16,8192,8192,8192,1000,1111.29,faster than the hardware allows
bfloat16,1,65536,8192,280,223.727,
bfloat16,1,65536,8192,100,223.727,faster than the hardware allows
bfloat16,4,512,512,3,0.110933,
fp8,8192,8192,8192,700,555.618,
$ printf 'limits:\n  - {op: gemm, dtype: bf16, residency: dram, median_ape: 25 %%}\n' >wide.yaml
$ ridge validate --hw h200-sxm --measured gemm.csv --ideal --limits wide.yaml >/dev/null
$ printf 'limits:\n  - {op: gemm, dtype: bf16, residency: dram, median_ape: 15 %%}\n' >tight.yaml
$ ridge validate --hw h200-sxm --measured gemm.csv --ideal --limits tight.yaml 2>/dev/null | grep -A 2 passed
Limits passed
  op    dtype  size_class  residency  sample  measure     limit  value
  gemm  bf16   any         dram       any     median_ape  0.150  0.204
$ ridge validate --hw h200-sxm --measured gemm.csv --ideal --limits tight.yaml >/dev/null
ridge: '1' limits passed
[1]
$ printf 'limits:\n  - {op: gemm, median: 15 %%}\n' >wrong.yaml
$ ridge validate --hw h200-sxm --measured gemm.csv --limits wrong.yaml
ridge: wrong.yaml:2:16: [...]'median'[...]
[2]
$ ridge fit --hw h200-sxm --measured gemm.csv --constants start --split random:1
ridge: [...]
[2]
$ ridge fit --hw h200-sxm --measured gemm.csv --split half
ridge: split 'half' is not known; write random, random:0.7 or regime:m<=256/m>1024
[2]
$ ridge validate --hw h200-sxm --measured gemm.csv --op geem
ridge: 'geem' is no operator with measured tables; did you mean 'gemm'?
[2]
$ ridge validate --measured gemm.csv
ridge: option --hw is missing; give --hw DEVICE --measured FILE.csv, or --table DIR
[2]
$ printf 'dtype,m,n,k,time_us\nbfloat16,0,512,512,3\n' >zero.csv
$ ridge validate --hw h200-sxm --op gemm --measured zero.csv
ridge: zero.csv:2:10: m '0' is below 1
[2]
$ printf 'kernel,dtype,m,n,k,time_us\nx,bfloat16,1,8192,8192,1\nx,bfloat16,16,8192,8192,1\nx,bfloat16,512,8192,8192,1\nx,bfloat16,4096,8192,8192,1\nx,bfloat16,8192,8192,8192,1\nx,bfloat16,1,16384,16384,1\n' >shapes.csv
$ ridge fit --hw h200-sxm --measured shapes.csv --op gemm --few 4 --choose --split random:1 --format csv | wc -l
[...]
$ ridge fit --hw h200-sxm --measured shapes.csv --op gemm --choose
ridge: option --choose needs --few N, the number of shapes
[2]

# runs of whole servers: every run with its prediction, and why one is left out
$ printf 'model_path,system,backend,isl,osl,tp_size,concurrency,ttft_ms,tpot_ms\nmeta-llama/Llama-3.1-8B,h200_sxm,vllm,1024,1024,1,8,60,9\nno/such-model,h200_sxm,vllm,1024,1024,1,8,60,9\n' > runs.csv
$ ridge validate --op serving_agg --measured runs.csv --rows out.csv -q >/dev/null && cut -d, -f1,3-10,13 out.csv
line,model,system,isl,osl,tp,concurrency,ttft_ms,tpot_ms,skipped
2,meta-llama/Llama-3.1-8B,h200_sxm,1024,1024,1,8,60,9,
3,no/such-model,h200_sxm,1024,1024,1,8,60,9,model or device not known

# attention split over ranks by sequences, with the experts over the same devices
$ printf 'model_path,system,backend,isl,osl,tp_size,attention_dp_size,moe_ep_size,batch_size,concurrency,ttft_ms,tpot_ms\ndeepseek-ai/DeepSeek-R1,h200_sxm,trtllm,1024,1024,1,8,8,32,256,2998,37.2\ndeepseek-ai/DeepSeek-R1,h200_sxm,trtllm,1024,1024,8,8,8,32,256,2998,37.2\n' > dp.csv
$ ridge validate --op serving_agg --measured dp.csv --rows out.csv -q >/dev/null && cut -d, -f1,7,8,13 out.csv
line,tp,concurrency,skipped
2,1,256,
3,8,256,arrangement not modelled
