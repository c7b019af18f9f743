# What the command line itself says: help, version, and mistakes with the nearest name.

$ ridge --version
ridge [...]

$ ridge help | head -3
ridge [...]: how fast an AI accelerator runs an LLM, why, and what to buy
usage: ridge COMMAND [OPTION...] [FILE...]

$ ridge
ridge [...]
[...]
[2]

$ ridge estmate
ridge: no command 'estmate'; did you mean 'estimate'?
[2]

$ ridge help estmate
ridge: no command 'estmate'; did you mean 'estimate'?
[2]

$ ridge estimate --fromat json
ridge: unknown option '--fromat'; did you mean '--format'?
[2]

$ ridge estimate --batch
ridge: option '--batch' needs a value
[2]

$ ridge estimate --batch 1 --batch 2
ridge: option --batch is given twice; give it once
[2]

$ ridge estimate --format yaml
ridge: option --format 'yaml' is not one of: text, csv, json, html
[2]

$ ridge estimate --seed -1
ridge: option --seed '-1' is not a whole number from 0 to 9223372036854775807
[2]

$ ridge list engines -o /dev/full
ridge: /dev/full: cannot be written: No space left on device
[2]

# No help text leaves two empty lines in a row.
$ for c in estimate roofline train coll noc serve sweep plan fit guard validate check import list show; do ridge $c --help | cat -s | diff -q - <(ridge $c --help) >/dev/null || echo "$c"; done

$ ridge help extra words
ridge: unexpected 'words'; options begin with '--', see 'ridge help --help'
[2]

$ ridge help --man | head -1
.TH RIDGE 1 "" "ridge [...]" "User Commands"

$ ridge help --completion | bash -n

# A mistake in a grid is told where it stands and leaves nothing that stops the mended grid.
$ printf 'kind: sweep\nfixed: {hw: h100-sxm, model: llama-3.1-8b}\ngrid:\n  hw.memory.hbm.bandwidth: [x1, y2]\n' >g.yaml; ridge sweep g.yaml -o g.csv; ls g.csv*
ridge: g.yaml:4:33: bandwidth 'y2' is not a rate; write it as '4.8 TB/s'
ls: cannot access 'g.csv*': No such file or directory
[2]
$ sed -i s/y2/x2/ g.yaml; ridge sweep g.yaml -q -o g.csv && wc -l <g.csv
4
$ ridge estimate --hw h200-sxm --model llama-3.1-8b --set hw.memory.hbm.bandwidth=y2
ridge: --set hw.memory.hbm.bandwidth=y2: bandwidth 'y2' is not a rate; write it as '4.8 TB/s'
[2]

# A name that is none is answered with those that begin alike.
$ ridge estimate --hw h200-sxm --model llama3
ridge: no model 'llama3'; names that begin alike: llama-3.1-405b[...]
[2]

# Who is stopped leaves no half-written file.
$ ridge serve --step-time 1ms --kv-blocks unlimited --arrivals poisson:100/s --isl 100 --osl 100 --limit 1000000 --requests r.csv -q >/dev/null & until ls r.csv.* >/dev/null 2>&1; do sleep 0.05; done; kill $!; wait $! 2>/dev/null; echo $?; ls | grep -c r.csv
143
0
[1]

# Figures that were asked for stand in the page.
$ ridge serve --step-time 20ms --kv-blocks 1000 --arrivals poisson:4/s --isl 100 --osl 10 --limit 50 --plot-latency l.svg --plot-kv k.svg -q -f html | grep -oE '<figcaption>[^<]*'
<figcaption>Requests by latency
<figcaption>KV memory and requests over time
