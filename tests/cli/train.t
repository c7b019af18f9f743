# Training steps.

$ ridge train --hw hgx-h100 --model llama-2-7b --dp 2048 --global-batch 2048 | head -2
llama-2-7b on 2048 devices: [...] ms a step, [...] tokens/s, MFU [...] %
  one step [...]
$ ridge train --hw hgx-h100 --model llama-2-7b --dp 2048 --global-batch 2048 | sed -n '/All-reduce/,/^$/p' | cut -c1-22
All-reduce of the grad
  algorithm     ranks 
  ring           2048 
  tree           2048 
  hierarchical   2048 
  in_switch      2048 

$ ridge train --hw hgx-h100 --model llama-2-7b --dp 8 --global-batch 12
ridge: a global batch of '12' sequences does not divide into micro-batches of 1 on 8 replicas; a multiple of 8 would do
[2]
$ ridge train --hw hgx-h100 --model llama-3.1-8b --tp 3
ridge: tp '3' does not divide the 32 query heads of layer 0; engines refuse that, a divisor of 32 would do
[2]
$ ridge train --hw hgx-h100 --model llama-3.1-8b --pp 2 --zero 3
ridge: zero stage 3 with pp 2 would reduce gradients after every micro-batch; engines refuse it, stage 1 would do
[2]

# What-if changes, shares in percent, one device in the singular.
$ ridge train --hw hgx-h100 --model llama-3.1-8b --set hw.memory.hbm.bandwidth=x1.5 | grep -E 'on 1 |^  optimiser |what-if'
llama-3.1-8b on 1 device: [...]
  optimiser      [...]  2.5 %
  optimiser  [...]
  - what-if: hw.memory.hbm.bandwidth=x1.5

# The line 'gradients' opened up: four micro-batches, so ZeRO 2 reduces four times and ZeRO 3 gathers twice for each.
$ for z in 0 1 2 3; do ridge train --hw hgx-h100 --model llama-3.1-8b --dp 8 --global-batch 32 --zero $z --overlap 0 | sed -n '/^Traffic/,/^All-reduce/{/ of /p}' | grep -v ^All | awk '{ print $1, $2, $3, $4 }'; done
all-reduce of gradients 1
reduce-scatter of gradients 1
all-gather of weights 1
reduce-scatter of gradients 4
all-gather of weights 1
reduce-scatter of gradients 4
all-gather of weights 8
