# Hardware files: listed, shown with their sources, checked.

$ ridge list hw -f csv | cut -d, -f1 | grep -c .
[...]
$ ridge list hw -f csv | grep '^h200-sxm,'
h200-sxm,NVIDIA H200 SXM5 141GB,hopper,141000000000,4800000000000,989400000000000,1.9789e+15,700,[...]
$ ridge list nodes -f csv | grep gb200-nvl72
gb200-nvl72,"NVIDIA GB200 NVL72, one rack of 18 trays with 4 GPUs",gb200,72,72,nvlink5
$ ridge list gpus
ridge: nothing to list of 'gpus'; hw, nodes, models, engines
[2]

# A name that stands for several is refused with the list.
$ ridge show h100
ridge: [...]'h100' stands for several; name one of: h100-nvl, h100-pcie, h100-sxm
[2]
$ ridge show h200-smx
ridge: no [...]'h200-smx'; nearest is 'h200-sxm'
[2]
$ ridge show H200_SXM | grep -E '^  (name|matrix|ridge)'
  name                        h200-sxm
  ridge point, flop per byte  206.1
  matrix cores                528
$ ridge show h200-sxm -f json | grep -A6 '"memory.hbm.bandwidth"'
    "memory.hbm.bandwidth": {
      "value": 4800000000000.0,
      "unit": "byte/s",
      "source": "NVIDIA H200 Tensor Core GPU datasheet, specifications table",
      "assumed": false,
      "measured": false
    },
$ ridge show hgx-h200 | grep -E 'within|between'
  within a domain   nvlink4, switched, reduces in the network
  between domains   infiniband-ndr, fat_tree, reduces in the network, one rail a device

# All that comes with ridge agrees with itself.
$ ridge check $ROOT/hw/*.yaml $ROOT/hw/nodes/*.yaml | tail -6
  files            [...]
  figures          [...]
  of them assumed  [...]
  files refused    0
  contradictions   0
  warnings         0

# A peak with sparsity in it is found.
$ sed 's/rate: {value: 989.4 TFLOP/rate: {value: 1979 TFLOP/' $ROOT/hw/h100-sxm.yaml >h100-sxm.yaml
$ ridge check h100-sxm.yaml 2>&1 >out | cat; head -1 out
ridge: contradictions found: 3
h100-sxm.yaml:[...]: error: rate of bf16_fp32 '1.979 PFLOP/s' is 2 times the '989.4 TFLOP/s' that a dense hopper does at 1.83 GHz; if it counts sparsity, halve it and give the figure as sparse: [peak-sparse]
$ ridge check h100-sxm.yaml >out 2>&1
[1]
$ ridge check h100-sxm.yaml -f json 2>err | grep -c '"peak-sparse"'
3

# A device that does not exist: an H200 with twice the bandwidth.
$ printf 'kind: accelerator\nname: h200-next\nbase: h200-sxm\nmemory: {hbm: {bandwidth: {value: 9.6 TB/s, source: "assumed: twice"}, pin_rate: {value: 12.5 Gbit/s, source: "assumed: twice"}}}\n' >h200-next.yaml
$ ridge check h200-next.yaml | head -1
h200-next.yaml: ok, accelerator h200-next, [...] figures, [...] of them assumed
$ ridge show h200-next.yaml | grep -E 'starts|bandwidth  '
  starts from                 h200-sxm
  memory bandwidth            9.600 TB/s
[...]

# The same bytes each time.
$ ridge show b200-sxm -f json >a; ridge show b200-sxm -f json >b; cmp a b

# Engines, too.
$ ridge check $ROOT/hw/engines/*.yaml | grep -c ': ok, engine'
3
$ ridge show vllm | grep block_tokens
  block_tokens        16 [...]

# Hardware may be JSON as well as YAML.
$ printf '{"kind": "accelerator", "name": "j", "base": "l4"}' >j.json; ridge check j.json | head -1
j.json: ok, accelerator j, [...]

# A scenario of serve and the traffic of a network are data files as well.
$ ridge check $ROOT/examples/31-chat.yaml $ROOT/examples/41-noc-traffic.yaml | head -2
ROOT/examples/31-chat.yaml: ok, scenario of [...] settings, [...]
ROOT/examples/41-noc-traffic.yaml: ok, traffic of 3 classes on h100-like, [...]
$ printf 'kind: serve\nmodel: llama-3.1-8b\nroter: session\n' >s.yaml; ridge check s.yaml 2>/dev/null | head -1
s.yaml:3:1: error: unknown key 'roter'; did you mean 'router'? [refused]
$ printf 'kind: noc-traffic\nclasses: []\n' >t.yaml; ridge check t.yaml 2>/dev/null | head -1
t.yaml:1:1: error: no network to check the traffic against; network: NAME names one [refused]
$ printf 'kind: plan\nmodel: llama-3.1-8b\n' >p.yaml; ridge serve p.yaml
ridge: p.yaml:1:7: kind is 'plan'; a scenario says 'serve'
[2]

# A node from the matrix of nvidia-smi topo -m: what the matrix says, and whose figures stand beside it.
$ ridge import $ROOT/tests/fuzz/corpus/topo/pcie4.txt --hw l40s --name box -o box.yaml; ridge check box.yaml | head -1; grep -E "kind|devices_per|nics" box.yaml
box.yaml: ok, cluster box, 10 figures, 7 of them assumed
kind: cluster
devices_per_node: 4
  kind: pcie_tree
  devices_per_switch: 2
  devices_per_socket: 2
  kind: fat_tree
  nics_per_node: 2
  devices_per_switch: 32
$ ridge import $ROOT/tests/fuzz/corpus/topo/bridge.txt --hw h100-nvl | grep -A2 scale_up
scale_up:
  kind: mesh
  technology: nvlink_bridge
$ ridge import $ROOT/tests/fuzz/corpus/topo/bridge.txt --hw l40s
ridge: ROOT/tests/fuzz/corpus/topo/bridge.txt:1: the matrix shows 12 NVLinks, 'l40s' has 0; name another device with --hw
[2]
$ ridge import $ROOT/tests/fuzz/corpus/topo/bridge.txt --hw h100-nvl --family llama
ridge: --family is for a model's config.json; --hw says that this is a machine
[2]
